"""Events and lists that a program creates itself."""

import copy
import json
import pickle
import warnings

import pytest

import marey
from marey import EventList, FunctionEvent, FunctionEventAvg
from marey.compat.name_tables import StringTable  # private: only modules of PyTorch use it
from marey.profiler import DeviceType, EnforceUnique, MemRecordsAcc
from marey.results.event_parts import (  # private: parts of events, made by hand
    FormattedTimesMixin,
    Interval,
    Kernel,
    event_metadata,
)


def event(name, start, end, id=0, thread=1, **options):
    return FunctionEvent(id, name, thread, start, end, **options)


def tree(*events, **options):
    made = EventList(events, **options)
    made._build_tree()
    return made


def children(events):
    return {event.name: [child.name for child in event.cpu_children] for event in events}


def test_intervals_nest_thread_by_thread():
    """upstream: test_profiler_aggregation_fake"""
    number = iter(range(10))
    threads = [
        [1, [(0, 1, next(number)), (1, 2, next(number))]],
        [0, [(0, 2, next(number)), (1, 2, next(number)), (1, 3, next(number))]],
    ]
    events = EventList()
    for thread, ranges in threads:
        for start, end, id in ranges:
            events.append(FunctionEvent(id=id, node_id=0, name="", thread=thread, start_us=start, end_us=end))
    events._populate_cpu_children()
    assert [[child.id for child in event.cpu_children] for event in events] == [[], [], [], [], [3]]


def test_an_average_adds_events_and_averages():
    """upstream: test_profiler_function_event_avg"""
    avg = FunctionEventAvg()
    avg.add(FunctionEvent(id=0, node_id=0, name="foo", thread=0, start_us=10, end_us=15))
    avg.add(FunctionEvent(id=1, node_id=0, name="foo", thread=0, start_us=20, end_us=30))
    avg.add(avg)
    assert avg.key == "foo"
    assert (avg.count, avg.cpu_time_total, avg.self_cpu_time_total, avg.device_time_total) == (4, 30, 30, 0)
    assert (avg.cpu_time, avg.device_time) == (7.5, 0)


def test_an_average_accepts_only_events_with_its_key():
    avg = FunctionEventAvg()
    avg += event("a", 0, 1)
    with pytest.raises(marey.Error, match="same key"):
        avg.add(event("b", 0, 1))
    with pytest.raises(marey.Error, match="expected a FunctionEvent"):
        avg.add(3)
    assert avg.count == 1


def test_a_fresh_average_has_all_its_attributes():
    fresh = FunctionEventAvg()
    assert fresh.key is None and fresh.is_user_annotation is False and fresh.flops == 0
    assert "FunctionEventAvg" in repr(fresh)


def test_an_event_keeps_what_it_is_given_and_derives_the_rest():
    made = event("op", 2, 7, id=9, thread=4, scope=1, sequence_nr=3, input_shapes=[[2, 3]])
    assert (made.id, made.name, made.key, made.thread, made.device_resource_id) == (9, "op", "op", 4, 4)
    assert isinstance(made.time_range, Interval) and made.time_range.elapsed_us() == 5
    assert (made.count, made.kernels, made.cpu_children, made.cpu_parent) == (1, [], [], None)
    assert (made.self_cpu_percent, made.total_cpu_percent, made.total_device_percent) == (-1, -1, -1)
    assert (made.cpu_time_total, made.cpu_time_total_str, made.cpu_time_str) == (5, "5.000us", "5.000us")
    assert made.device_type == DeviceType.CPU and made.input_shapes == [[2, 3]]
    assert made.external_id == 0 and made.python_id == -1 and made.event_metadata is None
    assert "<FunctionEvent id=9 name=op" in repr(made)


def test_self_times_are_totals_without_children_and_async_events_have_none():
    events = tree(event("a", 0, 10), event("b", 1, 4), event("c", 5, 6), event("w", 0, 100, is_async=True))
    a, b, c, waiting = events
    assert children(events) == {"a": ["b", "c"], "b": [], "c": [], "w": []}
    assert b.cpu_parent is a and a.cpu_parent is None
    assert (a.self_cpu_time_total, b.self_cpu_time_total) == (6, 3)
    assert (waiting.cpu_time_total, waiting.self_cpu_time_total) == (100, 0)
    assert events.self_cpu_time_total == 10


