#!/usr/bin/env bash
# doctor.sh: `marey doctor`. Needs MAREY_BIN.
. "$(dirname "$0")/check.bash"
unset NVTX_INJECTION64_PATH CUDA_INJECTION64_PATH

check "help" 0 'Usage: marey doctor' "$marey" doctor --help
check "recording works" 0 '^ok +recording +into \.' "$marey" doctor
check "the clock" 0 '^(ok|off) +clock +[a-z0-9_]+ at ' "$marey" doctor
check "the cost of ranges" 0 '^ok +costs +range [0-9.]+ ns' "$marey" doctor
check "the disk" 0 '^(ok|BAD) +space +.* free' "$marey" doctor
check "C++ line numbers" 0 '^(ok|off) +symbols ' "$marey" doctor
check "the GPU, or the reason" 0 '^(ok|off) +cuda +.+' "$marey" doctor
if "$marey" doctor | grep -q '^ok *cuda'; then
    check "without CUPTI" 0 '^off +cuda +.*CUPTI not found.*timed with events' env MAREY_CUPTI=/nowhere/libcupti.so "$marey" doctor
    check "which CUPTI" 0 'CUPTI: API version [0-9]+ \(/' "$marey" doctor
fi
check "Python, or the reason" 0 '^(ok|off|BAD) +python +.+' "$marey" doctor
check "the last line" 0 '^Recording works here\.$' "$marey" doctor
[ -z "$(ls)" ] || fail "it leaves no files" "$(ls)"

check "a missing folder" 2 '^BAD recording .*missing' "$marey" doctor --folder missing
check "the fix" 2 '  fix: use a writable folder' "$marey" doctor --folder missing
check "the last line on failure" 2 '^Recording does not work here: see above\.$' "$marey" doctor --folder missing
mkdir other
check "another folder" 0 '^ok +recording +into other' "$marey" doctor --folder other
[ -z "$(ls other)" ] || fail "it leaves no files in another folder" "$(ls other)"

check "no tool is attached to NVTX" 0 '^ok +nvtx ' "$marey" doctor
check "another tool is attached to NVTX" 0 '^off +nvtx +.*/opt/tool\.so' \
    env NVTX_INJECTION64_PATH=/opt/tool.so "$marey" doctor
check "the fix for another tool" 0 'fix: unset NVTX_INJECTION64_PATH' \
    env NVTX_INJECTION64_PATH=/opt/tool.so "$marey" doctor
check "another tool may hold CUPTI" 0 'another tool: CUDA_INJECTION64_PATH is /opt/tool\.so' \
    env CUDA_INJECTION64_PATH=/opt/tool.so "$marey" doctor
check "a missing Python" 0 '^(BAD|off) +python ' env MAREY_PYTHON=/nowhere/python "$marey" doctor

check "marey run --gpu does not count as another tool" 0 '^ok +nvtx +Marey is attached' "$marey" run -q --gpu -- "$marey" doctor
"$marey" run -q --gpu -- "$marey" doctor 2>&1 | grep -q 'another tool' && fail "Marey does not count as another tool"

exit $((failures > 0))
