#!/usr/bin/env bash
# ncu_nvtx.sh: emit_nvtx under the vendor's own tool: Nsight Compute must see Kymo's ranges around the kernels launched in
# them. Needs a GPU, ncu, and a Python ($PYTHON, python3) that has kymo and torch. Exits with 77 where one is missing.
set -u
python=${PYTHON:-python3}
ncu=${NCU:-ncu}
left_out() {
    echo "ncu_nvtx: left out: $1"
    exit 77
}
command -v "$ncu" >/dev/null || ncu=$(ls -d /usr/local/cuda*/bin/ncu /opt/nvidia/nsight-compute/*/ncu 2>/dev/null | tail -1)
[ -n "$ncu" ] || left_out "ncu (Nsight Compute) is not here"
"$python" -c 'import kymo, torch; assert kymo.nvtx.is_available() and torch.cuda.is_available()' 2>/dev/null ||
    left_out "$python has no kymo with NVTX, no torch, or no GPU"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/program.py" <<'PYTHON'
import torch
import kymo

a = torch.ones(256, 256, device="cuda")
torch.cuda.synchronize()
with kymo.emit_nvtx():
    with kymo.record_function("outer range"):
        with kymo.record_function("inner range"):
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
# kernels FILTER...: what ncu says of the kernels that it profiles.
profile() {
    timeout 300 "$ncu" --nvtx --print-nvtx-rename kernel "$@" --metrics gpu__time_duration.sum \
        "$python" "$folder/program.py" 2>&1
}

# Every kernel with the ranges around it. The text of a range goes on behind its name (", op_id = N").
all=$(profile)
if grep -q ERR_NVGPUCTRPERM <<<"$all"; then left_out "this user may not use the GPU's counters (ERR_NVGPUCTRPERM)"; fi
for range in 'outer range, op_id = [0-9]+' 'inner range, op_id = [0-9]+'; do
    grep -Eq "$range" <<<"$all" || fail "no '$range' in what ncu says: $(tail -40 <<<"$all")"
done

# A filter: a range on a thread's stack is "NAME/", the regular expressions are ncu's. Only what was launched inside is profiled.
count() { grep -c 'gpu__time_duration.sum' <<<"$1"; }
inner=$(profile --nvtx-include 'regex:inner range.*/')
outer=$(profile --nvtx-include 'regex:outer range.*/')
[ "$(count "$inner")" = 1 ] || fail "$(count "$inner") kernels in the inner range, not 1: $(tail -20 <<<"$inner")"
[ "$(count "$outer")" = 2 ] || fail "$(count "$outer") kernels in the outer range, not 2: $(tail -20 <<<"$outer")"
[ "$(count "$all")" -ge 3 ] || fail "$(count "$all") kernels in all, not 3 or more"

# The listener beside it: ncu is the tool, so `kymo run --nvtx` must leave it there and say so.
said=$(NVTX_INJECTION64_PATH=/opt/other/libother.so "$python" -m kymo run --nvtx -q -o "$folder/a.kymo" -c 'pass' 2>&1)
grep -q 'ranges of NVTX go to another tool' <<<"$said" || fail "no word of the other tool: $said"

# And alone: what torch pushes is heard.
"$python" -m kymo run --nvtx --no-calls -q -o "$folder/b.kymo" -c '
import torch
torch.cuda.nvtx.range_push("of torch")
torch.ones(4, device="cuda").add_(1)
torch.cuda.nvtx.range_pop()' || fail "kymo run --nvtx failed"
"$python" -m kymo report "$folder/b.kymo" | grep -q 'of torch' || fail "the range of torch.cuda.nvtx was not heard"

[ $failures = 0 ] && echo "ncu_nvtx: all passed"
exit $((failures > 0))
