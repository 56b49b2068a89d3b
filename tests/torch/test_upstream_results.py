"""Counterparts of PyTorch's profiler tests for tables, events and exported traces, run with marey.torch."""

import json

import pytest
import torch
import torch.profiler

import marey
from marey.torch import _ExperimentalConfig, profile, record_function, schedule, tensorboard_trace_handler


def chrome(prof, folder):
    path = folder / "trace.json"
    prof.export_chrome_trace(str(path))
    return json.loads(path.read_text())


def ranges(document):
    return [row for row in document["traceEvents"] if row["ph"] == "X" and row.get("cat") != "Trace"]


def train():
    x = torch.ones(4, 4, requires_grad=True)
    with record_function("step"):
        torch.sigmoid(x @ x).sum().backward()


@pytest.fixture(scope="module")
def trained():
    with profile(record_shapes=True, with_stack=True, with_flops=True, profile_memory=True) as prof:
        train()
    return prof


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_the_time_unit_applies_to_all_times(trained, unit):
    """upstream: test_override_time_units"""
    text = trained.key_averages().table(time_unit=unit)
    words = [word for word in text.split() if word[0].isdigit() and word.rstrip("mus") != word]
    assert words and all(word.lstrip("0123456789.") == unit for word in words)


def test_tables_of_every_kind_are_printed(trained):
    """upstream: test_profiler_aggregation_table, test_profiler_aggregation_lstm, test_profiler_shapes"""
    assert str(trained) == trained.table()
    for options in ({"group_by_input_shape": True}, {"group_by_stack_n": 3}, {"group_by_overload_name": True}):
        for sort_by in (None, "cpu_time_total", "self_cpu_memory_usage", "count"):
            assert "aten::mm" in trained.key_averages(**options).table(sort_by=sort_by, row_limit=-1)
    (mm, *_) = [row for row in trained.key_averages(group_by_input_shape=True) if row.key == "aten::mm"]
    assert mm.input_shapes == [[4, 4], [4, 4]]
    assert "Total" in trained.key_averages().table(top_level_events_only=True)


def test_linear_layers_have_the_shapes_of_their_inputs():
    """upstream: test_profiler_shapes"""
    first, second, x = torch.nn.Linear(20, 30), torch.nn.Linear(30, 40), torch.randn(128, 20)
    with profile(record_shapes=True) as prof:
        second(first(x))
    shapes = [event.input_shapes for event in prof.events() if event.name == "aten::linear"]
    assert shapes == [[[128, 20], [30, 20], [30]], [[128, 30], [40, 30], [40]]]


def test_stacks_are_written_for_flame_graphs(trained, tmp_path):
    """upstream: test_export_stacks"""
    path = tmp_path / "stacks"
    trained.export_stacks(str(path), "self_cpu_time_total")
    lines = path.read_text().splitlines()
    assert lines and all(int(line.rpartition(" ")[2]) > 0 for line in lines)
    assert any("train" in line for line in lines)
    with pytest.raises(ValueError):
        trained.export_stacks(str(path), "no such metric")


def test_metadata_is_at_the_top_level_of_the_trace(tmp_path):
    """upstream: test_profiler_metadata"""
    values = {"number": 3, "list": [1, 2]}
    with profile() as prof:
        torch.ones(1)
        prof.add_metadata("text", 'with "quotes" and \\ and\nmore')
        prof.add_metadata_json("values", json.dumps(values))
    document = chrome(prof, tmp_path)
    assert document["text"] == 'with "quotes" and \\ and\nmore' and document["values"] == values


def test_exports_are_valid_json_even_if_empty(tmp_path):
    """upstream: test_profiler_tracing"""
    with profile() as prof:
        pass
    assert ranges(chrome(prof, tmp_path)) == []
    with profile(with_stack=True) as prof:
        torch.ones(1)
    assert "aten::ones" in {row["name"] for row in ranges(chrome(prof, tmp_path))}


def test_a_handler_writes_one_file_per_cycle(tmp_path):
    """upstream: test_tensorboard_trace_handler"""
    handler = tensorboard_trace_handler(str(tmp_path), worker_name="worker", use_gzip=True)
    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=3), on_trace_ready=handler) as prof:
        for _ in range(18):
            torch.ones(1)
            prof.step()
    files = [path.name.split(".") for path in tmp_path.iterdir()]
    assert len(files) == 3 and all(parts[0] == "worker" and parts[1].isdigit() for parts in files)
    assert all(parts[2:] == ["pt", "trace", "json", "gz"] for parts in files)


def test_all_events_are_within_the_window_marked_by_the_last_rows(trained, tmp_path):
    """upstream: test_basic_chrome_trace"""
    rows = chrome(trained, tmp_path)["traceEvents"]
    span, _, start, end = rows[-4:]
    assert span["name"].startswith("PyTorch Profiler") and start["name"].startswith("Iteration Start")
    assert end["name"] == "Record Window End"
    for row in rows:
        if row["ph"] == "X":
            assert start["ts"] <= row["ts"] and row["ts"] + row["dur"] <= end["ts"] + 0.001


def test_only_user_ranges_are_annotations(trained):
    """upstream: test_user_annotation"""
    assert {event.name for event in trained.events() if event.is_user_annotation} == {"step"}
    assert [row.key for row in trained.key_averages() if row.is_user_annotation] == ["step"]


def test_a_new_list_of_events_can_be_exported(trained, tmp_path):
    """upstream: test_event_list"""
    events = marey.profiler.EventList(list(trained.events()), profile_memory=True)
    events._build_tree()
    events.export_chrome_trace(str(tmp_path / "events.json"))
    assert json.loads((tmp_path / "events.json").read_text()) and "aten::mm" in events.table()


