#!/usr/bin/env bash
# doctor.sh: `marey doctor`. Needs MAREY_BIN.
. "$(dirname "$0")/check.bash"
unset NVTX_INJECTION64_PATH CUDA_INJECTION64_PATH

check "help" 0 'Usage: marey doctor' "$marey" doctor --help
check "recording works" 0 '^ok +recording +into \.' "$marey" doctor
check "the clock" 0 '^(ok|off) +clock +[a-z0-9_]+ at ' "$marey" doctor
check "what ranges cost" 0 '^ok +costs +range [0-9.]+ ns' "$marey" doctor
check "the disk" 0 '^(ok|BAD) +space +.* free' "$marey" doctor
check "lines of C++" 0 '^(ok|off) +symbols ' "$marey" doctor
check "the GPU, or what is missing" 0 '^(ok|off) +cuda +.+' "$marey" doctor
if "$marey" doctor | grep -q '^ok *cuda'; then
    check "without CUPTI" 0 '^off +cuda +CUPTI.*is not found.*timed with events' env MAREY_CUPTI=/nowhere/libcupti.so "$marey" doctor
    check "which CUPTI" 0 'CUPTI: API version [0-9]+ \(/' "$marey" doctor
fi
check "Python, or what is missing" 0 '^(ok|off|BAD) +python +.+' "$marey" doctor
check "the last word" 0 '^Recording works here\.$' "$marey" doctor
[ -z "$(ls)" ] || fail "it leaves nothing behind" "$(ls)"

check "a folder that is not there" 2 '^BAD recording .*missing' "$marey" doctor --folder missing
check "what would help" 2 '  fix: give a folder that can be written' "$marey" doctor --folder missing
check "the last word then" 2 '^Recording does not work here: see above\.$' "$marey" doctor --folder missing
mkdir other
check "another folder" 0 '^ok +recording +into other' "$marey" doctor --folder other
[ -z "$(ls other)" ] || fail "it leaves nothing behind there" "$(ls other)"

check "nobody listens to NVTX" 0 '^ok +nvtx ' "$marey" doctor
check "another tool listens to NVTX" 0 '^off +nvtx +.*/opt/tool\.so' \
    env NVTX_INJECTION64_PATH=/opt/tool.so "$marey" doctor
check "and what would help" 0 'fix: unset NVTX_INJECTION64_PATH' \
    env NVTX_INJECTION64_PATH=/opt/tool.so "$marey" doctor
check "another tool may hold CUPTI" 0 'another tool: CUDA_INJECTION64_PATH is /opt/tool\.so' \
    env CUDA_INJECTION64_PATH=/opt/tool.so "$marey" doctor
check "a Python that is not there" 0 '^(BAD|off) +python ' env MAREY_PYTHON=/nowhere/python "$marey" doctor

check "the variables of marey run --gpu name no other tool" 0 '^ok +nvtx +Marey listens' "$marey" run -q --gpu -- "$marey" doctor
"$marey" run -q --gpu -- "$marey" doctor 2>&1 | grep -q 'another tool' && fail "Marey is no other tool"

exit $((failures > 0))
