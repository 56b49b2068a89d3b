"""Events, averages and tables of recordings."""

import decimal
import gc
import json
import pickle
import sys
import threading
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import marey
from marey import EventList, FunctionEvent, FunctionEventAvg
from marey.profiler import DeviceType
from marey.results.trace_events import events_of  # private: lists before a program gets them


def recorded(program, **options):
    session = marey.Session()
    session.start(**options)
    program()
    return session.stop()


def nested():
    with marey.record_function("outer"):
        with marey.record_function("inner"):
            pass
        with marey.record_function("inner"):
            pass
    with marey.record_function("ProfilerStep#7"):
        pass


def made_by_hand(*events, **options):
    made = EventList(events, **options)
    made._build_tree()
    return made


def on_a_device():
    """A trace in which a call inside another launches two kernels."""
    outer = FunctionEvent(1, "outer", 1, 0, 100, use_device="cuda", cpu_memory_usage=64)
    inner = FunctionEvent(2, "inner", 1, 10, 20, use_device="cuda", cpu_memory_usage=64, input_shapes=[[2, 3], []])
    kernel = FunctionEvent(3, "k", 7, 15, 45, use_device="cuda", device_type=DeviceType.CUDA, device_index=1)
    inner.append_kernel("k", 1, 30)
    inner.append_kernel("unseen", 0, 5)
    return made_by_hand(outer, inner, kernel, use_device="cuda", profile_memory=True)._trace()


def test_events_come_in_order_with_their_fields():
    events = events_of(recorded(nested))
    assert [event.name for event in events] == ["outer", "inner", "inner", "ProfilerStep*"]
    assert [event.trace_name for event in events][-1] == "ProfilerStep#7"
    outer, first, second, _ = events
    assert first.cpu_parent is outer and outer.cpu_parent is None
    assert outer.cpu_children == [first, second]
    assert isinstance(outer, FunctionEvent) and type(outer).__name__ == "FunctionEvent"
    assert outer.key == "outer" and outer.count == 1 and outer.is_user_annotation and outer.scope == 7
    assert outer.time_range.start <= first.time_range.start <= first.time_range.end <= outer.time_range.end
    assert outer.time_range.elapsed_us() == pytest.approx(outer.cpu_time_total)
    inside = first.cpu_time_total + second.cpu_time_total
    assert outer.self_cpu_time_total == pytest.approx(outer.cpu_time_total - inside)
    assert (outer.is_async, outer.is_remote, outer.sequence_nr, outer.fwd_thread) == (False, False, -1, 0)
    assert (outer.node_id, outer.overload_name, outer.device_type) == (-1, "", DeviceType.CPU)
    assert (outer.flops, outer.kernels, outer.stack, outer.input_shapes, outer.kwinputs) == (0, [], [], [], {})
    assert outer.activity_type == "user_annotation" and outer.is_legacy is False
    assert "<FunctionEvent id=1 name=outer" in repr(outer)
    with pytest.raises(AttributeError, match="nothing"):
        outer.nothing


def test_inputs_and_keywords_are_on_the_event():
    def program():
        with marey.record_function_fast("op", [1, 2.5, "x", [3, 4], None], {"k": 3, "s": "t"}):
            pass

    (event,) = events_of(recorded(program, record_shapes=True, concrete_inputs=True))
    assert event.concrete_inputs == [1, 2.5, "x", [3, 4], None]
    assert event.input_shapes == [[]] * 5 and event.structured_input_shapes == [[]] * 5
    assert event.input_dtypes == ["Scalar", "Scalar", "", "ScalarList", ""]
    assert event.kwinputs == {"k": 3, "s": "t"}
    assert event.external_id == event.id and not event.is_user_annotation


def test_the_same_row_is_the_same_object_while_it_is_held():
    events = events_of(recorded(nested))
    outer = events[0]
    assert events[0] is outer and next(iter(events)) is outer and events[1].cpu_parent is outer
    inner = events[1]
    del events, outer
    gc.collect()
    assert inner.cpu_parent is inner.cpu_parent.cpu_children[0].cpu_parent and inner.cpu_parent.name == "outer"