def test_steps_do_not_partially_overlap_python_frames(tmp_path):
    """upstream: test_cpu_annotation_overlap"""
    config = _ExperimentalConfig(adjust_profiler_step=True)
    plan = schedule(wait=0, warmup=0, active=6)
    with profile(schedule=plan, with_stack=True, experimental_config=config) as prof:
        for _ in range(5):
            train()
            prof.step()
    rows = ranges(chrome(prof, tmp_path))

    def times(row):  # whole nanoseconds, because sums of fractions are inexact
        return round(row["ts"] * 1000), round((row["ts"] + row["dur"]) * 1000)

    frames = [times(row) for row in rows if row["cat"] == "python_function"]
    steps = [times(row) for row in rows if row["name"].startswith("ProfilerStep")]
    assert len(steps) >= 5
    for start, end in steps:
        assert not [1 for a, b in frames if start < a < end < b or a < start < b < end]


def test_every_form_of_annotation_has_its_inputs(tmp_path):
    """upstream: test_record_function (test_record_function), test_record_function_legacy"""
    x = torch.ones(4, 3)
    with profile(record_shapes=True) as prof:
        with record_function("with text", "some text"):
            pass
        handle = torch.autograd._record_function_with_args_enter("with values", 1, False, 2.5, [x, x], "hello", x)
        torch.autograd._record_function_with_args_exit(handle)
        handle = torch.ops.profiler._record_function_enter("old form", None)
        torch.ops.profiler._record_function_exit(handle)
    events = {event.name: event for event in prof.events()}
    assert events["with text"].concrete_inputs == ["some text"]
    assert events["with values"].input_shapes == [[], [], [], [], [], [4, 3]]
    assert events["with values"].concrete_inputs[:3] == [1, False, 2.5]
    assert "old form" in events and [event.name for event in prof.events()].count("old form") == 1


def test_exported_traces_follow_pytorchs_rules(trained, tmp_path):
    """upstream: test_trace_validator"""
    validator = pytest.importorskip("torch.profiler._trace_validator")
    chrome(trained, tmp_path)
    assert validator.validate_trace(str(tmp_path / "trace.json")) == (True, [])


# ---- events agree with the exported trace


def test_events_have_the_times_categories_and_ids_of_the_trace(trained, tmp_path):
    """upstream: test_profiler_timestamp_consistency, test_profiler_activity_type_parity,
    test_profiler_external_id_parity, test_python_function_events_in_events"""
    document = chrome(trained, tmp_path)
    base = document["baseTimeNanoseconds"] - trained.kineto_results.trace_start_ns()
    rows = {
        (row["name"], round(row["ts"] * 1000) + base, row["cat"], row.get("args", {}).get("External id", 0))
        for row in ranges(document)
    }
    events = {
        (event.trace_name, round(event.time_range.start * 1000), event.activity_type, event.external_id)
        for event in trained.events()
        if event.trace_name and event.name != "[memory]"
    }
    assert events <= rows and "python_function" in {event[2] for event in events}
    assert [name for name, *_ in rows - events] == ["aten::sum"]  # a nested repetition, which is removed from events


def test_events_have_the_inputs_of_the_trace(trained, tmp_path):
    """upstream: test_profiler_op_args_events_parity, test_structured_metadata_matches_chrome_trace,
    test_expose_kineto_event_metadata"""
    arguments = [row.get("args", {}) for row in ranges(chrome(trained, tmp_path))]
    rows = {row["External id"]: row for row in arguments if {"External id", "Ev Idx"} <= row.keys()}
    compared = 0
    for event in trained.events():
        row = rows.get(event.id)
        if row is None or "Input Dims" not in row:
            continue
        compared += 1
        assert event.structured_input_shapes == row["Input Dims"]
        assert event.input_dtypes == row["Input type"]
        assert event.structured_input_strides == row["Input Strides"]
        assert f'"External id": {row["External id"]}, "Ev Idx": {row["Ev Idx"]}' in event._metadata_json
    assert compared > 5


def test_events_have_the_flows_of_the_trace(trained, tmp_path):
    """upstream: test_profiler_flow_events_parity, _fwdbwd_flow_events_parity, test_profiler_fwd_bwd_link"""
    document = chrome(trained, tmp_path)
    names = {(row["tid"], row["ts"]): row["name"] for row in ranges(document)}
    flows = {}
    for row in document["traceEvents"]:
        if row.get("cat") == "fwdbwd":
            flows.setdefault(row["id"], {})[row["ph"]] = (row["tid"], row["ts"])
    assert len(flows) == 3 and all(set(ends) == {"s", "f"} for ends in flows.values())
    pairs = {(names[ends["s"]], names[ends["f"]]) for ends in flows.values()}
    assert ("aten::sigmoid", "SigmoidBackward0") in pairs
    ends = {(event.name, event.flow_start) for event in trained.events() if event.flow_type == 1}
    assert {name for name, is_start in ends if is_start} == {pair[0] for pair in pairs}
    assert {name for name, is_start in ends if not is_start} == {pair[1] for pair in pairs}


def test_overload_names_follow_operator_names_in_the_trace(tmp_path):
    """upstream: test_profiler_overload_names"""
    with profile(experimental_config=_ExperimentalConfig(capture_overload_names=True)) as prof:
        x = torch.ones(2)
        x.add_(1)
        x.add_(torch.ones(2))
    names = [row["name"] for row in ranges(chrome(prof, tmp_path))]
    assert names.count("aten::add_.Scalar") + names.count("aten::add_.Tensor") == 2
    assert len([row for row in prof.key_averages() if row.key == "aten::add_"]) == 1
    again = marey.load(str(tmp_path / "trace.json"))
    overloads = {(event.name, event.overload_name) for event in again.events()}
    assert ("aten::fill_", "Scalar") in overloads
