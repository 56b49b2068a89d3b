#!/usr/bin/env bash
# html_report.sh: `marey report --html`: one file that needs nothing else. Needs MAREY_BIN.
corpus=$(cd "$(dirname "$0")/../data/corpus" && pwd)
. "$(dirname "$0")/check.bash"

check "-o without --html" 2 '^marey: report: -o needs --html' "$marey" report -o a.html "$corpus/chrome/chrome.json"
check "a missing file" 2 '^marey: missing\.marey: ' "$marey" report --html missing.marey
check "a folder that does not exist" 2 '^marey: none/a\.html: ' "$marey" report --html -o none/a.html "$corpus/chrome/chrome.json"

check "writes a report" 0 '^marey: wrote a\.html: open it in a browser$' "$marey" report --html -o a.html "$corpus/chrome/chrome.json"
grep -q '<script type="application/marey">' a.html || fail "holds its data"
grep -q "default-src 'none'" a.html || fail "forbids requests"
! grep -qE '(src|href)="(app|https?:)' a.html || fail "refers to no other file" "$(grep -oE '(src|href)="[^"]*"' a.html)"

# Names are inside the compressed data, never in the markup.
echo '[{"ph":"X","name":"</script><script>alert(1)</script>","pid":1,"tid":1,"ts":1,"dur":2}]' >nasty.json
check "a nasty name" 0 '^marey: wrote nasty\.json\.html' "$marey" report --html nasty.json
! grep -q 'alert(1)' nasty.json.html || fail "keeps names out of the markup"
echo '[]' >empty.json
check "an empty trace" 0 '^marey: wrote empty\.html' "$marey" report --html -o empty.html empty.json

# dom FILE: the page after its scripts have run.
dom() {
    timeout 60 chromium --headless --no-sandbox --disable-gpu --user-data-dir="$folder/browser" --virtual-time-budget=5000 \
        --dump-dom "$1" 2>/dev/null
}
if command -v chromium >/dev/null && dom about:blank | grep -q '<html>'; then
    dom "file://$folder/a.html" >a.dom
    grep -q 'ranges are drawn as' a.dom || fail "shows its data in a browser" "$(head -c 500 a.dom)"
    dom "file://$folder/nasty.json.html" | grep -q '&lt;/script&gt;' || fail "shows names as text"
    dom "file://$folder/empty.html" | grep -q 'This trace is empty' || fail "shows an empty trace"
fi

[ $failures = 0 ] && echo "all passed"
exit $((failures > 0))
