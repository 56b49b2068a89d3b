#!/usr/bin/env bash
# build.sh BUILD_DIR: compiles launches.cu against the libmarey there. CUDA's folder: CUDA_HOME, or /usr/local/cuda.
set -euo pipefail
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")" && pwd)
cuda=${CUDA_HOME:-/usr/local/cuda}
[ -x "$cuda/bin/nvcc" ] || { echo "bench-gpu: no compiler for CUDA: $cuda/bin/nvcc is not there" >&2; exit 1; }
"$cuda/bin/nvcc" -std=c++20 -O2 -I"$source/../../include" -I"$cuda/extras/CUPTI/include" "$source/launches.cu" \
    -o "$build/gpu_launches" -L"$build" -lmarey -L"$cuda/extras/CUPTI/lib64" -L"$cuda/lib64" -lcupti \
    -Xlinker "-rpath=$build:$cuda/extras/CUPTI/lib64:$cuda/lib64"
