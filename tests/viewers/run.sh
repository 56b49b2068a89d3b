#!/usr/bin/env bash
# run.sh BUILD_DIR: opens traces that kymo exported in real viewers, in a headless browser. `make viewers` runs it.
#
# Each tests/viewers/*.mjs is one viewer. It gets KYMO_BIN, KYMO_CAPTURE (a capture of the example), KYMO_OUT (a folder for
# exports and screenshots) and CHROMIUM; packages of npm are imported from KYMO_MODULES.
set -eu

cd "$(dirname "$0")/../.."
build=$(realpath "${1:?usage: run.sh BUILD_DIR}")
export KYMO_BIN=$build/kymo
export KYMO_OUT=$build/viewers
export KYMO_MODULES=$KYMO_OUT/node_modules
export KYMO_CAPTURE=$KYMO_OUT/pipeline.kymo
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome)} ||
    { echo "viewers: no chromium found" >&2; exit 1; }
export CHROMIUM

mkdir -p "$KYMO_OUT"
packages=()
for package in playwright-core speedscope; do
    [ -d "$KYMO_MODULES/$package" ] || packages+=("$package")
done
if [ ${#packages[@]} -gt 0 ]; then
    echo "viewers: npm install ${packages[*]}"
    npm install --prefix "$KYMO_OUT" --no-audit --no-fund --loglevel=error "${packages[@]}" >/dev/null
fi
"$KYMO_BIN" run --force -o "$KYMO_CAPTURE" -- "$build/examples/pipeline" >/dev/null 2>&1

failures=0
for script in tests/viewers/*.mjs; do
    node "$script" || failures=$((failures + 1))
done
exit $((failures > 0))