def test_device_times_are_those_of_kernels_here_and_inside():
    outer, inner = event("outer", 0, 10, use_device="cuda"), event("inner", 1, 5, use_device="cuda")
    inner.append_kernel("k", 0, 30)
    outer.append_kernel("j", 0, 12)
    events = tree(outer, inner, use_device="cuda")
    assert inner.kernels == [Kernel("k", 0, 30)]
    assert (outer.device_time_total, outer.self_device_time_total) == (42, 12)
    assert (inner.device_time_total, inner.self_device_time_total) == (30, 30)
    table = events.table()
    assert "Self CUDA" in table and "42.000us" in table
    assert event("off", 0, 1).device_time_total == 0


def test_a_kernel_of_a_deep_tree_is_found_without_recursion():
    events = [event(f"level {i}", i, 10_000 - i, use_device="cuda") for i in range(3000)]
    events[-1].append_kernel("k", 0, 7)
    made = tree(*events, use_device="cuda")
    assert made[0].device_time_total == 7
    assert made[0].self_device_time_total == 0


def test_kernels_and_children_belong_to_events_of_the_cpu():
    kernel = event("k", 0, 1, device_type=DeviceType.CUDA, use_device="cuda")
    host = event("h", 0, 1)
    for misuse in (
        lambda: kernel.append_kernel("k", 0, 1),
        lambda: kernel.append_cpu_child(host),
        lambda: host.append_cpu_child(kernel),
        lambda: host.set_cpu_parent(kernel),
        lambda: kernel.set_cpu_parent(host),
        lambda: host.append_cpu_child("text"),
    ):
        with pytest.raises(marey.Error):
            misuse()
    assert (kernel.cpu_time_total, kernel.device_time_total) == (0, 1)


def test_a_repetition_is_removed_and_its_parent_takes_over_its_children():
    outer, again, third = event("a", 0, 10, id=1), event("a", 1, 9, id=2), event("a", 2, 8, id=3)
    inner, other = event("b", 3, 4, id=4), event("c", 5, 6, id=5)
    third.append_kernel("k", 0, 5)
    events = tree(outer, again, third, inner, other)
    assert [each.id for each in events] == [1, 4, 5]
    assert outer.cpu_children == [inner, other] and inner.cpu_parent is outer
    assert outer.kernels == [Kernel("k", 0, 5)]


def test_backward_events_have_the_stack_of_the_forward_one():
    events = tree(
        event("forward", 0, 5, sequence_nr=7, stack=["f", "main"]),
        event("backward", 10, 20, thread=2, scope=1, sequence_nr=7, fwd_thread=1, stack=["engine"]),
        event("inside", 11, 12, thread=2, stack=["engine"]),
        event("unknown", 30, 40, thread=2, scope=1, sequence_nr=99, fwd_thread=1, stack=["engine"]),
    )
    assert [each.stack for each in events] == [["f", "main"], ["f", "main"], ["f", "main"], []]


def test_a_backward_event_without_forward_thread_is_an_error():
    with pytest.raises(marey.Error, match="forward thread"):
        tree(event("backward", 0, 1, scope=1, sequence_nr=1))


def test_averages_need_a_tree_and_group_as_requested():
    events = EventList(
        [
            event("op", 0, 10, overload_name="x", input_shapes=[[1]], stack=["f", "main"], flops=5),
            event("op", 20, 40, overload_name="y", input_shapes=[[1]], stack=["g", "main"], flops=None),
            event("op", 50, 51, overload_name="x", input_shapes=[[2]], stack=["f", "main"], flops=7),
        ],
        with_flops=True,
    )
    with pytest.raises(marey.Error, match="_build_tree"):
        events.key_averages()
    events._build_tree()
    (only,) = events.key_averages()
    assert (only.key, only.count, only.cpu_time_total, only.flops) == ("op", 3, 31, 12)
    assert (only.input_shapes, only.overload_name, only.stack) == ("", "", [])
    by_shape = events.key_averages(group_by_input_shapes=True)
    assert [(avg.count, avg.input_shapes) for avg in by_shape] == [(2, [[1]]), (1, [[2]])]
    by_stack = events.key_averages(group_by_stack_n=1)
    assert [(avg.count, avg.stack) for avg in by_stack] == [(2, ["f"]), (1, ["g"])]
    by_overload = events.key_averages(group_by_overload_name=True)
    assert [(avg.count, avg.overload_name) for avg in by_overload] == [(2, "x"), (1, "y")]
    assert "Total FLOPs" in events.key_averages().table()


