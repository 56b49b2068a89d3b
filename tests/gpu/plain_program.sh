#!/usr/bin/env bash
# plain_program.sh: a CUDA program that is not linked with Marey, under `marey run --gpu`. Needs MAREY_BUILD_DIR and
# CUDA's compiler (in CUDA_HOME, default /usr/local/cuda); skipped without it.
source=$(cd "$(dirname "$0")" && pwd)
MAREY_BIN=$MAREY_BUILD_DIR/marey
. "$source/../cli/check.bash"
unset NVTX_INJECTION64_PATH CUDA_INJECTION64_PATH
nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
[ -x "$nvcc" ] || { echo "plain_program: skipped: $nvcc not found"; exit 77; }
"$nvcc" -std=c++17 "$source/plain_program.cu" -o plain -ldl || exit 1

# has_kernels FILE: whether the kernels of every context were recorded once.
has_kernels() {
    "$marey" gpu --csv --columns name,count "$1" | grep -q '"\?before_reset(float\*)"\?,300$' &&
        "$marey" gpu --csv --columns name,count "$1" | grep -q '"\?after_reset(float\*)"\?,150$'
}

check "exit code and output" 3 '^no error$' "$marey" run --gpu -o a.marey -- ./plain
has_kernels a.marey || fail "each kernel once" "$("$marey" gpu a.marey)" "$("$marey" gpu --csv a.marey)"
"$marey" gpu a.marey >a.txt
grep -q unattributed a.txt && fail "not every kernel is attributed to a range" "$(cat a.txt)"
check "launching range" 0 '300  before$' cat a.txt
check "device description" 0 '^device +cuda 0, .+ multiprocessors' cat a.txt
"$marey" info a.marey | grep '^problem: ' && fail "the capture reports a problem" "$("$marey" info a.marey)"
check "with memory" 3 '^no error$' "$marey" run --gpu --memory -o b.marey -- ./plain
has_kernels b.marey || fail "each kernel once, with memory" "$("$marey" gpu b.marey)"
check "allocations" 0 'cuda' "$marey" memory b.marey
check "killed program" 137 'before_reset\(float\*\).* \(300x\)' "$marey" run --gpu -o c.marey -- ./plain die
has_kernels c.marey || fail "each kernel once, killed program" "$("$marey" gpu c.marey)"
check "device description, killed program" 0 '^device +cuda 0, .+ multiprocessors' "$marey" gpu c.marey
check "two processes at once" 0 '1 other process' "$marey" run --gpu --keep-captures -o d.marey -- sh -c './plain & ./plain; wait'
for capture in d*.marey; do
    has_kernels "$capture" || fail "each kernel once, two processes" "$("$marey" gpu "$capture")"
done
[ "$(ls d*.marey | wc -l)" = 2 ] || fail "one capture per process" "$(ls)"
# A program that loads Marey before CUDA and forks in between: the child uses the GPU.
check "a fork before CUDA" 0 '' env LD_PRELOAD="$MAREY_BUILD_DIR/libmarey.so" "$marey" run --gpu --keep-captures -o e.marey -- ./plain fork
child=$(ls e.*.marey)
has_kernels "$child" || fail "each kernel once, forked child" "$(ls)" "$("$marey" gpu "$child")" "$("$marey" info "$child")"
check "thread that only called CUDA" 0 '^plain ' "$marey" info "$child"
check "clock readings at both ends" 0 '\([2-9][0-9]* readings' "$marey" info a.marey
check "recording waits" 3 '^no error$' "$marey" run --gpu --gpu-activities all -o f.marey -- ./plain
check "waits in the report" 0 'Context Sync' "$marey" report --limit 0 f.marey

# Python packages: NVIDIA's CUPTI package is installed next to Marey.
mkdir -p site/marey site/nvidia/cu13/lib
cp -L "$MAREY_BUILD_DIR"/marey "$MAREY_BUILD_DIR"/libmarey.so* "$MAREY_BUILD_DIR"/libmarey_cuda.so site/marey
cupti=$("$marey" doctor | sed -n 's/.*CUPTI: .*(\(.*\))$/\1/p')
ln -s "$cupti" site/nvidia/cu13/lib/libcupti.so.13
check "CUPTI from a Python package" 0 'CUPTI: .*/nvidia/cu13/lib/libcupti' \
    env LD_LIBRARY_PATH="$PWD/site/marey:${LD_LIBRARY_PATH:-}" site/marey/marey doctor

[ $failures = 0 ] && echo "plain_program: all passed"
exit $((failures > 0))
