"""``Trace.gpu_use()``: device work and idle gaps."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import marey


def event(category, name, place, start, duration, **args):
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": place[0],
        "tid": place[1],
        "ts": start,
        "dur": duration,
        "args": args,
    }


def launch(start, work_start, duration, number, device=0, stream=7, name="add"):
    """A launching call of 2 us and its kernel; times in microseconds."""
    return [
        event("cuda_runtime", "cudaLaunchKernel", (100, 100), start, 2, correlation=number),
        event("kernel", name, (device, stream), work_start, duration, device=device, stream=stream, correlation=number),
    ]


def loaded(folder, events):
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return marey.load(path)


def test_gpu_use_reports_times_gaps_queue_times_and_launchers(tmp_path):
    events = [event("python_function", "train.py(3): step", (100, 100), 0, 100)]
    events += launch(10, 20, 10, 1) + launch(40, 50, 30, 2)
    use = loaded(tmp_path, events).gpu_use()
    (device,) = use["gpu_devices"]
    assert (device["device"], device["device_index"]) == ("cuda", 0)
    assert device["busy_ns"] == 40_000
    assert device["idle_ns"] == 60_000
    launches = {row["kind"]: row for row in use["gpu_launches"]}
    assert launches["queue"]["median_ns"] == 10_000
    assert launches["queue_after_call"]["max_ns"] == 8_000
    start = use["gpu"]["window_start_ns"]
    gaps = [(gap["start_ns"] - start, gap["duration_ns"], gap["place"]) for gap in use["gpu_gaps"]]
    assert gaps == [(0, 20_000, "before_first"), (30_000, 20_000, "between"), (80_000, 20_000, "after_last")]
    assert use["gpu_gaps"][1]["is_starved"] is True
    first = next(row for row in use["gpu_gap_hosts"] if row["gap"] == 1)
    assert (first["name"], first["function"], first["time_ns"]) == ("train.py(3): step", None, 18_000)
    assert [row["name"] for row in use["gpu_functions"]] == ["train.py(3): step"]
    assert use["gpu_kernels"][0]["grid"] is None


def test_a_device_and_the_number_of_gaps_can_be_chosen(tmp_path):
    trace = loaded(tmp_path, launch(0, 5, 5, 1, device=0) + launch(20, 25, 5, 2, device=1))
    assert [device["device_index"] for device in trace.gpu_use()["gpu_devices"]] == [0, 1]
    use = trace.gpu_use(device=1, longest_gaps=1)
    assert [device["device_index"] for device in use["gpu_devices"]] == [1]
    assert len(use["gpu_gaps"]) == 1
    assert trace.gpu_use(device=7)["gpu_devices"] == []
    with pytest.raises(TypeError):
        trace.gpu_use(device="cuda")


def test_a_trace_without_a_device_has_none():
    with marey.profile() as prof:
        with marey.record_function("work"):
            pass
    use = prof.trace.gpu_use()
    assert use["gpu_devices"] == use["gpu_findings"] == use["gpu_calls"] == []


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 60), st.integers(0, 2)), min_size=1, max_size=30))
def test_busy_and_idle_time_add_up_to_the_window_and_each_kernel_counts_once(tmp_path_factory, pieces):
    events = [event("cpu_op", "whole", (100, 100), 0, 600)]
    for number, (start, duration, stream) in enumerate(pieces):
        events += launch(start, start + 3, duration, number + 1, stream=stream, name=f"kernel {stream}")
    trace = loaded(tmp_path_factory.mktemp("trace"), events)
    use = trace.gpu_use()
    (device,) = use["gpu_devices"]
    busy = set()
    for start, duration, _ in pieces:
        busy.update(range(start + 3, start + 3 + duration))
    assert device["busy_ns"] == len(busy) * 1000
    assert device["busy_ns"] + device["idle_ns"] == trace.window_ns
    assert sum(kernel["count"] for kernel in use["gpu_kernels"]) == len(pieces)
