#!/usr/bin/env bash
# ncu_nvtx.sh: emit_nvtx under the vendor's own tool: Nsight Compute must see Marey's ranges around the kernels launched in
# them. Needs a GPU, ncu, and a Python ($PYTHON, python3) that has marey and torch. Exits with 77 where one is missing.
set -u
python=${PYTHON:-python3}
ncu=${NCU:-ncu}
left_out() {
    echo "ncu_nvtx: left out: $1"
    exit 77
}
command -v "$ncu" >/dev/null || ncu=$(ls -d /usr/local/cuda*/bin/ncu /opt/nvidia/nsight-compute/*/ncu 2>/dev/null | tail -1)
[ -n "$ncu" ] || left_out "ncu (Nsight Compute) is not here"
"$python" -c 'import marey, torch; assert marey.nvtx.is_available() and torch.cuda.is_available()' 2>/dev/null ||
    left_out "$python has no marey with NVTX, no torch, or no GPU"

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
# profile OPTION...: what ncu says of the kernels that it profiles.
profile() {
    timeout 300 "$ncu" --nvtx "$@" --metrics gpu__time_duration.sum "$python" "$folder/program.py" 2>&1
}
# kernels_in TEXT RANGE: how many of the kernels have it on the stack that ncu prints behind them. Empty: of all.
kernels_in() {
    awk -v range="$2" '
        /, Context [0-9]+, Stream [0-9]+/ { count += found; found = (range == "") }
        range != "" && $0 ~ ("<[0-9]+," range) { found = 1 }
        END { print count + found }' <<<"$1"
}
expect() {
    [ "$2" = "$3" ] || fail "$1: $2, not $3"
}

# The text of a range goes on behind its name (", op_id = N").
all=$(profile)
if grep -q ERR_NVGPUCTRPERM <<<"$all"; then left_out "this user may not use the GPU's counters (ERR_NVGPUCTRPERM)"; fi
expect "kernels in the inner range" "$(kernels_in "$all" 'inner range, op_id = [0-9]+')" 1
expect "kernels in the outer range" "$(kernels_in "$all" 'outer range, op_id = [0-9]+')" 2
[ "$(kernels_in "$all" '')" -ge 3 ] || fail "$(kernels_in "$all" '') kernels in all, not 3 or more"
[ $failures = 0 ] || tail -60 <<<"$all"

# The innermost range as the kernel's name.
renamed=$(profile --print-nvtx-rename kernel)
grep -Eq 'inner range.*Context' <<<"$renamed" || fail "no kernel is called by its range: $(tail -40 <<<"$renamed")"

# The listener beside it: ncu is the tool, so `marey run --nvtx` must leave it there and say so.
said=$(NVTX_INJECTION64_PATH=/opt/other/libother.so "$python" -m marey run --nvtx -q -o "$folder/a.marey" -c 'pass' 2>&1)
grep -q 'ranges of NVTX go to another tool' <<<"$said" || fail "no word of the other tool: $said"

# And alone: what torch pushes is heard.
"$python" -m marey run --nvtx --no-calls -q -o "$folder/b.marey" -c '
import torch
torch.cuda.nvtx.range_push("of torch")
torch.ones(4, device="cuda").add_(1)
torch.cuda.nvtx.range_pop()' || fail "marey run --nvtx failed"
"$python" -m marey report "$folder/b.marey" | grep -q 'of torch' || fail "the range of torch.cuda.nvtx was not heard"

[ $failures = 0 ] && echo "ncu_nvtx: all passed"
exit $((failures > 0))
