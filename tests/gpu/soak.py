"""Minutes of training in a 256 MB ring buffer: memory must not grow, and a GPU-bound loop must hardly slow down.

soak.py [SECONDS]. Prints one JSON line with the measurements. Exits with 1 if memory grew by more than the ring buffer,
if a loss was not reported, or if the GPU-bound loop was slowed down by more than 3 %.
"""

import json
import statistics
import sys
import time

import torch

import marey

MAX_SLOWDOWN = 0.03
MIN_KERNEL_US = 100  # the mean kernel time above which a loop counts as GPU-bound
RING_MB = 256


def resident_mb():
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))


def make_training(width, batch):
    torch.manual_seed(0)
    layers = [torch.nn.Linear(width, width) for _ in range(6)]
    model = torch.nn.Sequential(*[part for layer in layers for part in (layer, torch.nn.ReLU())]).cuda()
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    data = torch.randn(batch, width, device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        model(data).square().mean().backward()
        optimizer.step()

    return step


def time_steps(step, seconds):
    """The median time of a step in milliseconds, measured in groups of ten."""
    times = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(10):
            step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 100)
    return statistics.median(times)


def slowdown(step, rounds=6, seconds=2.0):
    """Alternates recording and not recording; returns the relative overhead and the time of a step without."""
    on, off = [], []
    for _ in range(rounds):
        off.append(time_steps(step, seconds))
        with marey.profile(activities=[marey.ProfilerActivity.CPU, marey.ProfilerActivity.CUDA]):
            on.append(time_steps(step, seconds))
    return statistics.median(on) / statistics.median(off) - 1, statistics.median(off)


def mean_kernel_us(step):
    with marey.profile(activities=[marey.ProfilerActivity.CUDA]) as profiler:
        step()
    times = [e.time_range.elapsed_us() for e in profiler.events() if e.device_type == marey.profiler.DeviceType.CUDA]
    return statistics.mean(times)


def record_in_ring(step, seconds, found):
    """Measures memory over time and the losses that the trace reports."""
    session = marey.Session()
    session.start(devices=["cuda"], max_bytes=RING_MB << 20, policy="ring")
    memory, steps = [], 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(200):
            step()
        steps += 200
        torch.cuda.synchronize()
        memory.append(resident_mb())
    trace = session.stop()
    found["memory_mb"] = [memory[0], memory[len(memory) // 2], memory[-1]]
    found["memory_growth_mb"] = max(memory) - memory[0]
    full = [mb for mb in memory if mb - memory[0] > 0.9 * RING_MB]  # once the ring buffer is full
    found["memory_growth_later_mb"] = full[-1] - full[0] if full else 0
    found["problems"] = {code: count for code, _, count in trace.problems}
    found["steps"], found["kernels"] = steps, trace.gpu_use()["gpu_devices"][0]["kernels"]


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 180.0
    bound_by_gpu = make_training(8192, 4096)
    bound_by_launches = make_training(64, 16)
    for step in (bound_by_gpu, bound_by_launches):
        time_steps(step, 2)
    found = {"gpu_bound_kernel_us": mean_kernel_us(bound_by_gpu)}
    found["gpu_bound_slowdown"], found["gpu_bound_ms"] = slowdown(bound_by_gpu)
    found["launch_bound_slowdown"], found["launch_bound_ms"] = slowdown(bound_by_launches)
    record_in_ring(bound_by_launches, seconds, found)
    print(json.dumps(found))
    bad = []
    if found["memory_growth_mb"] > RING_MB + 16 or found["memory_growth_later_mb"] > 40:
        bad.append("memory grew by more than the ring buffer, or kept growing")
    if found["gpu_bound_kernel_us"] < MIN_KERNEL_US or found["gpu_bound_slowdown"] > MAX_SLOWDOWN:
        bad.append("the GPU-bound loop was slowed down, or is not GPU-bound")
    if found["problems"].get("dropped", 0) != 0:
        bad.append("records were dropped, which must not happen with a ring buffer")
    if found["kernels"] == 0 or found["problems"].get("overwritten", 0) == 0:
        bad.append("the trace does not report overwritten records")
    print("soak: all passed" if not bad else "soak: FAILED: " + "; ".join(bad))
    return 1 if bad else 0


sys.exit(main())
