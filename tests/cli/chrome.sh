#!/usr/bin/env bash
# chrome.sh: every verb reads Chrome traces of any tool; --from and --session. Needs MAREY_BIN.
corpus=$(cd "$(dirname "$0")/../data/corpus/chrome" && pwd)
. "$(dirname "$0")/check.bash"

cp "$corpus/kineto.json" "$corpus/viztracer.json" .
check "info" 0 '^4711 +9 +python' "$marey" info kineto.json
"$marey" info kineto.json | grep -Eq '^(command|host|process) *$' && fail "info: unknown facts are left out"
check "report: unknown costs" 0 '^marey: the trace has no recording costs: nothing was subtracted$' \
    "$marey" report --subtract-overhead kineto.json
check "report" 0 'aten::addmm' "$marey" report kineto.json
echo '[{"ph":"X","name":"f","pid":1,"tid":1,"ts":0,"dur":100},{"ph":"X","name":"f","pid":1,"tid":1,"ts":9,"dur":50}]' >twice.json
check "per call is total divided by calls, also in a recursion" 0 '^ *100 us +100\.0% +100 us +2 +50\.0 us +f$' \
    "$marey" report twice.json
check "tree" 0 'leaf \(samples' "$marey" tree viztracer.json
check "a format by its name" 0 'leaf \(samples' "$marey" tree --from chrome viztracer.json
check "an unknown format" 2 'chrome' "$marey" tree --from json viztracer.json
check "the wrong format" 2 '^marey: viztracer\.json: ' "$marey" tree --from marey viztracer.json
check "a session of a file that is not a capture" 2 '^marey: viztracer\.json: --session applies only to Marey captures.* chrome' \
    "$marey" tree --session 1 viztracer.json
check "a session, and a format without sessions" 2 '^marey: viztracer\.json: --session applies only to ' \
    "$marey" tree --session 1 --from chrome viztracer.json
check "export" 0 '^again\.json: 10 ranges' "$marey" export kineto.json -o again.json
check "the export can be read" 0 'aten::addmm' "$marey" report again.json
head -c 5000 kineto.json >cut.json
check "a file cut short" 0 '^problem: the file ends too early' "$marey" info cut.json
if command -v gzip >/dev/null; then
    gzip -k kineto.json
    check "gzip" 0 'aten::addmm' "$marey" report kineto.json.gz
fi
echo '{"a": 1}' >other.json
check "JSON that is not a trace" 2 '^marey: other\.json: not a Chrome trace' "$marey" info other.json

[ $failures = 0 ] && echo "all passed"
exit $((failures > 0))
