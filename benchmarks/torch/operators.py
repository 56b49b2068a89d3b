"""operators.py: overhead per operator: Marey, PyTorch's profiler, and a minimal observer."""

import ctypes
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity
from torch.profiler import profile as torch_profile

from marey.torch import load, profile
from marey.torch._observer import compile_library

COUNT = 10_000  # short rounds, so that other load on the machine affects all measurements of a round
ROUNDS = 45
FOLDER = Path(__file__).resolve().parent
VERSION = f"PyTorch {torch.__version__.split('+')[0]}"


def operators():
    """CPU nanoseconds per operator on this thread: one element, in place, so that nothing is allocated."""
    value, one = torch.zeros(1), torch.ones(1)
    add = value.add_
    for _ in range(1000):
        add(one)
    start = time.thread_time_ns()
    for _ in range(COUNT):
        add(one)
    return (time.thread_time_ns() - start) / COUNT


def with_floor(floor, inputs=False):
    """With `inputs`, PyTorch boxes the inputs for the callback, which ignores them."""
    floor.floor_start(inputs)
    try:
        return operators()
    finally:
        floor.floor_stop()


def with_marey(**options):
    with profile(activities=[ProfilerActivity.CPU], **options):
        return operators()


def with_torch(**options):
    with torch_profile(activities=[ProfilerActivity.CPU], **options):
        return operators()


def share(own, upstream):
    return statistics.median(own) / statistics.median(upstream)


def figure(name, own, against, upstream, target):
    made = {"name": name, "value": statistics.median(own), "unit": "ns"}
    made |= {"against": against, "against_value": statistics.median(upstream), "ratio": share(own, upstream)}
    print(json.dumps({**made, "target": target}), flush=True)


def main():
    torch.set_num_threads(1)
    load()
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "floor.so")
        compile_library(str(FOLDER / "operator_floor.cpp"), library)
        floor = ctypes.CDLL(library)
    shapes, memory = {"record_shapes": True}, {"profile_memory": True}
    kinds = (
        operators,
        lambda: with_floor(floor),
        with_marey,
        with_torch,
        lambda: with_marey(**shapes),
        lambda: with_torch(**shapes),
        lambda: with_marey(**memory),
        lambda: with_torch(**memory),
        lambda: with_floor(floor, True),
    )
    for kind in kinds:
        kind()  # load and warm up everything first
    runs = [[kind() for kind in kinds] for _ in range(ROUNDS)]
    added = [[run[i] - run[0] for run in runs] for i in range(len(kinds))]
    least, least_with_inputs = added[1], added[8]
    figure("op_floor", added[2], "a callback that stores 16 bytes twice", least, "<= 1.4")
    figure("op_shapes_floor", added[4], "the same, PyTorch boxing the inputs", least_with_inputs, "")
    for name, own, upstream, most, floor_of_it in (
        ("op_vs_torch", added[2], added[3], 0.35, least),
        ("op_shapes_vs_torch", added[4], added[5], 0.35, least_with_inputs),
        ("op_memory_vs_torch", added[6], added[7], 0.25, least),
    ):
        figure(name, own, VERSION, upstream, f"<= {max(most, 1.4 * share(floor_of_it, upstream)):.2f}")


if __name__ == "__main__":
    sys.exit(main())