def test_the_first_event_of_a_group_provides_attributes_that_are_not_numbers():
    events = tree(event("a", 0, 10), event("b", 1, 2), event("a", 20, 21))
    a, b = events.key_averages()
    assert a.cpu_children == [events[1]] and a.cpu_parent is None
    assert b.cpu_parent is events[0]
    assert (a.min, a.max) == (1, 10)


def test_the_total_is_the_sum_of_all():
    events = tree(event("a", 0, 10, cpu_memory_usage=5), event("b", 1, 2))
    total = events.total_average()
    assert (total.key, total.count, total.cpu_time_total, total.self_cpu_time_total) == ("Total", 2, 11, 10)
    assert total.cpu_memory_usage == 5


def test_a_table_is_the_text_of_the_list_and_an_empty_one_is_empty():
    """upstream: test_profiler_aggregation_table"""
    events = tree(event("a", 0, 10))
    assert str(events) == events.table() and "Self CPU time total: 10.000us" in str(events)
    assert EventList().table() == "" and str(EventList()) == ""


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_a_time_unit_applies_to_all_times(unit):
    """upstream: test_override_time_units"""
    table = tree(event("a", 0, 5_000_000), event("b", 1, 2)).table(time_unit=unit)
    line = next(line for line in table.splitlines() if line.strip().startswith("b"))
    shown = {"s": "0.000s", "ms": "0.001ms", "us": "1.000us"}[unit]
    assert shown in line and f"5{'000000' if unit == 'us' else '000' if unit == 'ms' else ''}.000{unit}" in table


def test_tables_sort_by_columns_devices_and_attributes():
    events = tree(event("a", 0, 10, id=1), event("b", 20, 50, id=3), event("c", 60, 61, id=2))

    def order(**options):
        lines = events.table(**options).splitlines()[3:-2]
        return [line.split()[0] for line in lines]

    assert order() == ["a", "b", "c"]
    assert order(sort_by="cpu_time_total") == ["b", "a", "c"]
    assert order(sort_by="cpu_time_total", ascending=True) == ["c", "a", "b"]
    assert order(sort_by="cuda_time_total") == order(sort_by="self_hpu_time_total") == ["a", "b", "c"]
    assert order(sort_by="id") == ["b", "c", "a"]
    assert order(sort_by="id", row_limit=1) == ["b"]
    assert order(row_limit=2) == ["a", "b"]
    with pytest.raises(AttributeError):
        events.table(sort_by="no_such_thing")
    with pytest.raises(AttributeError):
        events.key_averages().table(sort_by="no_such_thing")


def test_columns_can_be_chosen():
    table = tree(event("a", 0, 10)).key_averages().table(columns=["name", "count", "max"])
    assert table.splitlines()[1].split() == ["Name", "#", "of", "Calls", "Max"]
    with pytest.raises(ValueError, match="nothing_like_it"):
        tree(event("a", 0, 10)).table(columns=["nothing_like_it"])


def test_percentiles_are_computed_over_single_events():
    events = tree(*[event("a", i * 100, i * 100 + i, id=i) for i in range(1, 101)])
    (avg,) = events.key_averages(percentiles=True)
    assert (avg.p50, avg.p90, avg.p99) == (50, 90, 99)


def test_device_time_without_a_device_is_an_error():
    events = EventList([event("a", 0, 1), event("k", 0, 1, device_type=DeviceType.CUDA, use_device="cuda")])
    with pytest.raises(marey.Error, match="use_device"):
        events.table()


def test_any_device_name_appears_in_titles():
    events = EventList([event("k", 0, 5, device_type=DeviceType.PrivateUse1, use_device="openreg")])
    assert "Self OPENREG" in events.table() and "Self OPENREG time total: 5.000us" in events.table()