def test_a_list_of_events_is_a_list():
    events = events_of(recorded(nested))
    assert isinstance(events, list) and isinstance(events, EventList)
    assert len(events) == 4 and bool(events) and events[-1].name == "ProfilerStep*"
    assert [event.name for event in events[1:3]] == ["inner", "inner"] and type(events[1:3]) is list
    assert [event.id for event in reversed(events)] == [4, 3, 2, 1]
    assert events[1] in events and events.index(events[2]) == 2 and events.count(events[0]) == 1
    assert sorted(events, key=lambda event: -event.id)[0].id == 4
    assert len(events + [1]) == 5 and len([1] + events) == 5 and list(events) == events
    assert [*events][0] is events[0]
    with pytest.raises(IndexError):
        events[4]
    with pytest.raises(TypeError):
        events["text"]
    nothing = events_of(recorded(lambda: None))
    assert nothing == [] and not nothing and nothing.table() == ""


def test_a_list_that_is_changed_has_its_own_averages():
    events = events_of(recorded(nested))
    first = events[0]
    events.append(FunctionEvent(9, "late", 1, 0, 5000))
    assert len(events) == 5 and events[0] is first
    assert first.name == "outer" and first.cpu_children[0].name == "inner"
    assert "late" in events.table() and "late" in [avg.key for avg in events.key_averages()]
    for change in (
        lambda some: some.sort(key=lambda event: -event.id),
        lambda some: some.__delitem__(0),
        lambda some: some.__setitem__(slice(0, 2), []),
        lambda some: some.pop(),
        lambda some: some.clear(),
    ):
        some = events_of(recorded(nested))
        change(some)
        assert [(avg.key, avg.count) for avg in some.key_averages()] == [
            (avg.key, avg.count) for avg in made_by_hand(*some).key_averages()
        ]


def test_values_set_on_an_event_are_kept():
    events = events_of(recorded(nested))
    events[1].name = "renamed"
    gc.collect()
    assert events[1].name == "renamed" and events[1].thread == 1
    assert "renamed" in events.table()
    assert [avg.key for avg in events.key_averages()] == ["outer", "renamed", "inner", "ProfilerStep*"]
    with pytest.raises(AttributeError):
        events[0].cpu_time_total = 3


def test_changed_events_and_their_lists_are_freed():
    events = events_of(recorded(nested))
    events[0].note = events
    held = weakref.ref(events[0])
    assert held() is not None
    del events
    gc.collect()
    assert held() is None


def test_averages_are_those_of_the_events():
    trace = recorded(nested)
    averages = trace.key_averages()
    assert [(avg.key, avg.count) for avg in averages] == [("outer", 1), ("inner", 2), ("ProfilerStep*", 1)]
    assert all(isinstance(avg, FunctionEventAvg) for avg in averages)
    events = events_of(trace)
    assert averages[1].cpu_time_total == pytest.approx(events[1].cpu_time_total + events[2].cpu_time_total)
    assert averages[0].cpu_children == [events[1], events[2]] or [e.id for e in averages[0].cpu_children] == [2, 3]
    assert averages[1].cpu_parent.name == "outer" and averages[0].cpu_parent is None
    assert averages[1].min <= averages[1].cpu_time <= averages[1].max
    assert events.self_cpu_time_total == pytest.approx(sum(avg.self_cpu_time_total for avg in averages))
    total = events.total_average()
    assert (total.key, total.count) == ("Total", 4)
    assert total.self_cpu_time_total == pytest.approx(events.self_cpu_time_total)
    assert trace.key_averages(percentiles=True)[1].p99 == averages[1].max
    with pytest.raises(marey.Error):
        averages.key_averages()


def test_the_table_of_a_trace_equals_that_of_its_events_made_by_hand():
    trace = recorded(nested)
    for view in (events_of(trace), trace.key_averages()):
        assert str(view) == view.table() == EventList(list(view)).table()
        assert view.table(sort_by="cpu_time_total", row_limit=2) == EventList(list(view)).table(
            sort_by="cpu_time_total", row_limit=2
        )


def test_a_table_of_selected_events_changes_nothing():
    events = events_of(recorded(nested))
    picked = EventList(events[1:3])
    assert "inner" in picked.table() and picked[0].self_cpu_percent.endswith("%")
    assert events._is_unchanged()


def test_averages_can_be_separated_by_thread():
    def program():
        thread = threading.Thread(target=nested)
        thread.start()
        thread.join()
        nested()

    trace = recorded(program)
    events = events_of(trace)
    assert len({event.thread for event in events}) == 2
    assert len({event.device_resource_id for event in events}) == 2
    assert [avg.count for avg in trace.key_averages() if avg.key == "inner"] == [4]
    assert [avg.count for avg in trace.key_averages(group_by_thread=True) if avg.key == "inner"] == [2, 2]


