"""Tools for PyTorch's traces find the same in Marey's."""

import contextlib
import json
import os
import pathlib
import subprocess

import pytest
import torch
import torch.profiler

import marey
import marey.torch

# Interpreters with the tools, by the version of pandas.
TOOLS = {"pandas3": "MAREY_TRACE_TOOLS", "pandas2": "MAREY_TRACE_TOOLS_PANDAS2"}
READER = pathlib.Path(__file__).parents[2] / "tools/read_with_trace_tools.py"


@pytest.fixture(params=TOOLS)
def read(request):
    """A function that returns what the tools find in a trace."""
    variable = TOOLS[request.param]
    if not os.environ.get(variable):
        pytest.skip(f"{variable} is not set: see tools/torch_tests.sh")

    def with_tools(path):
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        command = [os.environ[variable], READER, path]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return with_tools


def traced(kind, path, crosses=False):
    """Record four steps; if they cross ranges, step() is called inside one, as Lightning does."""
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    plan = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)

    def save(prof):
        prof.export_chrome_trace(str(path))

    with kind(schedule=plan, on_trace_ready=save, record_shapes=True, profile_memory=True) as prof:
        for _ in range(5):
            optimizer.zero_grad()
            with torch.profiler.record_function("around") if crosses else contextlib.nullcontext():
                model(torch.ones(4, 8)).sum().backward()
                if crosses:
                    prof.step()
                optimizer.step()
            if not crosses:
                prof.step()


@pytest.mark.parametrize("crosses", [False, True])
def test_hta_and_tensorboard_find_the_same_as_in_pytorchs_trace(tmp_path, read, crosses):
    found = []
    for kind in (marey.torch.profile, torch.profiler.profile):
        path = tmp_path / f"{kind.__module__}.pt.trace.json"
        traced(kind, path, crosses)
        found.append(read(path))
    ours, theirs = found
    assert ours["hta"]["steps"] == theirs["hta"]["steps"] == ["ProfilerStep#2", "ProfilerStep#3"]
    for category in ("cpu_op", "user_annotation"):
        assert ours["hta"]["categories"][category] == theirs["hta"]["categories"][category]
    assert ours["tensorboard"] == theirs["tensorboard"]
    assert ours["tensorboard"]["operators"]["aten::linear"] == 4


GPU_TRACES = pathlib.Path(__file__).parents[1] / "data/corpus/torch_gpu"


def test_hta_finds_the_same_gpu_work_as_in_pytorchs_trace(read):
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


def test_hta_links_launches_and_kernels_of_a_long_trace(tmp_path, read):
    """HTA stores correlation ids in 16 bits if they fit, and then row numbers beside them: 2 events per launch here."""
    launches = 20_000
    place = {"pid": 1, "tid": 1}
    around = {"ph": "X", **place, "dur": 8 * launches, "args": {}}
    events = [
        {**around, "cat": "user_annotation", "name": "ProfilerStep#0", "ts": 1},
        {**around, "cat": "cpu_op", "name": "aten::add", "ts": 2, "dur": 7 * launches},
    ]
    for i in range(launches):
        start = {"ts": 10 + 4 * i, "dur": 2}
        kernel = {"ph": "X", "cat": "kernel", "name": "add", "pid": 0, "tid": 7, **start}
        events += [
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", **place, **start, "args": {}},
            {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": i + 1, **place, "ts": start["ts"]},
            {**kernel, "ts": start["ts"] + 3, "args": {"device": 0, "stream": 7}},
            {
                "ph": "f",
                "bp": "e",
                "cat": "ac2g",
                "name": "ac2g",
                "id": i + 1,
                "pid": 0,
                "tid": 7,
                "ts": start["ts"] + 3,
            },
        ]
    plain = tmp_path / "plain.json"
    plain.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": events}))
    path = tmp_path / "marey.json"
    marey.load(plain).export_chrome_trace(path)
    ids = [
        event["args"]["correlation"]
        for event in json.loads(path.read_text())["traceEvents"]
        if "correlation" in event.get("args", {})
    ]
    assert len(ids) == 2 * launches and min(ids) > 1 << 16
    assert read(path)["hta"]["gpu"]["launches"]["count"] == launches
