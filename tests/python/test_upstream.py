"""Checks of PyTorch's profiler tests that no other test here covers; each names its upstream test."""

import json
import os
import sys
import threading

import pytest

import marey


def work(name="work"):
    with marey.record_function(name):
        pass


def chrome(prof, tmp_path):
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(path)
    return json.loads(path.read_text())


def complete(document):
    """The ranges of a Chrome trace, without the span of the whole recording."""
    return [event for event in document["traceEvents"] if event["ph"] == "X" and event.get("cat") != "Trace"]


def test_exported_traces_are_json_an_empty_one_too(tmp_path):
    """upstream: test_profiler_tracing"""
    with marey.profile() as prof:
        work('quotes " and \\ and \n')
    assert [event["name"] for event in complete(chrome(prof, tmp_path))] == ['quotes " and \\ and \n']
    with marey.profile() as prof:
        pass
    assert complete(chrome(prof, tmp_path)) == []


def test_the_type_of_the_running_profiler_is_reported():
    """upstream: test_profiler_type"""
    from marey._enumerations import ActiveProfilerType  # private: the values of is_enabled()
    from marey.profiler import _profiler_type

    assert _profiler_type() is ActiveProfilerType.NONE
    with marey.profile():
        assert _profiler_type() is ActiveProfilerType.KINETO
    assert _profiler_type() is ActiveProfilerType.NONE


def test_ids_are_unique_within_each_session():
    """upstream: test_profiler_correlation_id"""
    for _ in range(5):
        with marey.profile() as prof:
            for _ in range(10):
                work()
        ids = [event.id for event in prof.events()]
        assert len(set(ids)) == 10
        assert all(0 <= number < 2**32 - 1 for number in ids)


def test_keyword_values_are_arguments_of_their_type(tmp_path):
    """upstream: test_profiler_op_event_kwargs, test_profiler_op_event_kwargs_list_of_strings"""
    values = {"text": "a", "number": 3, "ratio": 0.5, "flag": True, "texts": ["a", "b"], "odd": object()}
    with marey.profile(record_shapes=True) as prof:
        with pytest.warns(UserWarning, match="odd"):
            with marey.record_function_fast("op", [], values):
                pass
        with marey.record_function_fast("annotation", [], {"scope": "user_scope"}):
            pass
    op, annotation = complete(chrome(prof, tmp_path))
    assert op["cat"] == "cpu_op" and annotation["cat"] == "user_annotation"
    arguments = op["args"]
    assert (arguments["text"], arguments["number"], arguments["ratio"]) == ("a", 3, 0.5)
    assert arguments["flag"] is True
    assert arguments["texts"] == ["a", "b"]
    assert arguments["odd"] == "NULL"


def test_all_events_are_within_the_window_marked_by_the_last_rows(tmp_path):
    """upstream: test_basic_chrome_trace"""
    with marey.profile() as prof:
        work()
    events = chrome(prof, tmp_path)["traceEvents"]
    tail = [event["name"] for event in events[-4:]]
    assert any(name.startswith("PyTorch Profiler") for name in tail), tail
    assert any(name.startswith("Iteration Start") for name in tail), tail
    assert any(name.startswith("Record Window End") for name in tail), tail
    start = next(event["ts"] for event in events if event["name"].startswith("Iteration Start"))
    end = next(event["ts"] for event in events if event["name"].startswith("Record Window End"))
    for event in events:
        if event["ph"] == "X":
            assert start <= event["ts"] and event["ts"] + event["dur"] <= end + 0.001


def test_only_user_ranges_are_annotations():
    """upstream: test_user_annotation"""
    with marey.profile() as prof:
        with marey.record_function("by hand"):
            with marey.record_function_fast("operator"):
                pass
    assert [(event.name, event.is_user_annotation) for event in prof.events()] == [
        ("by hand", True),
        ("operator", False),
    ]
    assert {average.key: average.is_user_annotation for average in prof.key_averages()} == {
        "by hand": True,
        "operator": False,
    }


