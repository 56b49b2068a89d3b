#!/usr/bin/env bash
# verbs.sh: the marey command: messages, exit codes, `marey run`. Needs MAREY_BIN; if MAREY_BUILD_DIR has examples/, real
# captures are read too.
. "$(dirname "$0")/check.bash"

# ---- usage and errors

check "version" 0 '^marey [0-9]+\.[0-9]+' "$marey" --version
check "help" 0 'report ' "$marey" help
check "help of a verb" 0 'marey report' "$marey" help report
check "help of a verb, the other way" 0 'marey tree' "$marey" tree --help
check "nothing at all" 2 'Usage: marey' "$marey"
check "unknown verb" 2 "^marey: unknown command 'frobnicate'" "$marey" frobnicate
check "misspelt verb" 2 "^marey: unknown command 'reprot': did you mean 'report'\?" "$marey" reprot x.marey
check "misspelt verb in help" 2 "did you mean 'tree'\?" "$marey" help tre
"$marey" frobnicate 2>&1 | grep -q 'did you mean' && fail "a word that is not like any verb"
check "unknown option" 2 '^marey: report: .*--frob' "$marey" report --frob x.marey
check "no file" 2 '^marey: report: FILE is required' "$marey" report
check "wrong sort key" 2 "^marey: report: unknown sort key 'zzz'; known: name, " "$marey" report --sort zzz x.marey
check "wrong number" 2 "^marey: report: --limit: invalid value '-1': expected a non-negative integer" "$marey" report --limit -1 x.marey
for verb in info report tree export validate compact; do
    check "$verb of a missing file" 2 '^marey: missing\.marey: .*No such file' "$marey" $verb missing.marey
done
[ -z "$(ls)" ] || fail "failing verbs leave no files" "$(ls)"
echo "this is not a capture" >text.marey
check "not a capture" 2 '^marey: text\.marey: unknown file format; known: marey, ' "$marey" report text.marey
: >empty.marey
check "an empty file" 2 '^marey: empty\.marey: the file is empty$' "$marey" info empty.marey
[ "$("$marey" report missing.marey 2>&1 | wc -l)" = 1 ] || fail "errors are one line"
[ -z "$("$marey" report missing.marey 2>/dev/null)" ] || fail "errors go to stderr"

# ---- run

check "run: exit code" 7 'neither sh nor a process that it started loaded libmarey' "$marey" run -- sh -c 'exit 7'
check "run: without dashes" 3 'loaded libmarey' "$marey" run sh -c 'exit 3'
check "run: arguments arrive as they are" 0 '^\[a b\] \[--\] \[-o\] \[\]' \
    "$marey" run -- sh -c 'printf "[%s] " "$@"; echo' sh 'a b' -- -o ''
check "run: no such program" 127 '^marey: \./nope: No such file or directory' "$marey" run -- ./nope
check "run: not a program" 126 '^marey: /dev/null: Permission denied' "$marey" run -- /dev/null
mkdir -p no_program && echo text >notes.txt && printf '#!/no/such/shell\n' >lost && chmod +x lost
check "run: a folder without a program" 126 "^marey: can't find '__main__' module in 'no_program'" "$marey" run no_program
check "run: a folder by its path" 126 "^marey: can't find '__main__' module in '\./no_program/'" "$marey" run ./no_program/
check "run: a text" 126 '^marey: notes\.txt: is not executable' "$marey" run notes.txt
check "run: a text by its path" 126 '^marey: \./notes\.txt: is not executable' "$marey" run ./notes.txt
check "run: a program that is not in PATH" 126 '^marey: lost: is not in PATH; use \./lost' "$marey" run lost
check "run: a missing interpreter" 126 '^marey: \./lost: .*interpreter' "$marey" run ./lost
check "run: no program" 2 'no program given' "$marey" run
check "run: an invalid pattern" 2 "^marey: run: --include: the pattern '\[' has an unclosed '\['" "$marey" run --include '[' -- true
check "run: an empty pattern" 2 "^marey: run: --exclude: the pattern '' is empty" "$marey" run --exclude '' -- true
check "run: wrong size" 2 "--max-bytes: invalid size '12q'" "$marey" run --max 12q -- true
check "run: wrong scope" 2 "unknown scope 'nonsense'" "$marey" run --scopes user,nonsense -- true
check "run: no such folder" 2 '^marey: nowhere/: ' "$marey" run -o nowhere/x.marey -- true
check "run: a folder where no file can be created" 2 '^marey: /proc/: cannot write a capture here: ' "$marey" run -o /proc/x.marey -- true
check "run: an existing capture is not overwritten" 2 '^marey: text\.marey: already exists' \
    "$marey" run -o text.marey -- true
