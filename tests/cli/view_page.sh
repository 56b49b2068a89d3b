#!/usr/bin/env bash
# view_page.sh: the quick tests of the viewer's page, in a headless browser. Needs MAREY_BIN and MAREY_BUILD_DIR; runs only if
# Chromium is installed and `make viewers` has run before, because it downloads the packages that drive the browser.
page=$(cd "$(dirname "$0")/../viewers" && pwd)/marey_view.mjs
. "$(dirname "$0")/check.bash"

CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome)}
export CHROMIUM MAREY_MODULES=${MAREY_BUILD_DIR:-}/viewers/node_modules
if [ -z "$CHROMIUM" ] || [ ! -d "$MAREY_MODULES/playwright-core" ] || ! command -v node >/dev/null; then
    echo "skipped: no Chromium, or 'make viewers' has not run"
    exit 0
fi
export MAREY_OUT=$folder MAREY_CAPTURE=$folder/pipeline.marey MAREY_LIVE=$MAREY_BUILD_DIR/tests/live_program MAREY_FAST=1
check "records the example" 0 'events kept' "$marey" run -o "$MAREY_CAPTURE" -- "$MAREY_BUILD_DIR/examples/pipeline"
node "$page" || fail "the page"

[ $failures = 0 ] && echo "all passed"
exit $((failures > 0))
