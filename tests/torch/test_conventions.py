"""Names, ids, steps and FLOPs follow PyTorch's conventions."""

import inspect
import json
import re
import threading
import time

import pytest
import torch
import torch.profiler
from torch.utils.flop_counter import FlopCounterMode

import marey
import marey.torch
from marey.torch import profile, schedule

# Calls of the program in PyTorch; the profilers differ in calls of their own.
INSIDE = ("torch/nn/", "torch/_tensor.py", "nn.Module: ", "<built-in method add ", "<built-in function linear")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 4, 3)
        self.last = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.last(self.first(x).mean((2, 3))).sum()


def train(model):
    torch.add(model(torch.ones(2, 3, 8, 8)), 1).backward()
    return len([1, 2])


def python_calls(prof):
    """Return the names of all Python calls, without addresses."""
    names = [event.name for event in prof.events() if event.is_python_function]
    return {re.sub("0x[0-9a-f]+", "0x", name) for name in names}


def exported(prof, folder):
    path = folder / "trace.json"
    prof.export_chrome_trace(str(path))
    return [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]


@pytest.mark.skipif(
    "is_python_function" not in inspect.signature(torch.autograd.profiler_util.FunctionEvent).parameters,
    reason="events of this PyTorch do not say whether they are Python calls",
)
def test_calls_have_the_names_of_pytorchs_profiler():
    recorded = []
    for kind in (profile, torch.profiler.profile):
        model = Net()
        with kind(with_stack=True) as prof:
            train(model)
        recorded.append(python_calls(prof))
    ours, theirs = ({name for name in names if name.startswith(INSIDE)} for names in recorded)
    assert ours == theirs and len(ours) > 10
    ours = recorded[0]
    assert "<built-in function len>" in ours and "<built-in method add of type object at 0x>" in ours
    line = train.__code__.co_firstlineno
    assert any(name.endswith(f"test_conventions.py({line}): train") for name in ours)
    assert not [name for name in ours if "Net.forward" in name]


def test_qualified_names_are_an_option():
    model = Net()
    with profile(with_stack=True, qualified_names=True) as prof:
        train(model)
    assert any(name.endswith(": Net.forward") for name in python_calls(prof))
    assert "builtins.len" in python_calls(prof)


def test_a_session_of_marey_at_the_same_time_keeps_its_own_names(tmp_path):
    model = Net()
    with marey.profile(with_stack=True) as own, profile(with_stack=True, output=tmp_path / "a.marey") as prof:
        train(model)
    assert any(name.endswith(": Net.forward") for name in python_calls(own))
    assert not any(name.endswith(": Net.forward") for name in python_calls(prof))
    captured = marey.load(str(tmp_path / "a.marey"))
    assert any(event.name.endswith(": Net.forward") for event in captured.events())


def test_ids_are_unique_in_the_process(tmp_path):
    seen = set()
    for _ in range(3):
        with profile() as prof:
            with marey.torch.record_function("mine"):
                torch.ones(2) + 1
        ids = {event.correlation_id() for event in prof.kineto_results.events()}
        assert ids == {event.id for event in prof.events()} and not ids & seen
        seen |= ids
        operators = [event for event in exported(prof, tmp_path) if event["cat"] in ("cpu_op", "user_annotation")]
        assert {event["args"]["External id"] for event in operators} <= ids
        assert [event["args"]["Ev Idx"] for event in operators] == list(range(len(operators)))
        assert all("Record function id" in event["args"] for event in operators)
        nodes = prof.kineto_results.experimental_event_tree()
        assert {node.correlation_id for node in nodes} <= ids


def before():
    time.sleep(0.002)  # much longer than the time between two steps


def after():
    pass


def helper(prof):
    before()
    prof.step()
    after()


def callback(prof):
    prof.step()


PLAN = schedule(wait=0, warmup=1, active=3, repeat=1)


def test_a_function_that_calls_step_keeps_its_time():
    with profile(with_stack=True, schedule=PLAN) as prof:
        for _ in range(4):
            helper(prof)
    events = prof.events()
    assert not [event.name for event in events if event.is_async]
    inside = [event for event in events if event.name.endswith((": before", ": after"))]
    assert len(inside) == 6 and all(
        "helper" in ancestors(event) or "ProfilerStep" in ancestors(event) for event in inside
    )
    steps = [event for event in events if event.name.startswith("ProfilerStep")]
    functions = [event for event in events if event.name.endswith(": helper")]
    assert len(steps) == 3 and all(event.cpu_time_total >= 2000 for event in steps + functions[1:])


def pause():
    time.sleep(0.02)  # a step and a range that cross for a moment only are cut


def train_as_lightning(kind):
    """Call step() inside a range, between the forward and the backward pass, and start and stop inside others."""
    prof = kind(schedule=schedule(wait=0, warmup=1, active=3, repeat=1), profile_memory=True)
    values = torch.ones(64, 64)
    kept = []
    with torch.profiler.record_function("fit"):
        prof.start()
        for _ in range(5):
            with torch.profiler.record_function("load"):
                torch.zeros(3)
            with torch.profiler.record_function("optimizer_step"):
                with torch.profiler.record_function("training_step"):
                    kept.append(torch.mm(values, values))
                    pause()
                prof.step()
                with torch.profiler.record_function("backward"):
                    torch.add(values, values)
                    pause()
        prof.stop()
    return prof


