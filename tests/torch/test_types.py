"""Results have PyTorch's own types, so that programs and PyTorch's modules can read them unchanged."""

import gc

import pytest
import torch
from torch._C._profiler import RecordScope as TorchScope
from torch._C._profiler import _EventType, _ExtraFields_Allocation, _ExtraFields_PyCall, _ExtraFields_TorchOp
from torch.profiler import _memory_profiler, _utils

import marey
import marey.torch
from marey.profiler import ProfilerState
from marey.torch import profile

ALL = {"record_shapes": True, "profile_memory": True, "with_stack": True}


@pytest.fixture(scope="module")
def step():
    """A profiler that recorded one training step."""
    model, data = torch.nn.Linear(4, 2), torch.ones(3, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with profile(**ALL) as prof:
        model(data).sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
    return prof


def test_events_can_be_selected_by_pytorchs_device_type(step):
    events = step.events()
    assert [e for e in events if e.device_type == torch.autograd.DeviceType.CPU] == list(events)
    assert {type(e.device_type) for e in step.key_averages()} == {torch.autograd.DeviceType}
    assert {type(e.device_type()) for e in step.kineto_results.events()} == {torch.autograd.DeviceType}


def test_lists_that_were_changed_keep_the_types(step):
    events = step.events()[:]
    changed = step.events()
    changed.append(events[0])
    assert changed.total_average().device_type == torch.autograd.DeviceType.CPU
    assert changed.key_averages()[0].device_type == torch.autograd.DeviceType.CPU
    step._events = None  # other tests get an unchanged list


def test_nodes_and_their_fields_are_instances_of_pytorchs_classes(step):
    nodes = list(_utils.traverse_dfs(step.tree()))
    kinds = {_EventType.TorchOp: _ExtraFields_TorchOp, _EventType.PyCall: _ExtraFields_PyCall}
    kinds[_EventType.Allocation] = _ExtraFields_Allocation
    for tag, kind in kinds.items():
        found = [node for node in nodes if node.tag == tag]
        assert found and all(isinstance(node.extra_fields, kind) and node.typed[0] == tag for node in found)
    assert all(isinstance(node, torch._C._profiler._ProfilerEvent) for node in nodes)
    linear = next(node.extra_fields for node in nodes if node.name == "aten::linear")
    assert linear.scope == TorchScope.FUNCTION
    given = linear.inputs[0]
    assert isinstance(given, torch._C._profiler._TensorMetadata)
    assert (given.device, given.dtype, given.layout) == (torch.device("cpu"), torch.float32, torch.strided)
    ones = torch._C._profiler._ExtraFields_TorchOp
    assert isinstance(linear, ones) and repr(linear).startswith("_ExtraFields_TorchOp(name='aten::linear'")


def test_two_trees_of_one_recording_have_equal_nodes(step):
    first, second = (list(_utils.traverse_dfs(step.kineto_results.experimental_event_tree())) for _ in range(2))
    assert first == second and len(set(first + second)) == len(first)


def test_layouts_are_pytorchs(step):
    sparse = torch.eye(3).to_sparse()
    with profile(record_shapes=True) as prof:
        torch.sparse.mm(sparse, torch.ones(3, 3))
    inputs = [value for node in _utils.traverse_dfs(prof.tree()) for value in node.extra_fields.inputs or []]
    assert torch.sparse_coo in {getattr(value, "layout", None) for value in inputs}


def test_pytorchs_memory_profiler_reads_the_tree(step):
    memory = step._memory_profile()
    assert isinstance(memory, _memory_profiler.MemoryProfile)
    categories = set(memory._category_snapshot().values())
    assert {_memory_profiler.Category.PARAMETER, _memory_profiler.Category.GRADIENT} <= categories
    assert {action for _, action, _, _ in memory.timeline} >= {_memory_profiler.Action.CREATE}


def test_activities_and_actions_are_pytorchs():
    activity = torch.profiler.ProfilerActivity.CPU
    assert activity in marey.torch.supported_activities()
    schedule = torch.profiler.schedule(wait=1, warmup=0, active=1)
    with profile(activities=[activity], schedule=schedule) as prof:
        assert prof.activities == {activity}
        assert prof.current_action is torch.profiler.ProfilerAction.NONE
        prof.step()
        assert prof.current_action is torch.profiler.ProfilerAction.RECORD_AND_SAVE
        prof.toggle_collection_dynamic(False, [activity])
        torch.ones(3)
    assert [event.name for event in prof.events() if event.name.startswith("aten")] == []


@pytest.mark.parametrize(
    "own, theirs",
    [
        (marey.profiler.DeviceType, torch.autograd.DeviceType),
        (marey.ProfilerActivity, torch.profiler.ProfilerActivity),
        (marey.RecordScope, TorchScope),
        (ProfilerState, torch.autograd.ProfilerState),
    ],
)
def test_mareys_enumerations_are_equal_to_pytorchs(own, theirs):
    members = theirs.__members__.values()
    shared = [(own[member.name], member) for member in members if member.name in own.__members__]
    assert len(shared) >= 6
    for one, other in shared:
        assert one == other and hash(one) == hash(other)
        assert [member for member in own if member == other] == [one]


# ---- options that change results


@pytest.mark.parametrize("is_recorded", [True, False])
def test_garbage_collection_is_recorded_on_request(is_recorded):
    config = torch._C._profiler._ExperimentalConfig(record_python_gc_info=is_recorded)
    with profile(with_stack=True, experimental_config=config) as prof:
        gc.collect()
    assert any(event.name == "Python GC" for event in prof.events()) == is_recorded


def test_trace_only_leaves_no_events_unless_stacks_are_recorded(tmp_path):
    try:
        config = torch._C._profiler._ExperimentalConfig(trace_only=True)
    except TypeError:
        pytest.skip("this PyTorch has no trace_only")
    with profile(experimental_config=config) as prof:
        torch.ones(3)
    with pytest.raises(RuntimeError, match="trace_only=True excludes events"):
        prof.events()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    assert "aten::ones" in (tmp_path / "trace.json").read_text()
    with (
        pytest.warns(UserWarning, match="trace_only is ignored"),
        profile(with_stack=True, experimental_config=config) as prof,
    ):
        torch.ones(3)
    assert len(prof.events()) > 0


def test_statistics_of_events_are_known_once_they_are_read():
    with profile() as prof:
        torch.ones(3)
    stats = prof._stats()
    assert (stats.number_of_events, stats.function_events_build_tree_call_duration_us) == (0, 0)
    count = len(prof.events())
    assert stats.number_of_events == count > 0
    assert stats.function_events_build_tree_call_duration_us > 0 < stats.parse_kineto_call_duration_us


def test_parsed_results_are_all_events():
    with profile() as prof:
        torch.ones(3)
    parsed = prof._parse_kineto_results(prof.kineto_results, timeout_s=60.0)
    assert [event.name for event in parsed] == [event.name for event in prof.events()]
    with pytest.raises(ValueError, match="timeout_s must be non-negative, not -1"):
        prof._parse_kineto_results(prof.kineto_results, timeout_s=-1)


def test_recording_neither_the_cpu_nor_devices_is_an_assertion_as_in_pytorch():
    with pytest.raises(AssertionError, match="use_cpu=False requires use_kineto=True"):
        profile(use_cpu=False)


# ---- exported traces


def exported(prof, path):
    import json

    prof.export_chrome_trace(str(path))
    return json.loads(path.read_text())


def test_exported_times_count_from_the_base_that_all_processes_share(tmp_path):
    with profile() as prof:
        torch.ones(3)
    ours = exported(prof, tmp_path / "ours.json")
    with torch.profiler.profile() as prof:
        torch.ones(3)
    theirs = exported(prof, tmp_path / "theirs.json")
    assert ours["baseTimeNanoseconds"] == theirs["baseTimeNanoseconds"]
    ours, theirs = ([e["ts"] for e in of["traceEvents"] if e["name"] == "aten::ones"] for of in (ours, theirs))
    assert ours[0] < theirs[0] < ours[0] + 600e6  # microseconds


def test_operators_have_a_record_function_id_and_flows_follow_the_backward_pass(tmp_path):
    given = torch.ones(3, requires_grad=True)
    with profile() as prof:
        given.sin().sum().backward()
    events = exported(prof, tmp_path / "trace.json")["traceEvents"]
    operators = [event for event in events if event.get("cat") == "cpu_op"]
    assert operators and all(event["args"]["Record function id"] == 0 for event in operators)
    names = {event["ts"]: event["name"] for event in operators}
    flows = {event["id"]: names[event["ts"]] for event in events if event["ph"] == "f"}
    assert flows == {1: "SumBackward0", 2: "SinBackward0"}
    starts = {event["id"]: names[event["ts"]] for event in events if event["ph"] == "s"}
    assert starts == {1: "aten::sum", 2: "aten::sin"}


def test_marks_of_steps_are_not_annotations(tmp_path):
    with profile(schedule=torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=1)) as prof:
        for _ in range(2):
            torch.ones(3)
            prof.step()
    events = exported(prof, tmp_path / "trace.json")["traceEvents"]
    assert [event["name"] for event in events if event.get("cat") == "user_annotation"] == ["ProfilerStep#1"]
    loaded = marey.load(tmp_path / "trace.json")
    assert (
        len(loaded.tables["instants"].to_csv().splitlines()) - 1
        == len(prof.trace.tables["instants"].to_csv().splitlines()) - 1
    )


def test_the_last_four_events_describe_the_window_in_pytorchs_order(tmp_path):
    with profile() as prof:
        torch.ones(3)
    last = exported(prof, tmp_path / "trace.json")["traceEvents"][-4:]
    names = ["PyTorch Profiler (0)", "process_sort_index", "Iteration Start: PyTorch Profiler", "Record Window End"]
    assert [event["name"] for event in last] == names
    assert last[0]["ts"] == last[2]["ts"] and last[0]["ts"] + last[0]["dur"] == pytest.approx(last[3]["ts"])


# ---- steps


def test_a_profiler_with_a_schedule_that_is_only_stepped_records():
    prof = profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1))
    for _ in range(6):
        torch.ones(3)
        prof.step()
    assert sum(event.name == "aten::ones" for event in prof.events()) == 2
    prof.stop()
    prof.step()  # it has ended
    assert not prof.entered