def test_events_are_created_only_when_accessed():
    """upstream: test_lazy_build_tree"""
    with marey.profile() as prof:
        work()
    assert prof._events is None
    prof.key_averages().table()
    assert prof._events is None
    assert prof.events() is prof.events()


def test_a_forked_child_records_its_own_process(tmp_path):
    """upstream: test_forked_process"""
    work("before")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with marey.profile() as prof:
                work("in the child")
            info = prof.trace.info()
            is_right = info["processes"][0]["pid"] == os.getpid() and [e.name for e in prof.events()] == [
                "in the child"
            ]
            status = 0 if is_right else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("seconds", [None, 0, 10_000])
def test_a_post_processing_timeout_loses_no_events(seconds):
    """upstream: test_public_api_post_processing_timeout_none, _large, _zero. Differs: nothing takes long enough."""
    with marey.profile(post_processing_timeout_s=seconds) as prof:
        for _ in range(100):
            work()
    assert len(prof.events()) == 100


def test_times_of_events_are_those_of_the_trace(tmp_path):
    """upstream: test_profiler_timestamp_consistency"""
    with marey.profile() as prof:
        with marey.record_function("outer"):
            work("inner")
    document = chrome(prof, tmp_path)
    base_ns = document["baseTimeNanoseconds"]
    start_ns = prof.kineto_results.trace_start_ns()
    rows = {event["name"]: event for event in complete(document)}
    for event in prof.events():
        row = rows[event.name]
        assert round(row["ts"] * 1000) + base_ns == start_ns + round(event.time_range.start * 1000)
        assert round(row["dur"] * 1000) == round(event.time_range.elapsed_us() * 1000)


def test_kinds_of_events_are_the_categories_of_the_trace(tmp_path):
    """upstream: test_profiler_activity_type_parity"""
    with marey.profile() as prof:
        work("by hand")
        with marey.record_function_fast("operator"):
            pass
    categories = {event["name"]: event["cat"] for event in complete(chrome(prof, tmp_path))}
    assert {event.name: event.activity_type for event in prof.events()} == categories


def test_memory_of_other_threads_belongs_to_their_ranges():
    """upstream: test_profile_memory_cuda"""

    def take(number):
        with marey.record_function(f"thread {number}"):
            marey.report_allocation(number, 100 * number, 0, 0)

    with marey.profile(profile_memory=True) as prof:
        threads = [threading.Thread(target=take, args=(number,)) for number in (1, 2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    used = {average.key: average.cpu_memory_usage for average in prof.key_averages()}
    assert [used[f"thread {number}"] for number in (1, 2, 3)] == [100, 200, 300]


def test_recording_keeps_no_reference_to_what_it_saw():
    """upstream: test_refcounts"""

    class Thing:
        pass

    things = [Thing(), "a name that is seen nowhere else" + str(os.getpid()), {"key": 1}]
    before = [sys.getrefcount(thing) for thing in things]
    with marey.profile(record_shapes=True, with_stack=True):
        for _ in range(100):
            with marey.record_function_fast("op", [things[0], things[1]], {"value": 3}):
                pass
    assert [sys.getrefcount(thing) for thing in things] == before


def test_ranges_of_tasks_are_recorded_once():
    """upstream: test_profiler_propagation, test_record_function_callbacks"""
    from concurrent.futures import ThreadPoolExecutor

    with marey.profile(threads="tasks") as prof, ThreadPoolExecutor(2) as pool:
        list(pool.map(work, ["task"] * 10))
    (average,) = prof.key_averages()
    assert (average.key, average.count) == ("task", 10)


def test_importing_alone_initialises_nothing(run_python):
    """upstream: test_kineto_profiler_with_environment_variable"""
    printed = run_python(
        "import os, threading, marey\n"
        "tasks = len(os.listdir('/proc/self/task'))\n"
        "print(marey.is_recording(), marey.profiler.is_enabled(), threading.active_count(), tasks)"
    )
    assert printed == "False False 1 1\n"
