"""calls.py: what PyTorch's profiler adds to a Python call with stacks, and what ours adds, in one run.

Beside both the least that any hook which Python has would add: no profiler can have a smaller share.
"""

import json
import statistics
import sys
import time
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity
from torch.profiler import profile as torch_profile

import marey

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from python_calls import build_floor, floor_with_c_calls

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


def with_marey():
    with marey.profile(with_stack=True):
        return calls()


def print_figure(name, ours, theirs, target):
    """The ratio is the median of the rounds' own: a machine that changes its speed does so for both sides."""
    figure = {
        "name": f"call_3{sys.version_info.minor}{name}",
        "value": statistics.median(ours),
        "unit": "ns",
        "against": f"PyTorch {torch.__version__.split('+')[0]}",
        "against_value": statistics.median(theirs),
        "ratio": statistics.median(one / other for one, other in zip(ours, theirs)),
        "target": target,
    }
    print(json.dumps(figure))


def main():
    floor = floor_with_c_calls(build_floor())

    def with_floor():
        with floor:
            return calls()

    kinds = (calls, with_torch, with_marey, with_floor)
    for kind in kinds:
        kind()
    runs = [[kind() for kind in kinds] for _ in range(ROUNDS)]
    theirs, ours, least = ([run[i] - run[0] for run in runs] for i in (1, 2, 3))
    print_figure("_vs_torch", ours, theirs, "<= 0.2")
    print_figure("_floor_vs_torch", least, theirs, "")


if __name__ == "__main__":
    main()
