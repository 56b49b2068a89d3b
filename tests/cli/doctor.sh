#!/usr/bin/env bash
# doctor.sh: `kymo doctor`. Needs KYMO_BIN.
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

check "the variables of kymo run --gpu name no other tool" 0 '^ok +nvtx +Kymo listens' "$kymo" run -q --gpu -- "$kymo" doctor
"$kymo" run -q --gpu -- "$kymo" doctor 2>&1 | grep -q 'another tool' && fail "Kymo is no other tool"

exit $((failures > 0))
