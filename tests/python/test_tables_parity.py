"""Tables of lists made by hand, compared with PyTorch's tables of the same events (see tests/data/parity)."""

import json
import pathlib

import pytest

from marey import EventList, FunctionEvent
from marey.profiler import DeviceType

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
CASES = json.loads((DATA / "parity" / "table_cases.json").read_text(encoding="utf-8"))
DEVICES = {"cpu": DeviceType.CPU, "cuda": DeviceType.CUDA, "xpu": DeviceType.XPU, "hpu": DeviceType.HPU}


def memory_of(case, start, end, options, owned):
    """Return the allocation reports of its thread that belong to an event."""
    memory = {"cpu": 0, "device": 0}
    if options.get("device", "cpu") != "cpu" or options.get("is_async"):
        return memory
    for i, report in enumerate(case.get("memory", [])):
        same = all(report.get(key, usual) == options.get(key, usual) for key, usual in (("thread", 1), ("node", -1)))
        if same and start <= report["time"] < end and not report.get("oom"):
            owned.add(i)
            memory["cpu" if report.get("device", "cpu") == "cpu" else "device"] += report["bytes"]
    return memory


def events_of_case(case):
    owned, by_id, launches, events = set(), {}, [], []
    for number, (name, start, end, *rest) in enumerate(case["events"]):
        options = rest[0] if rest else {}
        memory = memory_of(case, start, end, options, owned)
        event = FunctionEvent(
            id=number,
            name="ProfilerStep*" if name.startswith("ProfilerStep#") else name,
            thread=options.get("thread", 1),
            start_us=start / 1000,
            end_us=end / 1000,
            overload_name=options.get("overload", ""),
            fwd_thread=options.get("forward_thread"),
            input_shapes=options.get("shapes", []),
            stack=options.get("stack", []),
            scope=options.get("scope", 0),
            use_device=case.get("device"),
            cpu_memory_usage=memory["cpu"],
            device_memory_usage=memory["device"],
            is_async=options.get("is_async", False),
            sequence_nr=options.get("sequence", -1),
            node_id=options.get("node", -1),
            device_type=DEVICES[options.get("device", "cpu")],
            flops=options.get("flops"),
            is_user_annotation=options.get("is_user_annotation", False),
        )
        events.append(event)
        by_id[options.get("id")] = event
        launches += [(event, kernel) for kernel in options.get("launches", [])]
    for event, kernel in launches:
        event.append_kernel(kernel, 0, by_id[kernel].time_range.elapsed_us())
    for i, report in enumerate(case.get("memory", [])):
        if i in owned:
            continue
        is_cpu = report.get("device", "cpu") == "cpu"
        taken = 0 if report.get("oom") else report["bytes"]
        time = report["time"] / 1000
        events.append(
            FunctionEvent(
                len(events),
                "[OutOfMemory]" if report.get("oom") else "[memory]",
                report.get("thread", 1),
                time,
                time,
                overload_name="",
                input_shapes=[],
                stack=[],
                use_device=case.get("device"),
                node_id=report.get("node", -1),
                cpu_memory_usage=taken if is_cpu else 0,
                device_memory_usage=0 if is_cpu else taken,
            )
        )
    events.sort(key=lambda event: [event.time_range.start, -event.time_range.end])
    with_flops = any(len(event) > 3 and "flops" in event[3] for event in case["events"])
    return EventList(events, use_device=case.get("device"), profile_memory="memory" in case, with_flops=with_flops)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_table_of_events_made_by_hand_equals_upstreams_character_for_character(case):
    """upstream: test_profiler_aggregation_table, test_override_time_units"""
    events = events_of_case(case)
    events._build_tree()
    if case["view"] == "averages":
        group = case.get("group", {})
        events = events.key_averages(
            group_by_input_shapes=group.get("shapes", False),
            group_by_stack_n=group.get("stack", 0),
            group_by_overload_name=group.get("overload", False),
        )
    golden = DATA / "golden" / "table" / (case["name"] + ".txt")
    assert events.table(**case.get("table", {})) == golden.read_text(encoding="utf-8")
    again = EventList(list(events), **events._options())  # and again, from the Python objects
    assert again.table(**case.get("table", {})) == golden.read_text(encoding="utf-8")