def test_device_work_memory_and_links_are_on_the_events():
    events = events_of(on_a_device())
    by_name = {event.name: event for event in events}
    outer, inner, kernel = by_name["outer"], by_name["inner"], by_name["k"]
    assert outer.use_device == "cuda"
    assert [tuple(each) for each in inner.kernels] == [("unseen", 0, 5.0), ("k", 1, 30.0)]
    assert (outer.device_time_total, outer.self_device_time_total) == (35, 0)
    assert (inner.device_time_total, inner.self_device_time_total) == (35, 35)
    assert (kernel.cpu_time_total, kernel.device_time_total, kernel.device_index) == (0, 30, 1)
    assert kernel.device_type == DeviceType.CUDA and kernel.cpu_parent is None
    assert (inner.cpu_memory_usage, inner.self_cpu_memory_usage) == (64, 64)
    assert (outer.cpu_memory_usage, outer.self_cpu_memory_usage) == (64, 0)
    assert inner.input_shapes == [[2, 3], []]
    assert inner.flow_start is True and inner.flow_type == 2
    assert kernel.flow_start is False and kernel.flow_type == 2
    assert kernel.activity_type == "kernel"
    table = events.key_averages().table()
    assert "Self CUDA time total: 35.000us" in table and "CPU Mem" in table


def test_event_numbers_match_the_exported_trace(tmp_path):
    """upstream: test_profiler_external_id_parity, test_profiler_activity_type_parity,
    test_profiler_timestamp_consistency"""

    def program():
        with marey.record_function_fast("op"):
            nested()

    for trace in (recorded(program), on_a_device()):
        path = tmp_path / "trace.json"
        events = events_of(trace)
        events.export_chrome_trace(path)
        entries = json.loads(path.read_text(), parse_float=decimal.Decimal)["traceEvents"]
        start = next(entry["ts"] for entry in entries if entry["name"].startswith("Iteration Start"))
        written = [
            (
                entry["name"],
                entry["cat"],
                float(entry["ts"] - start),
                float(entry["dur"]),
                entry.get("args", {}).get("External id", 0),
            )
            for entry in entries
            if entry["ph"] == "X" and entry["cat"] != "Trace"
        ]
        told = [
            (
                event.trace_name,
                event.activity_type,
                event.time_range.start,
                round(event.time_range.elapsed_us(), 3),
                event.external_id,
            )
            for event in events
        ]
        assert sorted(written) == sorted(told)


def test_allocations_outside_of_ranges_are_separate_events():
    # The memory of a kernel's event is reported on a thread that does nothing else.
    kernel = FunctionEvent(1, "k", 5, 0, 10, use_device="cuda", device_type=DeviceType.CUDA)
    host = FunctionEvent(2, "call", 1, 0, 10, use_device="cuda", cpu_memory_usage=5)
    kernel.__class__ = type("Owner", (FunctionEvent,), {"self_cpu_memory_usage": 7})
    events = events_of(EventList([kernel, host], use_device="cuda")._trace())
    (loose,) = [event for event in events if event.name == "[memory]"]
    assert (loose.cpu_memory_usage, loose.self_cpu_memory_usage, loose.trace_name) == (7, 7, None)
    assert loose.cpu_time_total == 0 and loose.cpu_parent is None and loose.id == 3
    assert loose.input_shapes == [] and loose.stack == [] and loose.device_type == DeviceType.CPU
    averages = {avg.key: avg for avg in events.key_averages()}
    assert averages["[memory]"].cpu_memory_usage == 7 and averages["[memory]"].cpu_parent is None


def test_events_pickle_as_plain_ones():
    events = events_of(recorded(nested))
    again = pickle.loads(pickle.dumps(events))
    assert type(again) is EventList and type(again[0]) is FunctionEvent
    assert again.table() == EventList(list(events)).table()
    assert again[1].cpu_parent is again[0]
    averages = pickle.loads(pickle.dumps(recorded(nested).key_averages()))
    assert [avg.key for avg in averages] == ["outer", "inner", "ProfilerStep*"]


def test_stacks_of_a_trace_are_exported(tmp_path):
    trace = made_by_hand(FunctionEvent(1, "a", 1, 0, 10, stack=["f", "main"]))._trace()
    path = tmp_path / "stacks"
    events_of(trace).export_stacks(path, "self_cpu_time_total")
    assert path.read_text() == "main;f 10\n"
    events_of(trace).export_stacks(path, "self_cpu_time_total", append_name=True)
    assert path.read_text() == "main;f;a 10\n"
    with pytest.raises(ValueError):
        events_of(trace).export_stacks(path, "nothing")
    assert trace.key_averages(group_by_stack_n=1)[0].stack == ["f"]


