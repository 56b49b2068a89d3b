"""operators.py: what recording adds to an operator: ours, PyTorch's profiler, and the least that an observer can do."""

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

COUNT = 10_000  # short rounds, so that what the machine does meanwhile befalls all of a round
ROUNDS = 45
FOLDER = Path(__file__).resolve().parent
VERSION = f"PyTorch {torch.__version__.split('+')[0]}"


def operators():
    """Nanoseconds of this thread for one operator: one element, in place, so that the heap stays out of it."""
    value, one = torch.zeros(1), torch.ones(1)
    add = value.add_
    for _ in range(1000):
        add(one)
    start = time.thread_time_ns()
    for _ in range(COUNT):
        add(one)
    return (time.thread_time_ns() - start) / COUNT


def with_floor(floor, inputs=False):
    """With `inputs`, PyTorch boxes them for the callback, which does not look."""
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


def share(ours, theirs):
    return statistics.median(ours) / statistics.median(theirs)


def figure(name, ours, against, theirs, target):
    made = {"name": name, "value": statistics.median(ours), "unit": "ns"}
    made |= {"against": against, "against_value": statistics.median(theirs), "ratio": share(ours, theirs)}
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
        kind()  # all is loaded and warm
    runs = [[kind() for kind in kinds] for _ in range(ROUNDS)]
    added = [[run[i] - run[0] for run in runs] for i in range(len(kinds))]
    least, least_with_inputs = added[1], added[8]
    figure("op_floor", added[2], "a callback that stores 16 bytes twice", least, "<= 1.4")
    figure("op_shapes_floor", added[4], "the same, PyTorch boxing the inputs", least_with_inputs, "")
    for name, ours, theirs, most, floor_of_it in (
        ("op_vs_torch", added[2], added[3], 0.35, least),
        ("op_shapes_vs_torch", added[4], added[5], 0.35, least_with_inputs),
        ("op_memory_vs_torch", added[6], added[7], 0.25, least),
    ):
        figure(name, ours, VERSION, theirs, f"<= {max(most, 1.4 * share(floor_of_it, theirs)):.2f}")


if __name__ == "__main__":
    sys.exit(main())
