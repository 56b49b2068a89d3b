#!/usr/bin/env bash
# doctor.sh: `kymo doctor`, and what `kymo run --gpu` passes on. Needs KYMO_BIN.
. "$(dirname "$0")/check.bash"
unset NVTX_INJECTION64_PATH CUDA_INJECTION64_PATH

check "help" 0 'Usage: kymo doctor' "$kymo" doctor --help
check "recording works" 0 '^ok +recording +into \.' "$kymo" doctor
check "the clock" 0 '^(ok|off) +clock +[a-z0-9_]+ at ' "$kymo" doctor
check "what ranges cost" 0 '^ok +costs +range [0-9.]+ ns' "$kymo" doctor
check "the disk" 0 '^(ok|BAD) +space +.* free' "$kymo" doctor
check "lines of C++" 0 '^(ok|off) +symbols ' "$kymo" doctor
check "the GPU, or what is missing" 0 '^(ok|off) +cuda +.+' "$kymo" doctor
if "$kymo" doctor | grep -q '^ok *cuda'; then
    check "without CUPTI" 0 '^off +cuda +CUPTI.*is not found.*timed with events' env KYMO_CUPTI=/nowhere/libcupti.so "$kymo" doctor
    check "which CUPTI" 0 'CUPTI: API version [0-9]+ \(/' "$kymo" doctor
fi
check "Python, or what is missing" 0 '^(ok|off|BAD) +python +.+' "$kymo" doctor
check "the last word" 0 '^Recording works here\.$' "$kymo" doctor
[ -z "$(ls)" ] || fail "it leaves nothing behind" "$(ls)"

check "a folder that is not there" 2 '^BAD recording .*missing' "$kymo" doctor --folder missing
check "what would help" 2 '  fix: give a folder that can be written' "$kymo" doctor --folder missing
check "the last word then" 2 '^Recording does not work here: see above\.$' "$kymo" doctor --folder missing
mkdir other
check "another folder" 0 '^ok +recording +into other' "$kymo" doctor --folder other
[ -z "$(ls other)" ] || fail "it leaves nothing behind there" "$(ls other)"

check "nobody listens to NVTX" 0 '^ok +nvtx ' "$kymo" doctor
check "another tool listens to NVTX" 0 '^off +nvtx +.*/opt/tool\.so' \
    env NVTX_INJECTION64_PATH=/opt/tool.so "$kymo" doctor
check "and what would help" 0 'fix: unset NVTX_INJECTION64_PATH' \
    env NVTX_INJECTION64_PATH=/opt/tool.so "$kymo" doctor
check "another tool may hold CUPTI" 0 'another tool: CUDA_INJECTION64_PATH is /opt/tool\.so' \
    env CUDA_INJECTION64_PATH=/opt/tool.so "$kymo" doctor
check "a Python that is not there" 0 '^(BAD|off) +python ' env KYMO_PYTHON=/nowhere/python "$kymo" doctor

check "run --gpu" 0 ',devices=cuda(,|$)' "$kymo" run -q --gpu -- sh -c 'echo "$KYMO"'
check "run --gpu=NAME" 0 ',devices=my\\,device(,|$)' "$kymo" run -q --gpu=my,device -- sh -c 'echo "$KYMO"'
check "run without" 0 'out=' "$kymo" run -q -- sh -c 'echo "$KYMO"'
"$kymo" run -q -- sh -c 'echo "$KYMO"' 2>&1 | grep -q 'devices=' && fail "run without --gpu asks for no device"
check "run --gpu with a wrong name" 2 "^kymo: run: --gpu: 'a\|b' is no name" "$kymo" run --gpu='a|b' -- true

example=${KYMO_BUILD_DIR:-}/examples/hello
if [ -x "$example" ] && [ "$("$kymo" doctor | grep -c '^off *cuda')" = 1 ]; then
    check "a program runs where there is no GPU" 0 "kymo: .*'cuda'" "$kymo" run --gpu -o no.kymo -- "$example"
fi

exit $((failures > 0))
