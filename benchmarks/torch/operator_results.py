"""operator_results.py: time from the stop to the exported trace, and peak memory, for one million operators."""

import json
import resource
import subprocess
import sys
import tempfile
import time

import torch

COUNT = 1_000_000
ROUNDS = 3  # for Marey; PyTorch's profiler takes a minute and runs once


def measure(which):
    """(seconds from the stop to the exported trace, bytes that the peak adds to the memory used before)"""
    torch.set_num_threads(1)
    if which == "marey":
        from marey.torch import load, profile

        load()
    else:
        from torch.profiler import profile
    with profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
        torch.zeros(1)
    prof.key_averages().table()  # load everything first
    value, one = torch.zeros(1), torch.ones(1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    prof = profile(activities=[torch.profiler.ProfilerActivity.CPU])
    prof.start()
    for _ in range(COUNT):
        value.add_(one)
    start = time.perf_counter()
    prof.stop()
    prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10)
    with tempfile.TemporaryDirectory() as folder:
        prof.export_chrome_trace(f"{folder}/trace.json")
    seconds = time.perf_counter() - start
    return seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024


def measured(which):
    done = subprocess.run([sys.executable, __file__, which], capture_output=True, text=True, check=True, timeout=900)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    own = sorted(measured("marey") for _ in range(ROUNDS))[ROUNDS // 2]
    upstream = measured("torch")
    against = f"PyTorch {torch.__version__.split('+')[0]}"
    for name, unit, index, target in (("op_stop_to_export", "s", 0, "1 s"), ("op_peak_memory", "bytes", 1, "0.1")):
        figure = {
            "name": name,
            "value": own[index],
            "unit": unit,
            "against": against,
            "against_value": upstream[index],
            "ratio": own[index] / upstream[index],
            "target": f"<= {target}",
        }
        print(json.dumps(figure))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
    else:
        main()
