#!/usr/bin/env bash
# run.sh BUILD_DIR: opens traces exported by marey in real viewers, in a headless browser. `make viewers` runs it.
#
# Each tests/viewers/*.mjs is one viewer. It gets MAREY_BIN, MAREY_CAPTURE (a capture of the example), MAREY_LARGE (a capture of
# 10 million ranges) and the variables of tools/viewers_env.sh; exports and screenshots go to MAREY_OUT.
set -eu

cd "$(dirname "$0")/../.."
build=$(realpath "${1:?usage: run.sh BUILD_DIR}")
export MAREY_BIN=$build/marey
. tools/viewers_env.sh
# Results of an earlier run: marey does not replace files.
find "$MAREY_OUT" -maxdepth 1 -type f ! -name large.marey ! -name 'package*.json' -delete
export MAREY_CAPTURE=$MAREY_OUT/pipeline.marey
"$MAREY_BIN" run --force -o "$MAREY_CAPTURE" -- "$build/examples/pipeline" >/dev/null 2>&1
export MAREY_LARGE=$MAREY_OUT/large.marey
[ -f "$MAREY_LARGE" ] || "$build/tests/large_capture_program" "$MAREY_LARGE" 10

export MAREY_LIVE=$build/tests/live_program

failures=0
for script in tests/viewers/*.mjs; do
    node "$script" || failures=$((failures + 1))
done
exit $((failures > 0))