def test_the_time_of_a_legacy_event_counts_as_device_time():
    made = event("a", 0, 5, use_device="cuda", is_legacy=True)
    made.append_kernel("a", 0, 3)
    events = tree(made, use_device="cuda")
    assert "Self CUDA time total: 3.000us" in events.table()
    assert "Self CUDA time total: 3.000us" in events.key_averages().table()


def test_events_with_the_same_name_on_other_nodes_devices_or_kinds_are_separate():
    events = tree(
        event("a", 0, 1, use_device="cuda"),
        event("a", 2, 3, node_id=5, use_device="cuda"),
        event("a", 4, 5, is_user_annotation=True, use_device="cuda"),
        event("a", 6, 7, device_type=DeviceType.CUDA, use_device="cuda"),
        event("a", 8, 9, is_legacy=True, use_device="cuda"),
        event("a", 10, 11, use_device="cuda"),
    )
    assert [avg.count for avg in events.key_averages()] == [2, 1, 1, 1, 1]


def test_a_list_made_by_hand_exports_a_trace(tmp_path):
    """upstream: test_event_list"""
    outer = event('quo"ted\\ \n', 5, 15, thread=3, use_device="cuda")
    outer.append_kernel("k", 0, 4)
    events = tree(outer, event("inner", 6, 7, thread=3), event("w", 0, 20, is_async=True), use_device="cuda")
    path = tmp_path / "trace.json"
    events.export_chrome_trace(path)
    written = [entry for entry in json.loads(path.read_text())["traceEvents"] if entry["ph"] == "X"]
    by_name = {entry["name"]: entry for entry in written}
    assert (by_name[outer.name]["ts"], by_name[outer.name]["dur"]) == (5, 10)
    assert by_name["inner"]["tid"] == by_name[outer.name]["tid"] == 3
    assert by_name["k"]["cat"] == "kernel" and by_name["k"]["dur"] == 4
    ends = [entry["ph"] for entry in json.loads(path.read_text())["traceEvents"] if entry["ph"] in "sf"]
    assert sorted(ends) == ["f", "s"]


def test_a_list_of_events_without_trace_names_still_exports(tmp_path):
    path = tmp_path / "trace.json"
    EventList([event("a", 0, 1, trace_name=None)]).export_chrome_trace(str(path))
    assert "a" in [entry["name"] for entry in json.loads(path.read_text())["traceEvents"]]
    EventList().export_chrome_trace(path)
    json.loads(path.read_text())


def test_stacks_are_written_outermost_first(tmp_path):
    """upstream: test_export_stacks"""
    one = event("a", 0, 10, stack=["inner fn", "main;x"], use_device="cuda")
    one.append_kernel("k", 0, 99)
    events = tree(one, event("b", 20, 25, stack=["inner fn", "main;x"]), event("c", 30, 31), use_device="cuda")
    path = tmp_path / "stacks.txt"
    events.export_stacks(str(path), "self_cpu_time_total")
    assert path.read_text() == "main_x;inner_fn 15\n"
    events.export_stacks(path, "self_cuda_time_total")
    assert path.read_text() == "main_x;inner_fn 99\n"
    with pytest.raises(ValueError, match="metric should be one of"):
        events.export_stacks(path, "no_metric")
    wanted = {"self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"}
    assert wanted <= set(events.supported_export_stacks_metrics())


def test_a_tree_is_built_once_and_a_second_parent_is_an_error():
    events = tree(event("a", 0, 10), event("b", 1, 2))
    events._build_tree()
    assert len(events[0].cpu_children) == 1
    child, stranger = event("child", 1, 2), event("stranger", 50, 60)
    child.set_cpu_parent(stranger)
    with pytest.raises(marey.Error, match="parent"):
        tree(event("a", 0, 10), child)


def test_lists_slice_copy_and_pickle_as_lists_do():
    events = tree(event("a", 0, 10), event("b", 1, 2), use_device="cuda")
    assert isinstance(events, list) and type(events[:1]) is list
    again = pickle.loads(pickle.dumps(events))
    assert [each.name for each in again] == ["a", "b"] and again.table() == events.table()
    assert again[1].cpu_parent is again[0]
    assert copy.copy(events).table() == events.table()
    with pytest.raises(TypeError):
        EventList([], no_such_option=1)


