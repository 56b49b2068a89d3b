#!/usr/bin/env bash
# gpu.sh: `marey gpu` with traces in the form that PyTorch writes. Needs MAREY_BIN.
. "$(dirname "$0")/check.bash"

check "help" 0 'Usage: marey gpu' "$marey" gpu --help
check "no file" 2 '^marey: gpu: FILE is required' "$marey" gpu
check "a missing file" 2 '^marey: missing\.marey: .*No such file' "$marey" gpu missing.marey
check "two formats" 2 '^marey: gpu: --csv and --json are mutually exclusive' "$marey" gpu --csv --json x.marey
check "no such device" 2 '^marey: gpu: --device: there is no device 9999999999' "$marey" gpu --device 9999999999 x.marey

# Times in microseconds: a copy, a long pause of the thread, two kernels.
cat >trace.json <<'JSON'
{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100", "computeMajor": 8, "computeMinor": 0, "warpSize": 32,
 "numSms": 108, "maxThreadsPerMultiprocessor": 2048, "regsPerMultiprocessor": 65536, "sharedMemPerMultiprocessor": 167936}],
 "traceEvents": [
 {"ph": "M", "name": "process_name", "pid": 100, "tid": 0, "ts": 0, "args": {"name": "python"}},
 {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "ts": 0, "args": {"labels": "GPU 0"}},
 {"ph": "X", "cat": "python_function", "name": "train.py(5): step", "pid": 100, "tid": 100, "ts": 0, "dur": 1000, "args": {}},
 {"ph": "X", "cat": "python_function", "name": "train.py(9): load", "pid": 100, "tid": 100, "ts": 100, "dur": 390, "args": {}},
 {"ph": "X", "cat": "cpu_op", "name": "aten::copy_", "pid": 100, "tid": 100, "ts": 1, "dur": 20, "args": {}},
 {"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "pid": 100, "tid": 100, "ts": 5, "dur": 10, "args": {"correlation": 1}},
 {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 7, "ts": 20, "dur": 80,
  "args": {"device": 0, "stream": 7, "correlation": 1, "bytes": 800000}},
 {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 100, "tid": 100, "ts": 492, "dur": 40, "args": {}},
 {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100, "tid": 100, "ts": 495, "dur": 4, "args": {"correlation": 2}},
 {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100, "tid": 100, "ts": 500, "dur": 4, "args": {"correlation": 3}},
 {"ph": "X", "cat": "kernel", "name": "sgemm", "pid": 0, "tid": 7, "ts": 500, "dur": 300,
  "args": {"device": 0, "stream": 7, "correlation": 2, "grid": [54, 1, 1], "block": [128, 1, 1], "registers per thread": 32, "shared memory": 0}},
 {"ph": "X", "cat": "kernel", "name": "sgemm", "pid": 0, "tid": 8, "ts": 700, "dur": 200,
  "args": {"device": 0, "stream": 8, "correlation": 3, "grid": [54, 1, 1], "block": [128, 1, 1], "registers per thread": 32, "shared memory": 0}},
 {"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 100, "tid": 100, "ts": 600, "dur": 310, "args": {"correlation": 4}}
]}
JSON
check "the device" 0 '^device +cuda 0, NVIDIA A100, 108 multiprocessors$' "$marey" gpu trace.json
check "busy" 0 '^busy +480 us of 1\.00 ms, 48\.0%; 54\.5% between' "$marey" gpu trace.json
check "idle" 0 '^idle +520 us in 3 gaps; 400 us of that with nothing queued' "$marey" gpu trace.json
check "concurrency" 0 '^concurrency +several kernels at once for 100 us, at most 2; 1\.25 on average' "$marey" gpu trace.json
check "a stream" 0 '^ *8 +200 us +20\.0% +1 +200 us +0 +0 ns +0 +2 +700 us' "$marey" gpu trace.json
check "queue times" 0 "^queue, from the call's start +3 +.* 5\.00 us +15\.0 us +200 us +200 us +200 us$" "$marey" gpu trace.json
check "a gap" 0 '^100 us +400 us +nothing queued +.* 97\.5%  train\.py\(9\): load in train\.py\(5\): step' "$marey" gpu trace.json
check "a kernel" 0 '^ *500 us +86\.2% +2 +250 us +200 us +300 us +102 us +54 +128 +32 +0\.50 +3\.1%  sgemm$' "$marey" gpu trace.json
check "a launcher" 0 '^ *500 us +86\.2% +2  aten::mm$' "$marey" gpu trace.json
check "a function" 0 '^ *580 us +100\.0% +3  train\.py\(5\): step$' "$marey" gpu trace.json
check "bandwidth" 0 '^HtoD, pageable +1 +781 KiB +80\.0 us +10\.00$' "$marey" gpu trace.json
check "waits" 0 '^waiting .*: 310 us in 1 wait, 31\.0% of the window' "$marey" gpu trace.json
check "a finding" 0 '^host_bound \(cuda 0\): 45% of the time' "$marey" gpu trace.json
check "its evidence" 0 '^    thread activity during the gaps: train\.py\(9\): load in train\.py\(5\): step: 390 us$' "$marey" gpu trace.json
check "the limit" 0 '^\.\.\. and 1 more row \(--limit 0 shows all\)' "$marey" gpu --limit 1 trace.json
"$marey" gpu --limit 0 trace.json | grep -q 'more row' && fail "--limit 0 shows all"
check "the old name of --limit" 0 '^marey: --top is now called --limit$' "$marey" gpu --top 1 trace.json
check "chosen columns" 0 '^ *count +kernel$' "$marey" gpu --columns count,name trace.json
check "a chosen device" 0 '^device +cuda 0' "$marey" gpu --device 0 trace.json
check "another device" 2 '^marey: gpu: no work on device 1 in this file' "$marey" gpu --device 1 trace.json
check "csv" 0 '^100,cuda,0,500000,0\.86[0-9]*,2,250000,200000,200000,300000,300000,2,102500,54x1x1,128x1x1,32,0,1,0\.5,2,0\.03125,[0-9]*,[0-9]*,sgemm$' \
    "$marey" gpu --csv trace.json
check "markdown" 0 '^\| 500 us \| 86\.2% \| 2 \| .* \| sgemm \|$' "$marey" gpu --markdown trace.json
"$marey" gpu trace.json | grep -q $'\e' && fail "no colour in a pipe"
if command -v python3 >/dev/null; then
    "$marey" gpu --json trace.json >gpu.json || fail "--json"
    python3 - <<'PYTHON' || fail "--json has the values of the tables"
import json
use = json.load(open("gpu.json", encoding="utf-8"))
(device,) = use["gpu_devices"]
assert device["busy_ns"] + device["idle_ns"] == use["gpu"]["window_end_ns"] - use["gpu"]["window_start_ns"] == 1_000_000
assert [stream["stream"] for stream in use["gpu_streams"]] == [7, 8]
assert use["gpu_kernels"][0]["grid"] == [54, 1, 1] and use["gpu_kernels"][0]["occupancy"] == 0.03125
assert use["gpu_gap_hosts"][0]["name"] == "train.py(9): load"
assert [wait["count"] for wait in use["gpu_waits"]] == [1]
assert {finding["rule"] for finding in use["gpu_findings"]} == {"host_bound", "pageable_copies", "small_grids"}
PYTHON
fi

# A program without ranges, with the clock facts of a capture.
cat >bare.json <<'JSON'
{"gpu_clock": {"readings": 6, "median_error_ns": 1347, "worst_error_ns": 1567}, "traceEvents": [
 {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100, "tid": 100, "ts": 5, "dur": 4, "args": {"correlation": 2}},
 {"ph": "X", "cat": "kernel", "name": "sgemm", "pid": 0, "tid": 7, "ts": 10, "dur": 300, "args": {"device": 0, "stream": 7, "correlation": 2}}
]}
JSON
check "no range" 0 '^unattributed +1 piece of work launched outside any range$' "$marey" gpu bare.json
check "launched outside any range" 0 '^ *300 us +100\.0% +1  \(in no range\)$' "$marey" gpu bare.json
check "launched outside any range, JSON" 0 '"gpu_ranges": \[ *\{[^}]*"count": 1,[^}]*"name": null' \
    bash -c '"$1" gpu --json bare.json | tr -d "\n"' - "$marey"

for verb in gpu info report; do
    check "the device clock: $verb" 0 '^clock .*; device times accurate to 1\.57 us \(6 readings, median 1\.35 us\)$' "$marey" $verb bare.json
    "$marey" $verb trace.json | grep -q 'device times' && fail "no device clock: $verb"
done
check "the clock, JSON" 0 '"clock_readings": 6, *"clock_median_error_ns": 1347, *"clock_worst_error_ns": 1567' \
    bash -c '"$1" gpu --json bare.json | tr -d "\n"' - "$marey"
check "no clock, JSON" 0 '^    "clock_readings": null,$' "$marey" gpu --json trace.json

echo '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 0, "dur": 5}]}' >plain.json
check "no device work" 2 '^marey: gpu: no device work in this file \(record it with marey run --gpu\)' "$marey" gpu plain.json

[ $failures = 0 ] && echo "all passed"
exit $((failures > 0))
