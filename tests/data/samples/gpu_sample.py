"""gpu_sample.py FOLDER: one small training program on an NVIDIA GPU, traced by Marey, then by PyTorch's profiler.

Both run in one process, on a warm GPU whose kernels take milliseconds, so that their times can be compared. Marey comes
first, because PyTorch's profiler keeps CUPTI until the process ends. Writes marey.json.gz and torch.json.gz.
"""

import pathlib
import sys

import torch
import torch.profiler

import marey.torch

WARMUP, STEPS = 60, 3


def main(folder):
    model = torch.nn.Sequential(torch.nn.Linear(4096, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    host = torch.randn(8192, 4096).pin_memory()
    side = torch.cuda.Stream()

    def step():
        with torch.profiler.record_function("load"):
            batch = host.to("cuda", non_blocking=True)
        with torch.profiler.record_function("forward"):
            loss = model(batch).square().mean()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side), torch.profiler.record_function("statistics"):
            batch.std()
        torch.cuda.current_stream().wait_stream(side)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        torch.cuda.synchronize()

    for _ in range(WARMUP):
        step()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    for kind, name in ((marey.torch.profile, "marey"), (torch.profiler.profile, "torch")):
        schedule = torch.profiler.schedule(wait=0, warmup=2, active=STEPS, repeat=1)
        config = torch.profiler._ExperimentalConfig(enable_cuda_sync_events=True)
        path = str(pathlib.Path(folder) / f"{name}.json.gz")
        options = {"activities": activities, "schedule": schedule, "experimental_config": config}
        with kind(**options, on_trace_ready=lambda prof, path=path: prof.export_chrome_trace(path)) as prof:
            for _ in range(2 + STEPS):
                step()
                prof.step()


if __name__ == "__main__":
    main(*sys.argv[1:])
