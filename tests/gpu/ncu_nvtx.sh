#!/usr/bin/env bash
# ncu_nvtx.sh: emit_nvtx under NVIDIA's tool: Nsight Compute must show Marey's ranges around the kernels launched in
# them. Needs a GPU, ncu, and a Python ($PYTHON, python3) that has marey and torch. Exits with 77 if one is missing.
set -u
python=${PYTHON:-python3}
ncu=${NCU:-ncu}
skip() {
    echo "ncu_nvtx: skipped: $1"
    exit 77
}
command -v "$ncu" >/dev/null || ncu=$(ls -d /usr/local/cuda*/bin/ncu /opt/nvidia/nsight-compute/*/ncu 2>/dev/null | tail -1)
[ -n "$ncu" ] || skip "ncu (Nsight Compute) not found"
"$python" -c 'import marey, torch; assert marey.nvtx.is_available() and torch.cuda.is_available()' 2>/dev/null ||
    skip "$python lacks marey with NVTX, torch, or a GPU"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/program.py" <<'PYTHON'
import torch
import marey

a = torch.ones(256, 256, device="cuda")
torch.cuda.synchronize()
with marey.emit_nvtx():
    with marey.record_function("outer range"):
        with marey.record_function("inner range"):
            a.add_(1)
        a.mul_(2)
        torch.cuda.synchronize()
a.sub_(3)  # outside
torch.cuda.synchronize()
PYTHON

failures=0
fail() {
    echo "FAILED: $1"
    failures=$((failures + 1))
}
# profile OPTION...: ncu's report on the kernels that it profiles.
profile() {
    timeout 300 "$ncu" --nvtx "$@" --metrics gpu__time_duration.sum "$python" "$folder/program.py" 2>&1
}
# kernels_in TEXT RANGE: the number of kernels that have RANGE on the stack that ncu prints after them. Empty RANGE: all.
kernels_in() {
    awk -v range="$2" '
        /, Context [0-9]+, Stream [0-9]+/ { count += found; found = (range == "") }
        range != "" && $0 ~ ("<[0-9]+," range) { found = 1 }
        END { print count + found }' <<<"$1"
}
expect() {
    [ "$2" = "$3" ] || fail "$1: $2, expected $3"
}

# The text of a range continues after its name (", op_id = N").
all=$(profile)
if grep -q ERR_NVGPUCTRPERM <<<"$all"; then skip "no permission to read the GPU's counters (ERR_NVGPUCTRPERM)"; fi
expect "kernels in the inner range" "$(kernels_in "$all" 'inner range, op_id = [0-9]+')" 1
expect "kernels in the outer range" "$(kernels_in "$all" 'outer range, op_id = [0-9]+')" 2
[ "$(kernels_in "$all" '')" -ge 3 ] || fail "$(kernels_in "$all" '') kernels in total, expected at least 3"
[ $failures = 0 ] || tail -60 <<<"$all"

# The innermost range as the kernel's name.
renamed=$(profile --print-nvtx-rename kernel)
grep -Eq 'inner range.*Context' <<<"$renamed" || fail "no kernel is named after its range: $(tail -40 <<<"$renamed")"

# The listener with another tool present: `marey run --nvtx` must leave that tool in place and print a notice.
notice=$(NVTX_INJECTION64_PATH=/opt/other/libother.so "$python" -m marey run --nvtx -q -o "$folder/a.marey" -c 'pass' 2>&1)
grep -q 'go to another tool' <<<"$notice" || fail "no notice about the other tool: $notice"

# The listener alone: it records the ranges that torch pushes.
"$python" -m marey run --nvtx --no-calls -q -o "$folder/b.marey" -c '
import torch
torch.cuda.nvtx.range_push("of torch")
torch.ones(4, device="cuda").add_(1)
torch.cuda.nvtx.range_pop()' || fail "marey run --nvtx failed"
"$python" -m marey report "$folder/b.marey" | grep -q 'of torch' || fail "the torch.cuda.nvtx range was not recorded"

[ $failures = 0 ] && echo "ncu_nvtx: all passed"
exit $((failures > 0))
