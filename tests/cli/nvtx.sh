#!/usr/bin/env bash
# nvtx.sh: `kymo run --nvtx`. Needs KYMO_BIN; with KYMO_TEST_BIN_DIR holding nvtx_program, a program that uses NVTX is run.
. "$(dirname "$0")/check.bash"
unset NVTX_INJECTION64_PATH

check "run sets the listener" 0 '^/.*/libkymo\.so[^ ]* .*,nvtx=on' \
    "$kymo" run --nvtx -- sh -c 'echo "$NVTX_INJECTION64_PATH $KYMO"'
check "only when asked" 0 '^ out=' "$kymo" run -- sh -c 'echo "$NVTX_INJECTION64_PATH $KYMO"'
check "an empty variable is none" 0 '^/.*/libkymo\.so' \
    env NVTX_INJECTION64_PATH= "$kymo" run --nvtx -- sh -c 'echo "$NVTX_INJECTION64_PATH"'
other=(env NVTX_INJECTION64_PATH=/opt/other/libother.so "$kymo" run --nvtx)
check "another tool keeps its listener" 0 '^/opt/other/libother\.so$' \
    "${other[@]}" -- sh -c 'echo "$NVTX_INJECTION64_PATH"'
check "and that is said" 0 '^kymo: --nvtx: ranges of NVTX go to another tool: NVTX_INJECTION64_PATH is /opt/other/libother\.so' \
    "${other[@]}" -- true

program=${KYMO_TEST_BIN_DIR:-}/nvtx_program
if [ -x "$program" ]; then
    check "a program that does not know Kymo" 0 '13 events kept \(9 ranges, 4 instants\)' \
        "$kymo" run --nvtx -o a.kymo -- "$program" every_function
    check "what it prints is its own" 0 '^0 1 2 2 1 0 -1$' "$kymo" run --nvtx -- "$program" every_function
    check "its ranges" 0 'push w ä' "$kymo" report a.kymo
    "$kymo" export a.kymo -o a.json --to chrome >/dev/null 2>&1
    grep -q '"cat":"library","name":"registered a"' a.json || fail "the domain is the category" "$(head -c 2000 a.json)"
    grep -q '"cat":"nvtx","name":"push a"' a.json || fail "the default domain is nvtx"
    check "without --nvtx" 0 'nothing was recorded: .* is not linked to Kymo, or is setuid' \
        "$kymo" run -- "$program" every_function
fi
check "a program that uses no NVTX" 0 'nothing was recorded: .* is not linked to Kymo and did not call NVTX' \
    "$kymo" run --nvtx -- true

[ $failures = 0 ] && echo "all passed"
exit $((failures > 0))
