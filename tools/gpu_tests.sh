#!/usr/bin/env bash
# gpu_tests.sh BUILD: what only a machine with an NVIDIA GPU can show. Needs a Python ($PYTHON, python3) that has PyTorch
# and can load the package of BUILD. SOAK_SECONDS (180): how long a training loop is recorded.
set -uo pipefail
cd "$(dirname "$0")/.."
build="$PWD/$1"
export PYTHON="${PYTHON:-python3}" PYTHONPATH="$build/python" MAREY_BUILD_DIR="$build" PYTHONDONTWRITEBYTECODE=1
failed=()
left_out=()
# run NAME COMMAND...: 77 is left out, as in ctest.
run() {
    local name=$1 status=0
    shift
    echo "== $name"
    "$@" || status=$?
    if [ "$status" = 77 ]; then
        left_out+=("$name")
    elif [ "$status" != 0 ]; then
        failed+=("$name")
    fi
}
run "the list of every device, and CUDA's own" "$build/tests/device_cuda" --gtest_brief=1
run "contexts" "$PYTHON" tests/gpu/contexts.py
run "a program that does not know Marey" tests/gpu/plain_program.sh
run "other profilers" "$PYTHON" tests/gpu/other_profilers.py
run "events against CUPTI" "$PYTHON" tests/gpu/events_against_cupti.py
run "comparison with torch.profiler" "$PYTHON" tests/gpu/compare_with_torch.py
run "emit_nvtx under ncu" tests/gpu/ncu_nvtx.sh
run "soak" "$PYTHON" tests/gpu/soak.py "${SOAK_SECONDS:-180}"
[ "${#left_out[@]}" = 0 ] || printf 'left out: %s\n' "${left_out[@]}"
if [ "${#failed[@]}" != 0 ]; then
    printf 'FAILED: %s\n' "${failed[@]}"
    exit 1
fi
echo "gpu_tests: all that ran passed"
