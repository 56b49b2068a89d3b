"""torch_launches.py torch|marey [COUNT]: overhead of a profiler for a PyTorch program that launches kernels.

Prints one line of JSON: nanoseconds per operator (one kernel each) before and while recording, and microseconds per
kernel for stopping and exporting.
"""

import json
import statistics
import sys
import time
from pathlib import Path

import torch


def launch(x, count):
    start = time.perf_counter_ns()
    for _ in range(count):
        x.add_(1)
    end = time.perf_counter_ns()
    torch.cuda.synchronize()
    return (end - start) / count


def usual_launch(x, count):
    """The lower quartile of rounds: in a virtual machine slower rounds include other load."""
    return statistics.quantiles((launch(x, 1000) for _ in range(count // 1000)), n=4)[0]


def make_profiler(mode):
    if mode == "torch":
        return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
    import marey

    return marey.profile(activities=[marey.ProfilerActivity.CUDA])


def timed(call, *arguments):
    start = time.perf_counter()
    call(*arguments)
    return (time.perf_counter() - start) * 1e6


def main():
    mode = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    with torch.inference_mode():
        x = torch.ones(1, device="cuda")
        launch(x, 5000)
        figures = {"mode": mode, "before": usual_launch(x, count)}
        profiler = make_profiler(mode)
        profiler.start()
        launch(x, 2000)
        figures["during"] = usual_launch(x, count)
        kernels = count + 2000
        figures["stop_us"] = timed(profiler.stop) / kernels
        figures["table_us"] = timed(lambda: profiler.key_averages().table()) / kernels
        path = Path(f"{mode}_launches.json")
        path.unlink(missing_ok=True)  # replacing a file would be slower
        figures["export_us"] = timed(profiler.export_chrome_trace, str(path)) / kernels
        rows = [row for row in profiler.key_averages() if "elementwise" in row.key]
    figures["kernels"] = sum(row.count for row in rows)
    figures["kernel_us"] = sum(row.self_device_time_total for row in rows)
    print(json.dumps(figures))


main()
