"""Minutes of training in a ring of 256 MB: memory must stay flat, and a loop that the GPU bounds hardly slow down.

soak.py [SECONDS]. Prints a line of JSON with what was measured; exits with 1 where memory grew.
"""

import json
import statistics
import sys
import time

import torch

import kymo


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
    """Medians of ten steps each, in milliseconds for a step."""
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
    """Recording in turn with not recording: the share that it adds."""
    on, off = [], []
    for _ in range(rounds):
        off.append(time_steps(step, seconds))
        with kymo.profile(activities=[kymo.ProfilerActivity.CPU, kymo.ProfilerActivity.CUDA]):
            on.append(time_steps(step, seconds))
    return statistics.median(on) / statistics.median(off) - 1, statistics.median(off)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 180.0
    bound_by_gpu = make_training(8192, 4096)
    bound_by_launches = make_training(64, 16)
    for step in (bound_by_gpu, bound_by_launches):
        time_steps(step, 2)
    found = {}
    found["gpu_bound_slowdown"], found["gpu_bound_ms"] = slowdown(bound_by_gpu)
    found["launch_bound_slowdown"], found["launch_bound_ms"] = slowdown(bound_by_launches)

    session = kymo.Session()
    session.start(devices=["cuda"], max_bytes=256 << 20, policy="ring")
    memory = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(200):
            bound_by_launches()
        torch.cuda.synchronize()
        memory.append(resident_mb())
    trace = session.stop()
    found["memory_mb"] = [memory[0], memory[len(memory) // 2], memory[-1]]
    found["memory_growth_mb"] = max(memory) - memory[0]
    found["problems"] = [(code, count) for code, _, count in trace.problems]
    print(json.dumps(found))
    return 1 if found["memory_growth_mb"] > 256 + 16 else 0  # the ring, and no more


sys.exit(main())
