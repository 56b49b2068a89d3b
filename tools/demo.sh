#!/usr/bin/env bash
# demo.sh BUILD_DIR: profiles the bundled example with the command marey and shows what came out.
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
show "$marey" run -o build/demo.marey --force -- "$dir/examples/pipeline" build/demo.html
show "$marey" report build/demo.marey --limit 20
show "$marey" export build/demo.marey --to chrome -o build/demo.json
cat <<TEXT

The capture:  build/demo.marey
The trace:    build/demo.json   (open it in https://ui.perfetto.dev or chrome://tracing)
The program:  examples/pipeline/ (what it made: build/demo.html)

Try next:
  $marey tree build/demo.marey                        where the time went, as a call tree
  $marey report build/demo.marey --by thread          the same table, a part per thread
  $marey report build/demo.marey --sort p99 --limit 5 what is slow now and then
  $marey info build/demo.marey                        threads, events, drops, clock, overhead
  $marey compact build/demo.marey -o build/small.marey the same capture, compressed
  $marey run -o mine.marey -- ./your_program          your own program
TEXT
