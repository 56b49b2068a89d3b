"""Marey and torch.profiler in one process, sequentially and nested: neither crashes, and Marey reports refusals.

other_profilers.py [ORDER]: each order runs in a separate process. Exits with 1 if a result is not as expected.
"""

import json
import subprocess
import sys
import time

LAUNCHES = 500
PAUSE_S = 1.5
# The share of its launches that each must record: all, none (refused), or any (None). PyTorch's profiler keeps CUPTI
# until the process ends.
ORDERS = {
    "marey then torch": {"marey": "all", "torch": "all"},
    "torch then marey": {"torch": "all", "marey": "refused"},
    "torch within marey": {"marey": "all", "torch": None},
    "marey within torch": {"torch": "all", "marey": "refused"},
    "marey, then marey within torch": {"torch": "all", "marey": "refused"},
}


def launch():
    """Launches kernels, half of them after a pause: by then, a profiler that ended before has released the GPU."""
    import torch

    x = torch.ones(1, device="cuda")
    for half in range(2):
        time.sleep(PAUSE_S * half)
        for _ in range(LAUNCHES // 2):
            x.add_(1)
        torch.cuda.synchronize()


def kernels(profiler):
    return sum(row.count for row in profiler.key_averages() if "elementwise_kernel" in row.key)


def with_torch(within):
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        launch()
        found = within()
    return {"torch": kernels(profiler), **found}


def with_marey(within):
    import marey

    with marey.profile(activities=[marey.ProfilerActivity.CPU, marey.ProfilerActivity.CUDA]) as profiler:
        with marey.record_function("range"):
            launch()
        found = within()
    assert any(event.name == "range" for event in profiler.events())
    codes = [code for code, _, _ in profiler.trace.problems]
    return {"marey": kernels(profiler), "refused": codes.count("device_not_recorded"), **found}


def run(order):
    launch()
    nothing = dict
    if order == "marey then torch":
        return {**with_marey(nothing), **with_torch(nothing)}
    if order == "torch then marey":
        return {**with_torch(nothing), **with_marey(nothing)}
    if order == "torch within marey":
        return with_marey(lambda: with_torch(nothing))
    if order == "marey, then marey within torch":
        with_marey(nothing)
    return with_torch(lambda: with_marey(nothing))


def is_as_expected(order, found):
    for profiler, what in ORDERS[order].items():
        if what == "all" and found[profiler] < LAUNCHES:
            return False
        if what == "refused" and (found["refused"] != 1 or found[profiler] != 0):
            return False
    return True


def main():
    if len(sys.argv) > 1:
        print(json.dumps(run(sys.argv[1])))
        return 0
    bad = 0
    for order in ORDERS:
        done = subprocess.run([sys.executable, __file__, order], capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            print(f"{order}: exited with {done.returncode}: {done.stderr[-1500:]}")
            bad += 1
            continue
        found = json.loads(done.stdout.splitlines()[-1])
        bad += not is_as_expected(order, found)
        print(f"{order}: {found}")
    print("other_profilers: all passed" if bad == 0 else f"other_profilers: {bad} FAILED")
    return 1 if bad else 0


sys.exit(main())
