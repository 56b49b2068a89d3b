"""calls.py: what PyTorch's profiler adds to a Python call with stacks, and what ours adds, in one run."""

import json
import statistics
import sys
import time

import torch
from torch.profiler import ProfilerActivity
from torch.profiler import profile as torch_profile

import kymo

COUNT = 20_000
ROUNDS = 7


def empty():
    pass


def calls():
    """Nanoseconds for one call."""
    for _ in range(2000):  # the interpreter adapts itself to the hooks
        empty()
    start = time.perf_counter_ns()
    for _ in range(COUNT):
        empty()
    return (time.perf_counter_ns() - start) / COUNT


def with_torch():
    with torch_profile(activities=[ProfilerActivity.CPU], with_stack=True):
        return calls()


def with_kymo():
    with kymo.profile(with_stack=True):
        return calls()


def main():
    calls(), with_torch(), with_kymo()
    runs = [(calls(), with_torch(), with_kymo()) for _ in range(ROUNDS)]
    theirs = [torch_ns - plain for plain, torch_ns, _ in runs]
    ours = [kymo_ns - plain for plain, _, kymo_ns in runs]
    figure = {
        "name": f"call_3{sys.version_info.minor}_vs_torch",
        "value": statistics.median(ours),
        "unit": "ns",
        "against": f"PyTorch {torch.__version__.split('+')[0]}",
        "against_value": statistics.median(theirs),
        "ratio": statistics.median(ours) / statistics.median(theirs),
        "target": "<= 0.2",
    }
    print(json.dumps(figure))


if __name__ == "__main__":
    main()
