#!/usr/bin/env bash
# plain_program.sh: a CUDA program that is not linked to Kymo under `kymo run --gpu`. Needs KYMO_BUILD_DIR, and CUDA's
# compiler (CUDA_HOME, or /usr/local/cuda): left out without it.
source=$(cd "$(dirname "$0")" && pwd)
KYMO_BIN=$KYMO_BUILD_DIR/kymo
. "$source/../cli/check.bash"
unset NVTX_INJECTION64_PATH CUDA_INJECTION64_PATH
nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
[ -x "$nvcc" ] || { echo "plain_program: left out: $nvcc is not there"; exit 77; }
"$nvcc" -std=c++17 "$source/plain_program.cu" -o plain -ldl || exit 1

# has_kernels FILE: each kernel once, of every context.
has_kernels() {
    "$kymo" gpu --csv "$1" | grep -q '"\?before_reset(float\*)"\?,300,' &&
        "$kymo" gpu --csv "$1" | grep -q '"\?after_reset(float\*)"\?,150,'
}

check "its exit code, and its output" 3 '^no error$' "$kymo" run --gpu -o a.kymo -- ./plain
has_kernels a.kymo || fail "each kernel once" "$("$kymo" gpu a.kymo)" "$("$kymo" gpu --csv a.kymo)"
"$kymo" gpu a.kymo >a.txt
grep -q unattributed a.txt && fail "every kernel is launched in a range" "$(cat a.txt)"
check "the range that launched them" 0 '300  before$' cat a.txt
check "what the device is" 0 '^device +cuda 0, .+ multiprocessors' cat a.txt
"$kymo" info a.kymo | grep '^problem: ' && fail "no problem" "$("$kymo" info a.kymo)"
check "with memory" 3 '^no error$' "$kymo" run --gpu --memory -o b.kymo -- ./plain
has_kernels b.kymo || fail "each kernel once, with memory" "$("$kymo" gpu b.kymo)"
check "its allocations" 0 'cuda' "$kymo" memory b.kymo
check "a program that is killed" 137 'before_reset\(float\*\).* \(300x\)' "$kymo" run --gpu -o c.kymo -- ./plain die
has_kernels c.kymo || fail "each kernel once, of one that was killed" "$("$kymo" gpu c.kymo)"
check "what the device of a killed program is" 0 '^device +cuda 0, .+ multiprocessors' "$kymo" gpu c.kymo
check "two at once" 0 '1 other process' "$kymo" run --gpu -o d.kymo -- sh -c './plain & ./plain; wait'
for capture in d*.kymo; do
    has_kernels "$capture" || fail "each kernel once, of two" "$("$kymo" gpu "$capture")"
done
[ "$(ls d*.kymo | wc -l)" = 2 ] || fail "a capture each" "$(ls)"
# One that has Kymo before it has CUDA, and forks in between: the child has the GPU.
check "a fork before CUDA" 0 '' env LD_PRELOAD="$KYMO_BUILD_DIR/libkymo.so" "$kymo" run --gpu -o e.kymo -- ./plain fork
child=$(ls e.*.kymo)
has_kernels "$child" || fail "each kernel once, of the child" "$(ls)" "$("$kymo" gpu "$child")" "$("$kymo" info "$child")"
check "the thread that only called CUDA" 0 '^plain ' "$kymo" info "$child"
check "the clock, at both ends" 0 '\([2-9][0-9]* readings' "$kymo" info a.kymo
check "waits" 3 '^no error$' "$kymo" run --gpu --gpu-activities all -o f.kymo -- ./plain
check "are there" 0 'Context Sync' "$kymo" report --rows 0 f.kymo

# Python's packages: NVIDIA's CUPTI beside Kymo.
mkdir -p site/kymo site/nvidia/cu13/lib
cp -L "$KYMO_BUILD_DIR"/kymo "$KYMO_BUILD_DIR"/libkymo.so* "$KYMO_BUILD_DIR"/libkymo_cuda.so site/kymo
cupti=$("$kymo" doctor | sed -n 's/.*CUPTI: .*(\(.*\))$/\1/p')
ln -s "$cupti" site/nvidia/cu13/lib/libcupti.so.13
check "CUPTI of a package beside Kymo" 0 'CUPTI: .*/nvidia/cu13/lib/libcupti' \
    env LD_LIBRARY_PATH="$PWD/site/kymo:${LD_LIBRARY_PATH:-}" site/kymo/kymo doctor

[ $failures = 0 ] && echo "plain_program: all passed"
exit $((failures > 0))
