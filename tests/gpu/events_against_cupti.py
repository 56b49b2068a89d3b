"""Compares GPU times of ranges measured with events (use_kineto=False) with the sums of CUPTI's kernel times.

events_against_cupti.py [--one events|cupti default|side]. Each runs in a separate process, on the same ranges: one
kernel after the other on PyTorch's default stream or on another, microseconds to milliseconds. Pairs of events include
the gaps between kernels, so their times may be longer, never shorter. Exits with 1 if they differ by more than allowed.
"""

import json
import statistics
import subprocess
import sys

SIZES = (256, 1024, 4096, 8192)
ROUNDS = 30
KERNELS = 10


def run(which, where):
    import torch

    import marey
    import marey.torch

    marey.torch.load()  # sets the current stream

    matrices = {size: torch.randn(size, size, device="cuda") for size in SIZES}
    results = {size: torch.empty(size, size, device="cuda") for size in SIZES}

    def work():
        for _ in range(ROUNDS):
            for size in SIZES:
                with marey.record_function(f"{size}"):
                    for _ in range(KERNELS):
                        torch.mm(matrices[size], matrices[size], out=results[size])
        torch.cuda.synchronize()

    stream = torch.cuda.Stream() if where == "side" else torch.cuda.default_stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        work()
        with marey.profile(use_device="cuda", use_kineto=which == "cupti") as profiler:
            work()
    print("problems:", profiler.trace.problems, file=sys.stderr)
    times = {str(size): [] for size in SIZES}
    for event in profiler.events():
        if event.name in times and event.device_type.name == "CPU":
            times[event.name].append(event.device_time_total)
    json.dump(times, sys.stdout)


def times_with(which, where):
    command = [sys.executable, __file__, "--one", which, where]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    sys.stderr.write(done.stderr[-2000:])
    if done.returncode != 0:
        raise SystemExit(done.returncode)
    return json.loads(done.stdout)


def compare(where):
    """The number of sizes that differ by more than allowed."""
    events, cupti = times_with("events", where), times_with("cupti", where)
    bad = 0
    print(f"{where} stream, {KERNELS} matrix products per range, {ROUNDS} ranges per size: medians in us")
    print(f"{'size':>6} {'events':>12} {'kernels':>12} {'more':>8}")
    for size in events:
        if not len(events[size]) == len(cupti[size]) == ROUNDS:
            print(f"{size}: {len(events[size])} and {len(cupti[size])} ranges with times, expected {ROUNDS}")
            bad += 1
            continue
        with_events, with_cupti = statistics.median(events[size]), statistics.median(cupti[size])
        print(f"{size:>6} {with_events:12.1f} {with_cupti:12.1f} {with_events / with_cupti - 1:8.1%}")
        # Starting a kernel takes a microsecond or two, and so does an event.
        bad += not 0.98 * with_cupti <= with_events <= 1.02 * with_cupti + 5 * (KERNELS + 1)
    return bad


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        run(*sys.argv[2:4])
    else:
        sys.exit(1 if compare("default") + compare("side") else 0)
