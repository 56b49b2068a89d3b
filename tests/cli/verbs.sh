#!/usr/bin/env bash
# verbs.sh: the command kymo from outside: messages, exit codes, `kymo run`. Needs KYMO_BIN; with KYMO_BUILD_DIR holding
# examples/, real captures are read too.
. "$(dirname "$0")/check.bash"

# ---- usage and errors

check "version" 0 '^kymo [0-9]+\.[0-9]+' "$kymo" --version
check "help" 0 'report ' "$kymo" help
check "help of a verb" 0 'kymo report' "$kymo" help report
check "help of a verb, the other way" 0 'kymo tree' "$kymo" tree --help
check "nothing at all" 2 'Usage: kymo' "$kymo"
check "unknown verb" 2 "^kymo: there is no verb 'frobnicate'" "$kymo" frobnicate
check "unknown option" 2 '^kymo: report: .*--frob' "$kymo" report --frob x.kymo
check "no file" 2 '^kymo: report: FILE is required' "$kymo" report
check "wrong sort key" 2 "^kymo: report: there is no sort key 'zzz'; known: name, " "$kymo" report --sort zzz x.kymo
check "wrong number" 2 "^kymo: report: --rows: '-1' is no number" "$kymo" report --limit -1 x.kymo
for verb in info report tree export validate compact; do
    check "$verb of a missing file" 2 '^kymo: missing\.kymo: .*No such file' "$kymo" $verb missing.kymo
done
[ -z "$(ls)" ] || fail "failing verbs leave no files" "$(ls)"
echo "this is no capture" >text.kymo
check "not a capture" 2 '^kymo: text\.kymo: no format that Kymo reads \(kymo, ' "$kymo" report text.kymo
: >empty.kymo
check "an empty file" 2 '^kymo: empty\.kymo: is empty$' "$kymo" info empty.kymo
[ "$("$kymo" report missing.kymo 2>&1 | wc -l)" = 1 ] || fail "errors are one line"
[ -z "$("$kymo" report missing.kymo 2>/dev/null)" ] || fail "errors go to stderr"

# ---- run

check "run: exit code" 7 'sh did not load libkymo' "$kymo" run -- sh -c 'exit 7'
check "run: without dashes" 3 'did not load libkymo' "$kymo" run sh -c 'exit 3'
check "run: arguments arrive as they are" 0 '^\[a b\] \[--\] \[-o\] \[\]' \
    "$kymo" run -- sh -c 'printf "[%s] " "$@"; echo' sh 'a b' -- -o ''
check "run: no such program" 127 '^kymo: \./nope: No such file or directory' "$kymo" run -- ./nope
check "run: not a program" 126 '^kymo: /dev/null: Permission denied' "$kymo" run -- /dev/null
mkdir -p no_program && echo text >notes.txt && printf '#!/no/such/shell\n' >lost && chmod +x lost
check "run: a folder without a program" 126 "^kymo: can't find '__main__' module in 'no_program'" "$kymo" run no_program
check "run: a folder by its path" 126 "^kymo: can't find '__main__' module in '\./no_program/'" "$kymo" run ./no_program/
check "run: a text" 126 '^kymo: notes\.txt: is not executable' "$kymo" run notes.txt
check "run: a text by its path" 126 '^kymo: \./notes\.txt: is not executable' "$kymo" run ./notes.txt
check "run: a program that is not in PATH" 126 '^kymo: lost: is not in PATH; \./lost is' "$kymo" run lost
check "run: an interpreter that is not there" 126 '^kymo: \./lost: .*interpreter' "$kymo" run ./lost
check "run: no program" 2 'the program is missing' "$kymo" run
check "run: no pattern" 2 "^kymo: run: --include: the pattern '\[' has a '\[' that is not closed" "$kymo" run --include '[' -- true
check "run: an empty pattern" 2 "^kymo: run: --exclude: the pattern '' is empty" "$kymo" run --exclude '' -- true
check "run: wrong size" 2 "'12q' is no size" "$kymo" run --max 12q -- true
check "run: wrong scope" 2 "there is no scope 'nonsense'" "$kymo" run --scopes user,nonsense -- true
check "run: no such folder" 2 '^kymo: nowhere/: ' "$kymo" run -o nowhere/x.kymo -- true
check "run: a folder where no file can be made" 2 '^kymo: /proc/: cannot write a capture here: ' "$kymo" run -o /proc/x.kymo -- true
check "run: an existing capture is not overwritten" 2 '^kymo: text\.kymo: exists already' \
    "$kymo" run -o text.kymo -- true