def test_an_event_keeps_its_self_time_when_its_children_are_not_in_the_list():
    outer, inner = marey.FunctionEvent(1, "outer", 1, 0, 100), marey.FunctionEvent(2, "inner", 1, 10, 40)
    marey.EventList([outer, inner])._build_tree()
    alone = marey.EventList([outer])
    alone._build_tree()
    assert alone.key_averages()[0].self_cpu_time_total == alone.self_cpu_time_total == 70
    assert alone._trace().key_averages()[0].self_cpu_time_total == 100  # a trace knows only its own ranges


def test_averages_change_as_their_elements_do():
    averages = tree(event("a", 0, 10), event("b", 20, 21)).key_averages()
    before = averages.table()
    averages[0].add(event("a", 50, 60))
    assert averages.table() != before and "20.000us" in averages.table()
    assert [avg.key for avg in averages] == ["a", "b"]
    averages.sort(key=lambda avg: avg.cpu_time_total)
    assert [avg.key for avg in averages] == ["b", "a"]
    assert pickle.loads(pickle.dumps(averages)).table() == averages.table()


def test_events_have_percentages_after_a_table_was_made_and_averages_at_once():
    events = tree(event("a", 0, 10), event("b", 1, 4), event("w", 0, 99, is_async=True))
    events.table()
    assert [each.self_cpu_percent for each in events] == ["70.00%", "30.00%", "0.00%"]
    assert [each.total_cpu_percent for each in events] == ["100.00%", "30.00%", 0]
    assert [avg.self_cpu_percent for avg in events.key_averages()] == ["70.00%", "30.00%", "0.00%"]


def test_selected_averages_print_separately():
    averages = tree(event("a", 0, 10), event("b", 20, 21)).key_averages()
    table = EventList([avg for avg in averages if avg.key == "b"]).table()
    assert "Self CPU time total: 1.000us" in table


def test_old_names_warn_and_work():
    made = event("a", 0, 10, use_device="cuda")
    made.append_kernel("k", 0, 4)
    for old, value in (
        ("cuda_time", 4),
        ("cuda_time_total", 4),
        ("self_cuda_time_total", 4),
        ("self_cuda_memory_usage", 0),
        ("metadata_json", None),
    ):
        with pytest.warns(FutureWarning, match=old):
            assert getattr(made, old) == value
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert made.cuda_time == 4


def test_times_as_text():
    class Timed(FormattedTimesMixin):
        count = 0
        cpu_time_total = device_time_total = self_cpu_time_total = self_device_time_total = 1234.5

    assert Timed().cpu_time == Timed().device_time == 0.0
    assert Timed().cpu_time_total_str == "1.234ms"
    Timed.cpu_time_total = 2e6
    assert Timed().cpu_time_total_str == "2.000s"


def test_string_tables_demangle_symbols_and_keep_single_letters():
    names = StringTable()
    assert names["_ZN3foo3barEv"] == "foo::bar()"
    assert (names["t"], names["plain name"]) == ("t", "plain name")
    assert set(names) == {"_ZN3foo3barEv", "t", "plain name"}


def test_memory_records_are_found_by_closed_intervals():
    class Record:
        def __init__(self, start):
            self.start = start

        def start_ns(self):
            return self.start

    records = [[Record(30)], [Record(10)], [Record(20)], [Record(20)]]
    found = MemRecordsAcc(records)
    assert [record[0].start for record in found.in_interval(10, 20)] == [10, 20, 20]
    assert list(found.in_interval(21, 29)) == []
    assert list(MemRecordsAcc([]).in_interval(0, 100)) == []


def test_a_duplicate_key_is_an_error():
    unique = EnforceUnique()
    unique.see("a", 1)
    unique.see("a", 2)
    with pytest.raises(RuntimeError, match="duplicate key"):
        unique.see("a", 1)


def test_metadata_of_device_work_has_fields():
    """K9"""
    metadata = event_metadata({"grid": "[1, 2, 3]", "registers per thread": 32, "stream": "7", "other": 1})
    assert (metadata.grid, metadata.registers_per_thread, metadata.stream) == ([1, 2, 3], 32, 7)
    assert metadata.block is None
    assert event_metadata({"other": 1}) is None
    assert event("k", 0, 1, extra_meta={"bytes": "8"}).event_metadata.bytes == 8
