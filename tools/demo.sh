#!/usr/bin/env bash
# demo.sh BUILD_DIR: profiles the bundled example with the command kymo and shows what came out.
set -euo pipefail
cd "$(dirname "$0")/.."
dir="$1"
kymo="$dir/kymo"
[ -x "$kymo" ] || { echo "demo: $kymo was not built (it needs fmt and CLI11)" >&2; exit 1; }

show() {
    echo
    echo "\$ $*"
    "$@"
}
show "$kymo" run -o build/demo.kymo --force -- "$dir/examples/pipeline" build/demo.html
show "$kymo" report build/demo.kymo --limit 20
show "$kymo" export build/demo.kymo --to chrome -o build/demo.json
cat <<TEXT

The capture:  build/demo.kymo
The trace:    build/demo.json   (open it in https://ui.perfetto.dev or chrome://tracing)
The program:  examples/pipeline/ (what it made: build/demo.html)

Try next:
  $kymo tree build/demo.kymo                        where the time went, as a call tree
  $kymo report build/demo.kymo --by thread          the same table, a part per thread
  $kymo report build/demo.kymo --sort p99 --limit 5 what is slow now and then
  $kymo info build/demo.kymo                        threads, events, drops, clock, overhead
  $kymo compact build/demo.kymo -o build/small.kymo the same capture, compressed
  $kymo run -o mine.kymo -- ./your_program          your own program
TEXT