check "run: --force replaces it" 0 'did not load' "$kymo" run --force -o text.kymo -- sh -c '! test -e text.kymo'
check "run: the settings" 0 "^out=$folder/a\\\\,b\.kymo,max=67108864,policy=ring,scopes=user\|function(,c_calls=auto,calls=on)?\$" \
    "$kymo" run -o a,b.kymo --max 64MB --policy ring --scopes user,function -- sh -c 'echo "$KYMO"'
: >sh.kymo
check "run: a free name" 0 "^out=$folder/sh-2\.kymo" "$kymo" run -- sh -c 'echo "$KYMO"'
rm sh.kymo
[ "$(echo input | "$kymo" run -- cat 2>/dev/null)" = input ] || fail "run: stdin and stdout are the program's"

# A signal that kills the program kills kymo the same way, which shells show as 128 + its number.
check "run: killed by TERM" 143 'did not load' "$kymo" run -- sh -c 'kill -TERM $$'
check "run: killed by KILL" 137 'did not load' "$kymo" run -- sh -c 'kill -KILL $$'

# wait_for FILE: until it is there, for 10 s at most.
wait_for() {
    local i
    for i in $(seq 1000); do
        [ -e "$1" ] && return 0
        sleep 0.01
    done
    fail "waiting for $1"
}

# Signals sent to kymo reach the program. (A non-interactive shell starts what is in the background with INT ignored,
# which kymo and the program keep: so INT is not among them.)
for signal in TERM HUP USR1 USR2; do
    rm -f ready
    "$kymo" run -- sh -c "trap 'exit 42' $signal; : >ready; while :; do sleep 0.01; done" 2>/dev/null &
    child=$!
    wait_for ready
    kill -$signal $child
    wait $child
    code=$?
    [ $code = 42 ] || fail "run: passes $signal on" "exit code $code, not 42"
done

# ---- with a real capture

