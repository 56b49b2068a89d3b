"""Compares the kernels that Marey and torch.profiler record: counts, names and times must agree.

compare_with_torch.py [--one torch|marey]. Each profiler runs in a separate process on the same workload: 100,000
launches on several streams and in two threads, a CUDA graph, copies and sets. Exits with 1 if names or counts differ,
if the total kernel time differs by more than 1 %, or if the error of Marey's clock exceeds its limit.
"""

import collections
import json
import subprocess
import sys
import threading

STEPS = 6300
MIN_LAUNCHES = 100_000  # in total
MAX_DIFFERENCE = 0.01
MEDIAN_ERROR_NS, WORST_ERROR_NS = 2_000, 10_000  # of the clock


def workload():
    import torch

    torch.manual_seed(0)
    device = "cuda"
    a = torch.randn(512, 512, device=device)
    streams = [torch.cuda.Stream() for _ in range(4)]
    host = torch.randn(1 << 16)

    graph_input = torch.ones(1024, device=device)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            graph_input * 2 + 1
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        graph_input * 2 + 1
    torch.cuda.synchronize()

    def step():
        for stream in streams:
            with torch.cuda.stream(stream):
                (a @ a).relu_().sum()
        graph.replay()
        b = host.to(device)
        b.zero_()
        b.cpu()

    def work():
        def other():
            for _ in range(STEPS):
                torch.sigmoid(a)

        thread = threading.Thread(target=other)
        thread.start()
        for _ in range(STEPS):
            step()
        thread.join()
        torch.cuda.synchronize()

    work()
    return work


def with_torch(work):
    import torch

    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiler:
        work()
    events = [e for e in profiler.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    return [(event.name, event.time_range.elapsed_us()) for event in events]


def with_marey(work):
    import marey

    activities = [marey.ProfilerActivity.CPU, marey.ProfilerActivity.CUDA]
    with marey.profile(activities=activities, with_stack=True) as profiler:
        work()
    missing = {"dropped", "device_not_recorded", "device_work_missing", "device_work_without_call"}
    assert not missing & {code for code, _, _ in profiler.trace.problems}, profiler.trace.problems
    check_lines(profiler)
    check_clock(profiler.trace)
    events = [e for e in profiler.events() if e.device_type == marey.profiler.DeviceType.CUDA and not e.is_async]
    return [(event.name, event.time_range.elapsed_us()) for event in events]


def check_lines(profiler):
    """Every kernel appears under the Python function that launched it."""
    launchers = collections.Counter()
    for event in profiler.events():
        parent = event
        while parent is not None and ".py(" not in parent.name:
            parent = parent.cpu_parent
        if event.kernels:
            launchers[parent.name if parent is not None else "none"] += len(event.kernels)
    print("launchers:", launchers.most_common(6), file=sys.stderr)
    found = {name.rsplit(" ", 1)[1].rsplit(".", 1)[-1]: count for name, count in launchers.items() if name != "none"}
    # The graph has two kernels; everything else is launched by one of the two functions.
    rest = sum(launchers.values()) - 3 * STEPS
    assert found == {"other": STEPS, "replay": 2 * STEPS, "step": rest}, launchers


def check_clock(trace):
    clock = trace.metadata["gpu_clock"]
    print("clock:", clock, file=sys.stderr)
    assert clock["median_error_ns"] <= MEDIAN_ERROR_NS, clock
    assert clock["worst_error_ns"] <= WORST_ERROR_NS, clock


def one(which):
    events = (with_torch if which == "torch" else with_marey)(workload())
    by_name = collections.defaultdict(lambda: [0, 0.0])
    for name, us in events:
        by_name[name][0] += 1
        by_name[name][1] += us
    print(json.dumps(by_name))


def main():
    if len(sys.argv) > 2 and sys.argv[1] == "--one":
        return one(sys.argv[2])
    found = {}
    for which in ("torch", "marey"):
        done = subprocess.run([sys.executable, __file__, "--one", which], capture_output=True, text=True, timeout=300)
        print(done.stderr[-3000:], file=sys.stderr)
        if done.returncode != 0:
            raise SystemExit(f"{which} failed")
        found[which] = json.loads(done.stdout.splitlines()[-1])
    differs = False
    for name in sorted(set(found["torch"]) | set(found["marey"])):
        pytorch, ours = found["torch"].get(name, [0, 0]), found["marey"].get(name, [0, 0])
        differs |= pytorch[0] != ours[0]
        print(f"{pytorch[0]:6} {ours[0]:6}  {pytorch[1]:10.0f} {ours[1]:10.0f} us  {name[:100]}")
    counts, totals = [[sum(row[i] for row in rows.values()) for rows in found.values()] for i in (0, 1)]
    difference = totals[1] / totals[0] - 1
    print(f"total of {counts[1]}: {totals[0]:.0f} us (torch), {totals[1]:.0f} us (Marey): {difference:+.2%}")
    return 1 if differs or counts[1] < MIN_LAUNCHES or abs(difference) > MAX_DIFFERENCE else 0


sys.exit(main())
