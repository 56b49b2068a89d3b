#!/usr/bin/env bash
# validate.sh: `marey validate`: exit codes, violations, JSON, and that Marey's exports pass. Needs MAREY_BIN; if
# MAREY_BUILD_DIR has examples/, a real capture and its exports are checked too.
golden=$(cd "$(dirname "$0")/../data/golden" && pwd)
. "$(dirname "$0")/check.bash"

# ---- clean files, broken files, no files

check "help" 0 'marey validate' "$marey" validate --help
check "missing file" 2 '^marey: missing\.json: .*No such file' "$marey" validate missing.json
echo 'not a trace' >text.marey
check "not a trace" 2 '^marey: text\.marey: ' "$marey" validate text.marey
echo '[]' >empty.json
check "an empty list" 0 '^empty\.json: no violations' "$marey" validate empty.json
echo '[{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":10},' >cut.json
check "cut short" 1 '^strict_json: 1 violation' "$marey" validate cut.json
cat >crossing.json <<'JSON'
[{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":10},{"ph":"X","name":"b","pid":1,"tid":1,"ts":5,"dur":10},
 {"ph":"s","name":"f","cat":"f","id":1,"pid":1,"tid":1,"ts":1}]
JSON
check "crossing ranges" 1 "^row_nesting: 1 violation; first: 'b' at 5.000 us starts inside 'a'" "$marey" validate crossing.json
check "a lone arrow" 1 "^flow_without_end: 1 violation" "$marey" validate crossing.json
check "as JSON" 1 '"rule": "row_nesting"' "$marey" validate --json crossing.json
printf '\357\273\277[]' >marked.json
check "a byte order mark" 1 '^strict_json: 1 violation' "$marey" validate marked.json
check "its format, named" 0 'no violations' "$marey" validate --from chrome empty.json
check "the wrong format, named" 2 '^marey: empty\.json: ' "$marey" validate --from marey empty.json
check "text, named JSON" 1 '^strict_json: 1 violation' "$marey" validate --from chrome text.marey
check "no such format" 2 "^marey: validate: --from: invalid value 'x': expected one of marey" "$marey" validate --from x empty.json
check "the rules" 0 '^row_nesting +0  ' "$marey" validate --rules empty.json
gzip -c crossing.json >crossing.json.gz
if "$marey" validate crossing.json.gz 2>&1 | grep -q 'without zlib'; then
    echo "no zlib: .gz is not read"
else
    check "gzip" 1 '^row_nesting: 1 violation' "$marey" validate crossing.json.gz
fi

# ---- files written by Marey

for file in "$golden"/chrome/*.json; do
    check "golden $(basename "$file")" 0 'no violations' "$marey" validate "$file"
done
program=${MAREY_BUILD_DIR:-}/examples/pipeline
if [ -n "${MAREY_BUILD_DIR:-}" ] && [ -x "$program" ]; then
    "$marey" run -o app.marey -- "$program" >/dev/null 2>&1 || fail "run"
    check "a capture" 0 'no violations' "$marey" validate app.marey
    for bytes in 40000 294912 300000 2000000; do
        head -c $bytes app.marey >cut.marey
        check "a capture cut at $bytes" 1 '^unread: .*truncated' "$marey" validate cut.marey
        check "the problem in info" 0 'problem: .*truncated' "$marey" info cut.marey
    done
    if "$marey" export --to perfetto app.marey -o app.pftrace 2>/dev/null; then
        check "its Perfetto trace" 0 'no violations' "$marey" validate app.pftrace
        head -c -1 app.pftrace >cut.pftrace # inside the last packet; any other position may be the end of a packet
        check "a Perfetto trace cut short" 1 '^unread: .*cut_short' "$marey" validate cut.pftrace
    fi
    "$marey" export app.marey -o app.json 2>/dev/null
    check "its Chrome JSON" 0 'no violations' "$marey" validate app.json
    check "clean, as JSON" 0 '"clean": true' "$marey" validate --json app.json
else
    echo "no example program: captures are not read"
fi

[ $failures = 0 ] && echo "all passed"
exit $((failures > 0))