program=${KYMO_BUILD_DIR:-}/examples/pipeline
if [ -n "${KYMO_BUILD_DIR:-}" ] && [ -x "$program" ]; then
    check "run: a program that records" 0 'next: +kymo report pipeline\.kymo' "$kymo" run -- "$program" "" 500
    check "run: keeps the first capture" 0 'pipeline-2\.kymo' "$kymo" run -- "$program" "" 500
    check "info" 0 '^thread ' "$kymo" info pipeline.kymo
    check "report" 0 '^events .* kept' "$kymo" report pipeline.kymo
    check "report: limit" 0 '^\.\.\. and [0-9,]+ more rows' "$kymo" report --limit 2 pipeline.kymo
    check "report: by thread" 0 '^ +Name +Thread +Self CPU %' "$kymo" report --by thread pipeline.kymo
    check "report: filter" 0 "^no name holds 'zzzz'" "$kymo" report --filter zzzz pipeline.kymo
    check "report: csv" 0 '^name,scope,device_type,count,.*self_cpu_time_total_ns,cpu_time_total_ns' "$kymo" report --csv pipeline.kymo
    check "report: PyTorch's table" 0 '^Self CPU time total: [0-9.]+m?s$' "$kymo" report pipeline.kymo
    check "report: columns" 0 '^ +Name +# of Calls +p90 +Overhead +$' \
        "$kymo" report --columns name,calls,p90,overhead pipeline.kymo
    check "report: a long title" 0 '^ +Name  Self overhead      Overhead  $' \
        "$kymo" report --columns name,self_overhead,overhead pipeline.kymo
    check "report: unknown column" 2 "^kymo: report: there is no column 'x'; known: name, " \
        "$kymo" report --columns name,x pipeline.kymo
    check "report: sorted by a device's key" 0 'Self CPU time total' "$kymo" report --sort cuda_time_total pipeline.kymo
    check "report: markdown" 0 '^\| Name \| Self CPU % \|' "$kymo" report --format markdown pipeline.kymo
    check "report: one unit" 0 '^Self CPU time total: [0-9.]+s$' "$kymo" report --time-unit s pipeline.kymo
    check "report: top level only" 0 'only display top-level' "$kymo" report --top-level pipeline.kymo
    check "report: all groupings" 0 'Self CPU time total' "$kymo" report --by-shape --by-stack 3 --by-thread \
        --by-overload --merge-repeated --subtract-overhead pipeline.kymo
    check "report: one row per range" 0 '^\.\.\. and [0-9,]+ more rows' "$kymo" report --list --rows 5 pipeline.kymo
    [ "$("$kymo" report --csv --rows 2 pipeline.kymo | wc -l)" = 3 ] || fail "report: --rows holds for csv"
    check "tree" 0 '%.* main$' "$kymo" tree pipeline.kymo
    check "unknown session" 2 '^kymo: pipeline\.kymo: ' "$kymo" report --session 999 pipeline.kymo
    check "export: default name" 0 '^pipeline\.json: .* ranges' "$kymo" export pipeline.kymo
    check "export: unknown suffix" 2 '^kymo: x\.foo: no export format' "$kymo" export pipeline.kymo -o x.foo
    check "export: a table" 0 '^pipeline\.threads\.csv: ' "$kymo" export pipeline.kymo --table threads
    head -n 1 pipeline.threads.csv | grep -q '^process,id,os_tid,name' || fail "export: a table's columns"
    check "export: ranges as CSV" 0 '^name,category,scope,start_ns' "$kymo" export pipeline.kymo --to csv -o -
    check "export: tables are CSV" 2 '^kymo: --table: only csv' "$kymo" export pipeline.kymo --table links -o x.json
    check "export: no such folder" 2 '^kymo: no/x\.json: ' "$kymo" export pipeline.kymo -o no/x.json
    if command -v python3 >/dev/null; then
        check "export: valid JSON" 0 '' python3 -c 'import json; json.load(open("pipeline.json", encoding="utf-8"))'
        "$kymo" report --json pipeline.kymo | python3 -m json.tool >/dev/null || fail "report: --json is valid"
        "$kymo" info --json pipeline.kymo | python3 -m json.tool >/dev/null || fail "info: --json is valid"
    fi
    if "$kymo" export pipeline.kymo -o pipeline.json.gz 2>/dev/null; then
        gzip -dc pipeline.json.gz | cmp - pipeline.json || fail "export: .gz holds the same"
    fi
    tail -n 1 pipeline.json | grep -q ',"traceName":"pipeline.json"}$' || fail "export: the name of the file is in it"
    "$kymo" export pipeline.kymo -o - 2>/dev/null | cmp - <(sed '$ s/,"traceName":"pipeline.json"//' pipeline.json) || fail "export: to standard output"
    if "$kymo" compact pipeline.kymo >compacted 2>&1; then
        grep -Eq 'pipeline\.compact\.kymo: .* -> .* bytes per range' compacted || fail "compact" "$(cat compacted)"
        cmp <("$kymo" report --csv pipeline.kymo) <("$kymo" report --csv pipeline.compact.kymo) ||
            fail "compact: the same report"
    else
        grep -Eqi 'zstd' compacted || fail "compact" "$(cat compacted)"
    fi

    # Nobody reads on: quiet, whether SIGPIPE is ignored or not.
    errors=$({ "$kymo" export pipeline.kymo -o - 3>&1 2>&3 | head -c 1 >/dev/null; } 3>&1)
    errors+=$( (trap '' PIPE; { "$kymo" report --csv --by thread pipeline.kymo 2>&3; } | true) 3>&1)
    [ -z "$errors" ] || fail "a broken pipe is quiet" "$errors"

    # Colour: none in a pipe; on a terminal yes, unless NO_COLOR.
    escape=$(printf '\033')
    "$kymo" report pipeline.kymo | grep -q "$escape" && fail "no colour in a pipe"
    if command -v script >/dev/null; then
        TERM=xterm script -qec "'$kymo' report pipeline.kymo" /dev/null </dev/null | grep -q "$escape" ||
            fail "colour on a terminal"
        TERM=xterm NO_COLOR=1 script -qec "'$kymo' report pipeline.kymo" /dev/null </dev/null | grep -q "$escape" &&
            fail "NO_COLOR is honoured"
    fi
else
    echo "no example program: captures are not read"
fi

[ $failures = 0 ] && echo "all passed"
exit $((failures > 0))
