"""training.py [cpu|cuda]: what a profiler adds to the CPU time of a training loop: Marey and PyTorch's.

On a CPU a small transformer; with CUDA a GPT-2, if `transformers` is installed. Starting, stopping and results are not
counted. Profilers run in processes of their own, since PyTorch's keeps CUPTI until its process ends, and in turns.
Beside them an observer of operators that only reads the clock: what no profiler on PyTorch's callbacks can avoid.
"""

import ctypes
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.profiler
from torch.profiler import ProfilerActivity

PROCESSES, PAIRS = 2, 6  # loops without and with the profiler, in each process
EVERYTHING = ("record_shapes", "profile_memory", "with_stack", "with_modules", "with_flops")
OPTIONS = {"plain": (), "shapes": ("record_shapes",), "all": EVERYTHING}
WHOSE = {"torch": "PyTorch", "marey": "Marey", "callback": "a bare callback"}


def transformer(device):
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).to(device)
    batch = torch.randn(8, 16, 64, device=device)
    return model, lambda: model(batch).square().mean(), 20


def gpt2(device):
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config()).to(device)
    tokens = torch.randint(0, 50_000, (2, 64), device=device)
    return model, lambda: model(tokens, labels=tokens).loss, 10


def make_loop(device):
    torch.manual_seed(0)
    try:
        model, loss_of, steps = gpt2(device) if device == "cuda" else transformer(device)
    except ImportError:
        model, loss_of, steps = transformer(device)
    optimizer = torch.optim.AdamW(model.parameters())
    settle = torch.cuda.synchronize if device == "cuda" else lambda: None

    def loop():
        gc.collect()  # else results of the profiler are freed in the next loop
        settle()
        start = time.process_time()
        for _ in range(steps):
            optimizer.zero_grad()
            loss_of().backward()
            optimizer.step()
        settle()
        return time.process_time() - start

    return loop


def bare_callback():
    """A stand-in for `profile`: a callback that stores the time of each operator, and gets its inputs with shapes."""
    from marey.torch._observer import compile_library

    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "floor.so")
        compile_library(str(Path(__file__).resolve().parent / "operator_floor.cpp"), library)
        floor = ctypes.CDLL(library)

    @contextmanager
    def profile(record_shapes=False, **_):
        floor.floor_start(record_shapes)
        yield
        floor.floor_stop()

    return profile


def measure(device, which):
    """Print the milliseconds of the loop alone and those that the profiler adds, for each set of options."""
    if which == "marey":
        from marey.torch import profile
    elif which == "torch":
        from torch.profiler import profile
    else:
        profile = bare_callback()
    torch.set_num_threads(1)
    loop = make_loop(device)
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (device == "cuda")

    def profiled(options):
        with profile(activities=activities, **dict.fromkeys(options, True)):
            return loop()

    for options in OPTIONS.values():
        profiled(options)
    results = {name: {"alone": [], "added": []} for name in OPTIONS}
    for _ in range(PAIRS):
        for name, options in OPTIONS.items():
            loop()  # what a profiler leaves behind, for example in CUPTI, is not counted
            alone = loop() * 1e3
            results[name]["alone"].append(alone)
            results[name]["added"].append(profiled(options) * 1e3 - alone)
    print(json.dumps(results))


def main(device="cpu", which=None):
    if which is not None:
        return measure(device, which)
    added = {which: {name: [] for name in OPTIONS} for which in WHOSE}
    for _ in range(PROCESSES):
        for which, by_options in added.items():
            command = [sys.executable, __file__, device, which]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
            for name, found in json.loads(done.stdout.splitlines()[-1]).items():
                by_options[name] += found["added"]
                print(f"{which} {name}: {statistics.median(found['alone']):.0f} ms without", file=sys.stderr)
    for name in OPTIONS:
        own, upstream = added["marey"][name], added["torch"][name]
        figure = {
            "name": f"training_{device}_{name}",
            "value": statistics.median(own),
            "unit": "ms",
            "against": f"PyTorch {torch.__version__.partition('+')[0]}",
            "against_value": statistics.median(upstream),
            "ratio": statistics.median(own) / statistics.median(upstream),
            "target": "<= 0.50",
        }
        print(json.dumps(figure), flush=True)
        for which, whose in WHOSE.items():
            low, middle, high = statistics.quantiles(added[which][name], n=4)
            print(f"{name}: {whose} adds {middle:.1f} ms; the middle half of the loops: {low:.1f} to {high:.1f} ms")
    return None


if __name__ == "__main__":
    main(*sys.argv[1:])
