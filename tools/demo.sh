#!/usr/bin/env bash
# demo.sh BUILD_DIR: records a C++ and a Python example, prints reports and what to type next.
set -euo pipefail
cd "$(dirname "$0")/.."
dir="$1"
marey="$dir/marey"
[ -x "$marey" ] || { echo "demo: $marey was not built (it needs fmt and CLI11)" >&2; exit 1; }

show() {
    echo
    echo "\$ $*"
    "$@"
}
echo "== A C++ program with marked ranges: examples/pipeline"
show "$marey" run -o build/demo.marey --force -- "$dir/examples/pipeline" build/demo.html
show "$marey" report build/demo.marey --limit 12
show "$marey" export build/demo.marey -o build/demo.json

if [ "${PYTHON:-}" != off ]; then
    marey=.venv/bin/marey
    echo
    echo "== A Python program, unchanged: examples/python/spell.py"
    show "$marey" run -o build/spell.marey --force examples/python/spell.py
    show "$marey" tree build/spell.marey --limit 8
fi
cat <<TEXT

Timeline: open build/demo.json in https://ui.perfetto.dev or chrome://tracing

Next:
  $marey view build/demo.marey                          timeline and flame graph in your browser
  $marey report build/demo.marey --sort p99 --limit 5   ranges that are slow now and then
  $marey tree build/demo.marey                          where the time went, as a call tree
  $marey info build/demo.marey                          threads, events, drops, clock, overhead
  $marey run -- ./your_program                          your C++ program
TEXT
if [ "${PYTHON:-}" != off ]; then
    cat <<TEXT
  $marey run your_script.py                             your Python program
  . .venv/bin/activate                                      then the command is just 'marey'
TEXT
fi