def test_a_step_and_ranges_that_cross_are_those_of_pytorch(tmp_path):
    """K17"""
    found = []
    for kind in (profile, torch.profiler.profile):
        prof = train_as_lightning(kind)
        events = [event for event in prof.events() if event.name != "[memory]"]
        starts = [place for place, event in enumerate(events) if event.name == "ProfilerStep*"]
        events = events[: starts[-1]]  # not the range that was running at the end
        parents = [(event.name, event.cpu_parent and event.cpu_parent.name) for event in events]
        memory = [event.cpu_memory_usage for event in events if event.name == "ProfilerStep*"]
        rows = exported(prof, tmp_path)
        steps = [row for row in rows if row["name"].startswith("ProfilerStep#")]
        threads = {row["tid"] for row in rows if row["cat"] == "cpu_op"}
        assert threads == {row["tid"] for row in steps}
        found.append((parents, memory, [step["name"] for step in steps]))
        crossing = [event for event in events if event.name in ("ProfilerStep*", "optimizer_step")]
        assert all(event.cpu_time_total >= 40_000 and not event.is_async for event in crossing)
        assert all(event.self_cpu_time_total >= 0 for event in events)
    assert found[0] == found[1]
    assert ("aten::add", "backward") in found[0][0] and ("backward", "ProfilerStep*") in found[0][0]


def test_a_callback_that_calls_step_leaves_the_step_whole():
    with profile(with_stack=True, schedule=PLAN) as prof:
        for _ in range(4):
            before()
            callback(prof)
    events = prof.events()
    assert not [event.name for event in events if event.is_async]
    work = [event for event in events if event.name.endswith(": before")]
    assert len(work) == 3 and all("ProfilerStep" in ancestors(event) for event in work)
    steps = [event for event in events if event.name.startswith("ProfilerStep")]
    assert len(steps) == 3 and not [step for step in steps if ": callback" in ancestors(step)]


def ancestors(event):
    names = []
    while event is not None:
        names.append(event.name)
        event = event.cpu_parent
    return " ".join(names)


def test_flops_are_counted_once():
    model = Net()
    with FlopCounterMode(display=False) as counter:
        model(torch.ones(2, 3, 8, 8))
    sums = []
    for kind in (profile, torch.profiler.profile):
        with kind(with_flops=True) as prof:
            model(torch.ones(2, 3, 8, 8))
        sums.append(sum(row.flops for row in prof.key_averages()))
        assert sum(event.flops for event in prof.events() if event.flops) == sums[-1]
    assert sums[0] == sums[1] == counter.get_total_flops()
    assert "MFLOPs" in prof.key_averages().table() or "FLOPs" in prof.key_averages().table()


@pytest.mark.filterwarnings("ignore:'custom' is not recorded")
@pytest.mark.parametrize("use_kineto, kind", [(True, "KINETO_PRIVATEUSE1"), (False, "KINETO_PRIVATEUSE1_FALLBACK")])
def test_a_device_of_an_extension_has_its_kind(monkeypatch, use_kineto, kind):
    if not hasattr(torch._C._profiler.ProfilerState, kind):
        pytest.skip(f"this PyTorch has no {kind}")
    monkeypatch.setattr(torch.autograd.profiler, "_get_privateuse1_backend_name", lambda: "custom")
    prof = profile(use_device="custom", use_kineto=use_kineto)
    assert prof.profiler_kind == getattr(torch._C._profiler.ProfilerState, kind)


def test_allocations_have_pytorchs_numbers():
    def allocations(kind):
        with kind(profile_memory=True, record_shapes=True) as prof:
            x = torch.ones(1)
            x.set_()
            x.set_(torch.ones(1).storage())
            x.view_as(x)
            del x
        found, waiting = [], list(prof.profiler.kineto_results.experimental_event_tree())
        while waiting:
            node = waiting.pop(0)
            if node.tag.name == "Allocation":
                fields = node.extra_fields
                found.append((fields.allocation_id, fields.id, fields.alloc_size))
            waiting = node.children + waiting
        return found

    assert allocations(profile) == allocations(torch.profiler.profile)


def test_the_step_of_an_optimizer_has_pytorchs_name():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model)
    with profile(with_stack=True) as prof:
        optimizer.step()
    names = [event.name for event in prof.events()]
    code = torch.optim.Optimizer._optimizer_step_code.__code__
    assert names.count(f"torch/optim/optimizer.py({code.co_firstlineno}): _optimizer_step_code") == 1
    assert not [name for name in names if name.startswith("Optimizer: ")]


def test_threads_that_the_program_starts_are_followed_only_on_request():
    """upstream: test_profile_all_threads"""
    for all_threads in (True, False):
        config = torch._C._profiler._ExperimentalConfig(profile_all_threads=all_threads)
        with profile(experimental_config=config) as prof:
            torch.ones(2)
            thread = threading.Thread(target=lambda: torch.zeros(2))
            thread.start()
            thread.join()
        names = {event.name for event in prof.events()}
        assert "aten::ones" in names and ("aten::zeros" in names) == all_threads


def test_the_window_contains_its_span_in_64_bit_reals(tmp_path):
    """upstream: test_basic_chrome_trace"""
    for _ in range(20):
        with profile() as prof:
            torch.ones(2)
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        (span,) = [event for event in events if event.get("cat") == "Trace"]
        (end,) = [event["ts"] for event in events if event["name"] == "Record Window End"]
        assert span["ts"] + span["dur"] <= end


def test_ids_of_operators_can_be_left_out_of_device_work(tmp_path):
    """upstream: test_disable_external_correlation; calls and work of a GPU then have none"""
    config = torch._C._profiler._ExperimentalConfig(disable_external_correlation=True)
    with profile(experimental_config=config) as prof:
        torch.ones(2)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    document = json.loads((tmp_path / "trace.json").read_text())
    assert document["disable_external_correlation"] == 1
    (operator,) = [event for event in document["traceEvents"] if event["name"] == "aten::ones"]
    assert "External id" in operator["args"]