check "run: --force replaces it" 0 'loaded libmarey' "$marey" run --force -o text.marey -- sh -c '! test -e text.marey'
check "run: the settings" 0 "^out=$folder/a\\\\,b\.marey,max=64MB,policy=ring,scopes=user\|function(,c_calls=auto,calls=on)?,tree=[0-9a-f]{32}:[0-9]+\$" \
    "$marey" run -o a,b.marey --max-bytes 64MB --policy ring --scopes user,function -- sh -c 'echo "$MAREY"'
: >sh.marey
check "run: a free name" 0 "^out=$folder/sh-2\.marey" "$marey" run -- sh -c 'echo "$MAREY"'
rm sh.marey
[ "$(echo input | "$marey" run -- cat 2>/dev/null)" = input ] || fail "run: the program keeps stdin and stdout"

# A signal that kills the program kills marey the same way, which shells show as 128 + its number.
check "run: killed by TERM" 143 'loaded libmarey' "$marey" run -- sh -c 'kill -TERM $$'
check "run: killed by KILL" 137 'loaded libmarey' "$marey" run -- sh -c 'kill -KILL $$'

# wait_for FILE: waits until it exists, for at most 10 s.
wait_for() {
    local i
    for i in $(seq 1000); do
        [ -e "$1" ] && return 0
        sleep 0.01
    done
    fail "waiting for $1"
}

# Signals sent to marey reach the program. (INT is not tested: a non-interactive shell starts background jobs with INT
# ignored, and marey and the program keep that.)
for signal in TERM HUP USR1 USR2; do
    rm -f ready
    "$marey" run -- sh -c "trap 'exit 42' $signal; : >ready; while :; do sleep 0.01; done" 2>/dev/null &
    child=$!
    wait_for ready
    kill -$signal $child
    wait $child
    code=$?
    [ $code = 42 ] || fail "run: forwards $signal" "exit code $code, not 42"
done

# ---- with a real capture

