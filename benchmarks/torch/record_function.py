"""record_function.py: marking ranges with PyTorch's record_function and with Marey's, in one run (make bench-torch)."""

import json
import statistics
import time

import torch
from torch.profiler import ProfilerActivity
from torch.profiler import profile as torch_profile
from torch.profiler import record_function as torch_record_function

import marey

COUNT = 5_000
ROUNDS = 9


def blocks(record_function):
    """Nanoseconds per block."""
    start = time.perf_counter_ns()
    for _ in range(COUNT):
        with record_function("benchmark"):
            pass
    return (time.perf_counter_ns() - start) / COUNT


def with_torch():
    with torch_profile(activities=[ProfilerActivity.CPU]):
        return blocks(torch_record_function)


def with_marey():
    with marey.profile():
        return blocks(marey.record_function)


def figure(name, own, upstream):
    return {
        "name": name,
        "value": statistics.median(own),
        "unit": "ns",
        "against": f"PyTorch {torch.__version__.split('+')[0]}",
        "against_value": statistics.median(upstream),
        "ratio": statistics.median(a / b for a, b in zip(own, upstream)),
        "target": "<= 0.02",
    }


def main():
    blocks(marey.record_function), blocks(torch_record_function), with_marey(), with_torch()  # load and warm up
    runs = [
        (with_marey(), with_torch(), blocks(marey.record_function), blocks(torch_record_function))
        for _ in range(ROUNDS)
    ]
    on, torch_on, off, torch_off = zip(*runs)
    print(json.dumps(figure("py_range_vs_torch_on", on, torch_on)))
    print(json.dumps(figure("py_range_vs_torch_off", off, torch_off)))


if __name__ == "__main__":
    main()
