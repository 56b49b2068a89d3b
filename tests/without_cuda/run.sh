#!/usr/bin/env bash
# run.sh BUILD_DIR: where no header of CUDA or NVTX is found, Kymo is configured all the same, says what it leaves out, and
# the files that speak to GPUs compile.
set -euo pipefail
here="$(cd "$(dirname "$0")/../.." && pwd)"
build="$(cd "$1" && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

cached() {  # cached NAME: a variable of the build folder's cache
    sed -n "s/^$1:[^=]*=//p" "$build/CMakeCache.txt"
}
cmake -S "$here" -B "$work" -G Ninja -DCMAKE_CXX_COMPILER="$(cached CMAKE_CXX_COMPILER)" \
    -DCMAKE_CXX_COMPILER_LAUNCHER="$(cached CMAKE_CXX_COMPILER_LAUNCHER)" -DKYMO_DEPS_DIR="$(cached KYMO_DEPS_DIR)" \
    -DKYMO_NVTX_DIR=OFF -DKYMO_CUPTI_DIR=OFF -DKYMO_CUDA_DIR=OFF -DKYMO_WERROR=ON -DKYMO_BUILD_TESTS=OFF \
    -DKYMO_BUILD_BENCHMARKS=OFF -DKYMO_BUILD_EXAMPLES=OFF >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
grep "ranges for NVTX left out" "$work/log" || { cat "$work/log"; exit 1; }

cd "$work"
mapfile -t objects < <(ninja -t targets all | sed -n 's/: CXX_COMPILER.*//p' |
    grep -E 'sources/(cuda|nvtx)/|emitters/nvtx_tool')
[ "${#objects[@]}" -gt 5 ] || { echo "the files that speak to GPUs are not in the build"; exit 1; }
ninja "${objects[@]}" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
echo "${#objects[@]} files compiled"