program=${MAREY_BUILD_DIR:-}/examples/pipeline
if [ -n "${MAREY_BUILD_DIR:-}" ] && [ -x "$program" ]; then
    check "run: a program that records" 0 'next: +marey report pipeline\.marey' "$marey" run -- "$program" "" 500
    check "run: keeps the first capture" 0 'pipeline-2\.marey' "$marey" run -- "$program" "" 500
    check "info" 0 '^thread ' "$marey" info pipeline.marey
    [ -z "$(MAREY=out=env.marey "$program" "" 20 2>&1 >/dev/null)" ] || fail "MAREY: a free name needs no message"
    check "MAREY: the second run's capture" 0 '^marey: env\.marey: already exists, from an earlier run; this run.s capture is .*/env\.[0-9]+\.marey' \
        env MAREY=out=env.marey "$program" "" 20
    check "report" 0 '^events .* kept' "$marey" report pipeline.marey
    check "report: limit" 0 '^\.\.\. and [0-9,]+ more rows' "$marey" report --limit 2 pipeline.marey
    check "report: by thread" 0 '^ +self +share +total +calls +per call +thread +name$' "$marey" report --by thread pipeline.marey
    check "report: filter" 0 "^no name contains 'zzzz'" "$marey" report --filter zzzz pipeline.marey
    check "report: csv" 0 '^name,scope,device_type,count,.*self_cpu_time_total_ns,cpu_time_total_ns' "$marey" report --csv pipeline.marey
    check "report: plain words" 0 '^ +self +share +total +calls +per call +name$' "$marey" report pipeline.marey
    check "report: preemption" 0 '^times +wall time: .*preemption' "$marey" report pipeline.marey
    "$marey" report pipeline.marey | grep -q CPU && fail "report: wall time is not called CPU time"
    check "report: PyTorch's table" 0 '^Self CPU time total: [0-9.]+m?s$' "$marey" report --layout torch pipeline.marey
    check "report: PyTorch's table as markdown" 0 '^\| Name \| Self CPU % \|' \
        "$marey" report --layout torch --format markdown pipeline.marey
    check "report: columns" 0 '^name +calls +p90 +overhead$' "$marey" report --columns name,calls,p90,overhead pipeline.marey
    check "report: PyTorch's columns" 0 '^ +Name +# of Calls +p90 +Overhead +$' \
        "$marey" report --layout torch --columns name,calls,p90,overhead pipeline.marey
    check "report: a long title" 0 '^ +Name  Self overhead      Overhead  $' \
        "$marey" report --layout torch --columns name,self_overhead,overhead pipeline.marey
    check "report: unknown column" 2 "^marey: report: unknown column 'x'; known: name, " \
        "$marey" report --columns name,x pipeline.marey
    check "report: sorted by a device's key" 0 '^ +self +share' "$marey" report --sort cuda_time_total pipeline.marey
    check "report: markdown" 0 '^\| self \| share \| total \| calls \| per call \| name \|' "$marey" report --format markdown pipeline.marey
    check "report: one unit" 0 '^ *[0-9.]+ s +[<0-9.]+% +[0-9.]+ s ' "$marey" report --time-unit s pipeline.marey
    check "report: top level only" 0 ' main$' "$marey" report --top-level pipeline.marey
    check "report: top level only, as PyTorch" 0 'only display top-level' "$marey" report --layout torch --top-level pipeline.marey
    check "report: all groupings" 0 '^ +self +share' "$marey" report --by-shape --by-stack 3 --by-thread \
        --by-overload --merge-repeated --subtract-overhead pipeline.marey
    check "report: one row per range" 0 '^\.\.\. and [0-9,]+ more rows' "$marey" report --list --limit 5 pipeline.marey
    [ "$("$marey" report --csv --limit 2 pipeline.marey | wc -l)" = 3 ] || fail "report: --limit applies to csv"
    check "tree" 0 '%.* main$' "$marey" tree pipeline.marey
    check "info: chosen columns" 0 '^thread,ranges$' "$marey" info --csv --columns thread,ranges pipeline.marey
    check "unknown session" 2 '^marey: pipeline\.marey: ' "$marey" report --session 999 pipeline.marey
    check "export: default name" 0 '^pipeline\.json: .* ranges' "$marey" export pipeline.marey
    check "export: unknown suffix" 2 '^marey: x\.foo: no export format' "$marey" export pipeline.marey -o x.foo
    check "export: a table" 0 '^pipeline\.threads\.csv: ' "$marey" export pipeline.marey --table threads
    head -n 1 pipeline.threads.csv | grep -q '^process,id,os_tid,name' || fail "export: a table's columns"
    check "export: ranges as CSV" 0 '^name,category,scope,start_ns' "$marey" export pipeline.marey --to csv -o -
    check "export: tables are CSV" 2 '^marey: --table: only supported for csv' "$marey" export pipeline.marey --table links -o x.json
    check "export: no such folder" 2 '^marey: no/x\.json: ' "$marey" export pipeline.marey -o no/x.json
    if command -v python3 >/dev/null; then
        check "export: valid JSON" 0 '' python3 -c 'import json; json.load(open("pipeline.json", encoding="utf-8"))'
        "$marey" report --json pipeline.marey | python3 -m json.tool >/dev/null || fail "report: --json is valid"
        "$marey" info --json pipeline.marey | python3 -m json.tool >/dev/null || fail "info: --json is valid"
    fi
    if "$marey" export pipeline.marey -o pipeline.json.gz 2>/dev/null; then
        gzip -dc pipeline.json.gz | cmp - pipeline.json || fail "export: .gz has the same content"
    fi
    tail -n 1 pipeline.json | grep -q ',"traceName":"pipeline.json"}$' || fail "export: the file contains its name"
    "$marey" export pipeline.marey -o - 2>/dev/null | cmp - <(sed '$ s/,"traceName":"pipeline.json"//' pipeline.json) || fail "export: to standard output"
    if "$marey" compact pipeline.marey >compacted 2>&1; then
        grep -Eq 'pipeline\.compact\.marey: .* -> .* bytes per range' compacted || fail "compact" "$(cat compacted)"
        cmp <("$marey" report --csv pipeline.marey) <("$marey" report --csv pipeline.compact.marey) ||
            fail "compact: the same report"
    else
        grep -Eqi 'zstd' compacted || fail "compact" "$(cat compacted)"
    fi

    # The reader closes the pipe: no message, whether SIGPIPE is ignored or not.
    errors=$({ "$marey" export pipeline.marey -o - 3>&1 2>&3 | head -c 1 >/dev/null; } 3>&1)
    errors+=$( (trap '' PIPE; { "$marey" report --csv --by thread pipeline.marey 2>&3; } | true) 3>&1)
    [ -z "$errors" ] || fail "a broken pipe is quiet" "$errors"

    # Colour: none in a pipe; on a terminal yes, unless NO_COLOR.
    escape=$(printf '\033')
    "$marey" report pipeline.marey | grep -q "$escape" && fail "no colour in a pipe"
    if command -v script >/dev/null; then
        TERM=xterm script -qec "'$marey' report pipeline.marey" /dev/null </dev/null | grep -q "$escape" ||
            fail "colour on a terminal"
        TERM=xterm NO_COLOR=1 script -qec "'$marey' report pipeline.marey" /dev/null </dev/null | grep -q "$escape" &&
            fail "NO_COLOR is honoured"
    fi
else
    echo "no example program: captures are not read"
fi

[ $failures = 0 ] && echo "all passed"
exit $((failures > 0))
