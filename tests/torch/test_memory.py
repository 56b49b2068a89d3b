"""Memory that PyTorch allocates."""

import json
import threading

import pytest
import torch

import marey
from marey.torch import profile, record_function


def named(prof, name):
    return [event for event in prof.events() if event.name == name]


def test_allocations_belong_to_the_operators_that_made_them():
    """upstream: test_memory_profiler (C58)"""
    with profile(profile_memory=True) as prof:
        with record_function("allocates"):
            kept = torch.ones(1000)
        with record_function("frees"):
            del kept
    (ones,) = named(prof, "aten::ones")
    (empty,) = named(prof, "aten::empty")
    assert (ones.cpu_memory_usage, ones.self_cpu_memory_usage, empty.self_cpu_memory_usage) == (4000, 0, 4000)
    assert named(prof, "allocates")[0].cpu_memory_usage == 4000
    assert named(prof, "frees")[0].cpu_memory_usage == -4000
    assert "CPU Mem" in prof.key_averages().table()


def test_frees_outside_all_ranges_are_separate_rows():
    with profile(profile_memory=True) as prof:
        kept = torch.ones(500)
        del kept
    assert [event.cpu_memory_usage for event in named(prof, "[memory]")] == [-2000]


def test_reports_have_addresses_and_totals(tmp_path):
    """upstream: test_memory_profiler, test_allocations"""
    with profile(profile_memory=True) as prof:
        first = torch.ones(250)
        address = first.data_ptr()
        second = torch.ones(500)
        del first, second
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    rows = [row["args"] for row in json.loads(path.read_text())["traceEvents"] if row.get("name") == "[memory]"]
    assert [row["Bytes"] for row in rows] == [1000, 2000, -1000, -2000]
    assert rows[0]["Addr"] == rows[2]["Addr"] == address
    assert rows[1]["Total Allocated"] - rows[0]["Total Allocated"] == 2000
    assert all(row["Device Type"] == 0 and row["Total Reserved"] == 0 for row in rows)


def test_without_profile_memory_there_are_no_reports():
    with profile() as prof:
        torch.ones(10)
    assert not named(prof, "[memory]") and all(event.cpu_memory_usage == 0 for event in prof.events())


def test_memory_is_recorded_on_every_thread_that_runs_operators():
    """upstream: test_profile_memory_cuda (C58)"""

    def work():
        torch.ones(1000).sum()

    threads = [threading.Thread(target=work) for _ in range(3)]
    with profile(profile_memory=True) as prof:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    # The first operator of a thread is recorded from its start.
    assert [event.cpu_memory_usage for event in named(prof, "aten::ones")] == [4000] * 3


def test_a_plain_marey_session_has_memory_reports_and_cleans_up():
    with profile():
        pass  # operators are observed from now on
    with marey.profile(profile_memory=True) as prof:
        torch.ones(1000)
    assert named(prof, "aten::ones")[0].cpu_memory_usage == 4000
    with torch.profiler.profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]) as upstream:
        torch.ones(1000)
    assert sum(event.cpu_memory_usage for event in upstream.events() if event.name == "aten::ones") == 4000


def test_pytorch_guards_do_not_hide_allocations():
    """A guard discards state that was added to the thread inside it; the next operator adds it again."""
    x = torch.randn(100, 100, requires_grad=True)
    with marey.profile(profile_memory=True) as prof:
        (x @ x).sum().backward()
        torch.ones(1000)
    assert named(prof, "aten::ones")[0].cpu_memory_usage == 4000
    assert sum(event.cpu_memory_usage for event in named(prof, "aten::mm")) == 3 * 40000


def test_a_failed_allocation_is_an_event():
    """upstream: test_oom_tracing (for a device)"""
    with profile(profile_memory=True) as prof:
        with pytest.raises(RuntimeError):
            torch.empty(1 << 58)
        torch.ones(1)
    assert named(prof, "aten::empty") and named(prof, "aten::ones")
    (refused,) = named(prof, "[OutOfMemory]")
    assert refused.cpu_memory_usage == 0 and refused.self_cpu_memory_usage == 0
    rows = {row.key: row for row in prof.key_averages()}
    assert rows["[OutOfMemory]"].cpu_memory_usage == 0 and rows["[OutOfMemory]"].count == 1
    assert rows["aten::empty"].cpu_memory_usage == 4


def test_memory_rows_have_no_input_shapes():
    found = []
    for kind in (profile, torch.profiler.profile):
        with kind(profile_memory=True, record_shapes=True) as prof:
            kept = torch.ones(500)
            del kept
        rows = prof.key_averages(group_by_input_shape=True)
        found += [row.input_shapes for row in rows if row.key == "[memory]"]
    assert found == [[], []]


def test_memory_events_have_no_inputs():
    found = []
    for kind in (profile, torch.profiler.profile):
        with kind(profile_memory=True, record_shapes=True) as prof:
            kept = torch.ones(500)
            del kept
        (event,) = named(prof, "[memory]")
        found.append((event.input_shapes, event.concrete_inputs, event.kwinputs))
        assert getattr(event, "input_dtypes", None) is None  # PyTorch before 2.13 has no such attribute
    assert found == [([], None, None)] * 2


def test_nested_profilers_stop_in_any_order():
    first, second = profile(profile_memory=True), profile(profile_memory=True)
    first.start()
    second.start()
    torch.ones(100)
    first.stop()
    torch.zeros(100)
    second.stop()
    assert not torch.autograd._profiler_enabled()
    assert named(second, "aten::zeros")[0].cpu_memory_usage == 400
    assert named(first, "aten::ones")[0].cpu_memory_usage == 400 and not named(first, "aten::zeros")


def test_the_memory_timeline_is_written(tmp_path):
    with profile(profile_memory=True, record_shapes=True, with_stack=True) as prof:
        kept = [torch.ones(1000) for _ in range(3)]
    prof.export_memory_timeline(str(tmp_path / "timeline.html"))
    assert "<html" in (tmp_path / "timeline.html").read_text().lower() and kept
