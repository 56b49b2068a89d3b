"""calls.py: overhead per Python call with stacks, for PyTorch's profiler and for Marey, in one run.

The minimum overhead of any Python hook is measured too: no profiler can have less.
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
    """Nanoseconds per call."""
    for _ in range(2000):  # lets the interpreter specialise for the hooks
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


def print_figure(name, own, upstream, target):
    """The ratio is the median over rounds, because changes in machine speed affect both sides."""
    figure = {
        "name": f"call_3{sys.version_info.minor}{name}",
        "value": statistics.median(own),
        "unit": "ns",
        "against": f"PyTorch {torch.__version__.split('+')[0]}",
        "against_value": statistics.median(upstream),
        "ratio": statistics.median(one / other for one, other in zip(own, upstream)),
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
    upstream, own, least = ([run[i] - run[0] for run in runs] for i in (1, 2, 3))
    print_figure("_vs_torch", own, upstream, "<= 0.2")
    print_figure("_floor_vs_torch", least, upstream, "")


if __name__ == "__main__":
    main()
