"""Makes tests/data/corpus/chrome/torch.json.gz: python torch_sample.py OUT.json.gz (needs PyTorch; a build for the CPU will do).

A small model forward and backward, twice, under torch.profiler with shapes, memory and steps.
"""

import sys

import torch
from torch.profiler import ProfilerActivity, profile, record_function

torch.set_num_threads(1)
model = torch.nn.Linear(8, 4)
with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as prof:
    for _ in range(2):
        with record_function("forward"):
            loss = model(torch.ones(2, 8)).sum()
        loss.backward()
        prof.step()
prof.export_chrome_trace(sys.argv[1])