def test_an_average_that_was_changed_shows_in_the_table():
    averages = recorded(nested).key_averages()
    averages[0].key = "other name"
    assert "other name" in averages.table()


def test_averages_are_computed_without_creating_events():
    trace = recorded(nested)
    gc.collect()
    averages = trace.key_averages()
    averages.table()
    assert not [each for each in gc.get_objects() if isinstance(each, FunctionEvent)]
    assert averages[0].cpu_children[0].name == "inner"


def test_csv_and_markdown_have_the_rows():
    averages = recorded(nested).key_averages()
    assert len(averages.to_csv().splitlines()) == 4
    assert averages.to_markdown(columns=["name", "count"]).count("\n") >= 4
    assert "<pre>" in averages._repr_html_()


events_strategy = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.integers(0, 60),
        st.integers(0, 40),
        st.integers(1, 2),
        st.booleans(),
        st.integers(0, 3),
    ),
    max_size=25,
)


def plain_tree(events):
    """Nesting by its definition."""
    parents = {}
    for thread in {event.thread for event in events}:
        open_events = []
        own = [event for event in events if event.thread == thread and not event.is_async]
        for event in sorted(own, key=lambda each: (each.time_range.start, -each.time_range.end)):
            start, end = event.time_range.start, event.time_range.end
            while open_events and (start >= open_events[-1].time_range.end or end > open_events[-1].time_range.end):
                open_events.pop()
            parents[event.id] = open_events[-1].id if open_events else None
            open_events.append(event)
    return parents


@settings(max_examples=60, deadline=None)
@given(events_strategy)
def test_events_made_by_hand_nest_by_time(described):
    events = EventList(
        FunctionEvent(i, name, thread, start, start + length, is_async=is_async and kernels == 3)
        for i, (name, start, length, thread, is_async, kernels) in enumerate(described)
    )
    events._populate_cpu_children()
    found = {event.id: event.cpu_parent and event.cpu_parent.id for event in events if not event.is_async}
    wanted = plain_tree(events)
    assert {id: parent if parent is None else parent for id, parent in found.items()} == wanted
    for event in events:
        assert all(child.cpu_parent is event for child in event.cpu_children)


@settings(max_examples=40, deadline=None)
@given(events_strategy)
def test_a_trace_of_events_made_by_hand_has_their_averages(described):
    events = EventList(
        [
            FunctionEvent(i, name, thread, start, start + length + 1, is_async=is_async and kernels == 3)
            for i, (name, start, length, thread, is_async, kernels) in enumerate(described)
        ]
    )
    trace = events._trace()
    events._build_tree()
    by_hand = {avg.key: (avg.count, avg.cpu_time_total) for avg in events.key_averages()}
    of_trace = {avg.key: (avg.count, avg.cpu_time_total) for avg in trace.key_averages()}
    assert by_hand == of_trace


def test_event_fields_work_only_on_events():
    from marey._marey import EventRow  # private: a base class that cannot be made

    with pytest.raises(TypeError, match="to a 'int' object"):
        EventRow.__dict__["name"].__get__(5, int)


def test_a_table_of_a_profiler_takes_ten_frames_and_two_classes_of_lists():
    frames, lists = [], set()

    def count(frame, event, arg):
        if event == "call" and frame.f_globals["__name__"].startswith("marey."):
            frames.append(frame.f_code.co_qualname)
            of = frame.f_locals.get("self")
            if isinstance(of, list):
                lists.add(frame.f_code.co_qualname.partition(".")[0])

    with marey.profile() as prof:
        nested()
    assert "outer" in prof.key_averages().table()  # imports modules
    sys.setprofile(count)
    table = prof.key_averages().table()
    sys.setprofile(None)
    assert "outer" in table and len(frames) <= 10 and len(lists) <= 2, (frames, lists)


def test_a_list_made_of_averages_keeps_nothing_of_the_trace():
    averages = recorded(nested).key_averages()
    averages.reverse()
    assert averages.table().index("ProfilerStep*") < averages.table().index("outer")
    assert type(pickle.loads(pickle.dumps(averages))) is EventList
    assert [avg.key for avg in pickle.loads(pickle.dumps(averages))] == [avg.key for avg in averages]
