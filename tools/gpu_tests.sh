#!/usr/bin/env bash
# gpu_tests.sh BUILD: runs the tests that need an NVIDIA GPU. Needs a Python interpreter ($PYTHON, default python3) that
# has PyTorch and can load the package in BUILD. SOAK_SECONDS (180) is the duration of the recorded training loop.
set -uo pipefail
cd "$(dirname "$0")/.."
build="$PWD/$1"
export PYTHON="${PYTHON:-python3}" PYTHONPATH="$build/python" MAREY_BUILD_DIR="$build" PYTHONDONTWRITEBYTECODE=1
failed=()
skipped=()
# run NAME COMMAND...: exit status 77 means skipped, as in ctest.
run() {
    local name=$1 status=0
    shift
    echo "== $name"
    "$@" || status=$?
    if [ "$status" = 77 ]; then
        skipped+=("$name")
    elif [ "$status" != 0 ]; then
        failed+=("$name")
    fi
}
run "device tests, general and CUDA" "$build/tests/device_cuda" --gtest_brief=1
run "contexts" "$PYTHON" tests/gpu/contexts.py
run "a CUDA program without Marey" tests/gpu/plain_program.sh
run "other profilers" "$PYTHON" tests/gpu/other_profilers.py
run "device events compared with CUPTI" "$PYTHON" tests/gpu/events_against_cupti.py
run "comparison with torch.profiler" "$PYTHON" tests/gpu/compare_with_torch.py
run "emit_nvtx under ncu" tests/gpu/ncu_nvtx.sh
run "soak" "$PYTHON" tests/gpu/soak.py "${SOAK_SECONDS:-180}"
[ "${#skipped[@]}" = 0 ] || printf 'skipped: %s\n' "${skipped[@]}"
if [ "${#failed[@]}" != 0 ]; then
    printf 'FAILED: %s\n' "${failed[@]}"
    exit 1
fi
echo "gpu_tests: all tests that ran passed"
