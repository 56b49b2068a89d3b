#!/usr/bin/env bash
# run.sh BUILD_DIR: checks that Marey can be configured without CUDA and NVTX headers, prints what it leaves out, and
# compiles the files for GPUs.
set -euo pipefail
here="$(cd "$(dirname "$0")/../.." && pwd)"
build="$(cd "$1" && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

cached() {  # cached NAME: prints a variable of the build folder's cache
    sed -n "s/^$1:[^=]*=//p" "$build/CMakeCache.txt"
}
cmake -S "$here" -B "$work" -G Ninja -DCMAKE_CXX_COMPILER="$(cached CMAKE_CXX_COMPILER)" \
    -DCMAKE_CXX_COMPILER_LAUNCHER="$(cached CMAKE_CXX_COMPILER_LAUNCHER)" -DMAREY_DEPS_DIR="$(cached MAREY_DEPS_DIR)" \
    -DMAREY_NVTX_DIR=OFF -DMAREY_CUPTI_DIR=OFF -DMAREY_CUDA_DIR=OFF -DMAREY_WERROR=ON -DMAREY_UNITY=OFF -DMAREY_BUILD_TESTS=OFF \
    -DMAREY_BUILD_BENCHMARKS=OFF -DMAREY_BUILD_EXAMPLES=OFF >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
grep "ranges for NVTX left out" "$work/log" || { cat "$work/log"; exit 1; }

cd "$work"
mapfile -t objects < <(ninja -t targets all | sed -n 's/: CXX_COMPILER.*//p' |
    grep -E 'sources/(cuda|nvtx)/|emitters/nvtx_tool')
[ "${#objects[@]}" -gt 5 ] || { echo "the files for GPUs are not in the build"; exit 1; }
ninja "${objects[@]}" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
echo "${#objects[@]} files compiled"
