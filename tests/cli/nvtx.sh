#!/usr/bin/env bash
# nvtx.sh: `marey run --nvtx`. Needs MAREY_BIN; if MAREY_TEST_BIN_DIR has nvtx_program, a program that uses NVTX is run.
. "$(dirname "$0")/check.bash"
unset NVTX_INJECTION64_PATH

check "run sets the listener" 0 '^/.*/libmarey\.so[^ ]* .*,nvtx=on' \
    "$marey" run --nvtx -- sh -c 'echo "$NVTX_INJECTION64_PATH $MAREY"'
check "only on request" 0 '^ out=' "$marey" run -- sh -c 'echo "$NVTX_INJECTION64_PATH $MAREY"'
check "an empty variable counts as unset" 0 '^/.*/libmarey\.so' \
    env NVTX_INJECTION64_PATH= "$marey" run --nvtx -- sh -c 'echo "$NVTX_INJECTION64_PATH"'
other=(env NVTX_INJECTION64_PATH=/opt/other/libother.so "$marey" run --nvtx)
check "another tool keeps its listener" 0 '^/opt/other/libother\.so$' \
    "${other[@]}" -- sh -c 'echo "$NVTX_INJECTION64_PATH"'
check "a notice about the other tool" 0 '^marey: --nvtx: NVTX ranges go to another tool: NVTX_INJECTION64_PATH is /opt/other/libother\.so' \
    "${other[@]}" -- true

program=${MAREY_TEST_BIN_DIR:-}/nvtx_program
if [ -x "$program" ]; then
    check "a program that is not linked to Marey" 0 '13 events kept \(9 ranges, 4 instants\)' \
        "$marey" run --nvtx -o a.marey -- "$program" every_function
    check "its output is unchanged" 0 '^0 1 2 2 1 0 -1$' "$marey" run --nvtx -- "$program" every_function
    check "its ranges" 0 'push w ä' "$marey" report a.marey
    "$marey" export a.marey -o a.json --to chrome >/dev/null 2>&1
    grep -q '"cat":"library","name":"registered a"' a.json || fail "the domain is the category" "$(head -c 2000 a.json)"
    grep -q '"cat":"nvtx","name":"push a"' a.json || fail "the default domain is nvtx"
    check "without --nvtx" 0 'nothing was recorded: .* are not linked to Marey, or are setuid' \
        "$marey" run -- "$program" every_function
fi
check "a program that uses no NVTX" 0 'nothing was recorded: .* are not linked to Marey and did not call NVTX' \
    "$marey" run --nvtx -- true

[ $failures = 0 ] && echo "all passed"
exit $((failures > 0))
