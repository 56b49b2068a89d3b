"""Tools for PyTorch's traces find the same in Marey's."""

import json
import os
import pathlib
import subprocess

import pytest
import torch
import torch.profiler

import marey.torch

TOOLS = os.environ.get("MAREY_TRACE_TOOLS")
pytestmark = pytest.mark.skipif(not TOOLS, reason="MAREY_TRACE_TOOLS is not set: see tools/python_env.sh trace_tools")
READER = pathlib.Path(__file__).parents[2] / "tools/read_with_trace_tools.py"


def traced(kind, path):
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    plan = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)

    def save(prof):
        prof.export_chrome_trace(str(path))

    with kind(schedule=plan, on_trace_ready=save, record_shapes=True, profile_memory=True) as prof:
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.ones(4, 8)).sum().backward()
            optimizer.step()
            prof.step()


def read(path):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([TOOLS, READER, path], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_hta_and_tensorboard_find_the_same_as_in_pytorchs_trace(tmp_path):
    found = []
    for kind in (marey.torch.profile, torch.profiler.profile):
        path = tmp_path / f"{kind.__module__}.pt.trace.json"
        traced(kind, path)
        found.append(read(path))
    ours, theirs = found
    assert ours["hta"]["steps"] == theirs["hta"]["steps"] == ["ProfilerStep#2", "ProfilerStep#3"]
    for category in ("cpu_op", "user_annotation"):
        assert ours["hta"]["categories"][category] == theirs["hta"]["categories"][category]
    assert ours["tensorboard"] == theirs["tensorboard"]
    assert ours["tensorboard"]["operators"]["aten::linear"] == 4


GPU_TRACES = pathlib.Path(__file__).parents[1] / "data/corpus/torch_gpu"


def test_hta_finds_the_same_gpu_work_as_in_pytorchs_trace():
    """Both traces are of one program on an H200, whose host was not equally busy: its waits may differ a little."""
    ours, theirs = (read(GPU_TRACES / f"{name}.json.gz")["hta"] for name in ("marey", "torch"))
    categories = "kernel gpu_memcpy gpu_memset gpu_user_annotation cuda_runtime cuda_driver cpu_op"
    for category in categories.split():
        assert ours["categories"][category] == theirs["categories"][category], category
    assert ours["gpu"]["queue_changes"] == theirs["gpu"]["queue_changes"]
    assert ours["gpu"]["launches"]["count"] == theirs["gpu"]["launches"]["count"] > 0
    for question, keys in {
        "temporal": ["compute_time(us)", "non_compute_time(us)"],
        "kernels": ["COMPUTATION", "MEMORY"],
        "launches": ["gpu_duration"],
        "annotations": ["forward", "load", "statistics", "Optimizer.step#SGD.step"],
    }.items():
        for key in keys:  # HTA counts whole microseconds, here of three steps
            assert ours["gpu"][question][key] == pytest.approx(theirs["gpu"][question][key], rel=0.01, abs=3), key
    a_percent = 0.01 * theirs["gpu"]["temporal"]["kernel_time(us)"]
    assert ours["gpu"]["temporal"] == pytest.approx(theirs["gpu"]["temporal"], abs=a_percent)
    assert ours["gpu"]["idle"] == pytest.approx(theirs["gpu"]["idle"], abs=a_percent)
