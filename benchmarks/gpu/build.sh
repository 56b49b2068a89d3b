#!/usr/bin/env bash
# build.sh BUILD_DIR: compile launches.cu against the libmarey in BUILD_DIR. CUDA is found in CUDA_HOME (default /usr/local/cuda).
set -euo pipefail
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")" && pwd)
cuda=${CUDA_HOME:-/usr/local/cuda}
[ -x "$cuda/bin/nvcc" ] || { echo "bench-gpu: CUDA compiler $cuda/bin/nvcc not found; set CUDA_HOME" >&2; exit 1; }
"$cuda/bin/nvcc" -std=c++20 -O2 -I"$source/../../include" -I"$cuda/extras/CUPTI/include" "$source/launches.cu" \
    -o "$build/gpu_launches" -L"$build" -lmarey -L"$cuda/extras/CUPTI/lib64" -L"$cuda/lib64" -lcupti \
    -Xlinker "-rpath=$build:$cuda/extras/CUPTI/lib64:$cuda/lib64"
