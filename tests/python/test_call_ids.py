"""Ids of calls and their callers, the lines of callers, and upstream's tests of Python frames."""

import json
import math
import sys
import threading
import time

import call_trees
import pytest

import marey

MODES = pytest.mark.parametrize("c_calls", [False, True], ids=["python", "with_c"])
FUNCTIONS = ("python_function",)


def chrome_events(prof, tmp_path):
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    return json.loads(path.read_text())["traceEvents"]


def leaf():
    math.hypot(4, 6)


def middle():
    with marey.record_function("marked"):
        leaf()


@MODES
def test_calls_have_an_id_and_that_of_the_nearest_enclosing_call(tmp_path, c_calls):
    """P29: Python id and Python parent id, in exports and on events; a marked range in between is not a parent."""
    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        middle()
    calls = [event for event in chrome_events(prof, tmp_path) if event.get("cat") in FUNCTIONS]
    by_id = {event["args"]["Python id"]: event for event in calls}
    assert len(by_id) == len(calls) and min(by_id) >= 1
    (inner,) = [event for event in calls if event["name"].endswith("): leaf")]
    outer = by_id[inner["args"]["Python parent id"]]
    assert outer["name"].endswith("): middle")
    assert inner["args"]["Python thread"] == outer["args"]["Python thread"]
    if c_calls:
        (hypot,) = [event for event in calls if event["name"] == "math.hypot"]
        assert by_id[hypot["args"]["Python parent id"]] is inner
    for event in prof.events():
        if event.is_python_function:
            assert by_id[event.python_id]["name"] == event.name
            assert by_id[event.python_id]["args"].get("Python parent id", -1) == event.python_parent_id
    # Callers have smaller ids than their callees.
    assert all(event["args"].get("Python parent id", 0) < event["args"]["Python id"] for event in calls)


def test_threads_have_separate_numbers(tmp_path):
    with marey.profile(with_stack=True, c_calls=False) as prof:
        leaf()
        call_trees.in_thread(leaf)
    found = [event for event in chrome_events(prof, tmp_path) if event.get("name", "").endswith("): leaf")]
    assert len({event["args"]["Python thread"] for event in found}) == 2
    assert len({event["tid"] for event in found}) == 2


def test_python_functions_of_the_trace_are_in_events(tmp_path):
    """upstream: test_python_function_events_in_events"""
    with marey.profile(with_stack=True) as prof:
        middle()
        call_trees.in_thread(middle)
    exported = sorted(event["name"] for event in chrome_events(prof, tmp_path) if event.get("cat") in FUNCTIONS)
    events = sorted(event.name for event in prof.events() if event.is_python_function)
    assert exported == events and any(name.endswith("): leaf") for name in events)


@MODES
def test_the_enclosing_calls_of_a_range_are_its_stack(c_calls):
    """L9: innermost first."""
    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        middle()
    (event,) = [event for event in prof.events() if event.name == "marked"]
    line = middle.__code__.co_firstlineno
    assert event.stack[0] == f"test_call_ids.py({line}): middle"
    assert event.stack[1].endswith("): test_the_enclosing_calls_of_a_range_are_its_stack")


# ---- lines of callers


@MODES
def test_the_line_of_the_caller_comes_with_each_call(tmp_path, c_calls):
    """P30: the place of the call; the name has the definition's first line."""

    def program():
        leaf()
        (
            leaf(),
            leaf(),
        )

    first = program.__code__.co_firstlineno
    with marey.profile(with_stack=True, c_calls=c_calls, call_lines=True) as prof:
        program()
    lines = [row["keywords"].get("line") for row in call_trees.rows(prof) if row["name"].endswith("): leaf")]
    assert lines == [first + 1, first + 3, first + 4]
    exported = [event for event in chrome_events(prof, tmp_path) if event["name"].endswith("): leaf")]
    assert [event["args"]["line"] for event in exported] == lines
    (own,) = [row for row in call_trees.rows(prof) if row["name"].endswith(".program")]
    assert own["keywords"]["line"] == first + 9
    if c_calls:
        hypots = [row["keywords"]["line"] for row in call_trees.rows(prof) if row["name"] == "math.hypot"]
        assert hypots == [leaf.__code__.co_firstlineno + 1] * 3


@MODES
def test_caller_lines_are_recorded_for_generators_and_deep_calls(c_calls):
    def numbers():
        yield 1
        yield 2

    def program():
        for _ in numbers():
            pass
        down(400)

    def down(n):
        if n:
            down(n - 1)

    with marey.profile(with_stack=True, c_calls=c_calls, call_lines=True) as prof:
        program()
    rows = call_trees.rows(prof)
    base = program.__code__.co_firstlineno
    assert {row["keywords"]["line"] for row in rows if row["name"].endswith(".numbers")} == {base + 1}
    downs = [row["keywords"]["line"] for row in rows if row["name"].endswith(".down")]
    assert downs == [base + 3] + [down.__code__.co_firstlineno + 2] * 400
    assert not [problem for problem in prof.trace.problems if problem[0] == "dropped"]


@MODES
def test_calls_running_at_the_start_have_the_line_of_their_caller_too(c_calls):
    prof = marey.profile(with_stack=True, c_calls=c_calls, call_lines=True)

    def inner():
        prof.start()
        leaf()

    def outer():
        inner()

    waiting, go_on = threading.Event(), threading.Event()

    def held():
        waiting.set()
        go_on.wait()

    def on_thread():
        held()

    thread = threading.Thread(target=on_thread)
    thread.start()
    waiting.wait()
    outer()
    prof.stop()
    go_on.set()
    thread.join()
    lines = {row["name"].rpartition(".")[2]: row["keywords"].get("line") for row in call_trees.rows(prof)}
    assert lines["inner"] == outer.__code__.co_firstlineno + 1
    assert lines["held"] == on_thread.__code__.co_firstlineno + 1
    assert lines["outer"] in range(on_thread.__code__.co_firstlineno, on_thread.__code__.co_firstlineno + 10)


def test_lines_are_not_recorded_by_default():
    with marey.profile(with_stack=True) as prof:
        leaf()
    assert not any("line" in row["keywords"] for row in call_trees.rows(prof))


# ---- calls that run at the start, threads


@MODES
def test_running_and_later_threads_have_exact_calls_and_real_ids(c_calls):
    """P4, P21, P23, upstream: test_source_multithreaded"""
    go, ready = threading.Event(), threading.Barrier(4)
    ids = {}

    def deep(n):
        if n:
            deep(n - 1)
        else:
            ready.wait()
            go.wait()
            leaf()

    def early(name):
        ids[name] = threading.get_native_id()
        deep(200)

    def late():
        ids["late"] = threading.get_native_id()
        leaf()

    threads = [threading.Thread(target=early, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    ready.wait()
    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        go.set()
        for thread in threads:
            thread.join()
        call_trees.in_thread(late)
    rows = call_trees.rows(prof)
    for name in range(3):
        own = [row["name"] for row in rows if row["os_tid"] == ids[name]]
        assert sum(each.endswith(".deep") for each in own) == 201
        assert sum(each.endswith("): leaf") for each in own) == 1
        assert sum(each.endswith(".early") for each in own) == 1
    own = [row["name"] for row in rows if row["os_tid"] == ids["late"]]
    assert sum(each.endswith((".late", "): leaf")) for each in own) == 2
    assert all(row["os_tid"] > 0 for row in rows)


def test_steps_do_not_partially_overlap_python_frames(tmp_path):
    """P39, upstream: test_cpu_annotation_overlap"""
    with marey.profile(with_stack=True, schedule=marey.schedule(wait=0, warmup=1, active=20)) as prof:
        for _ in range(4):
            leaf()
            prof.step()
    events = [event for event in chrome_events(prof, tmp_path) if event.get("ph") == "X" and "tid" in event]
    steps = [event for event in events if event["name"].startswith("ProfilerStep#")]
    frames = [event for event in events if event.get("cat") in FUNCTIONS]
    assert len(steps) == 4 and frames
    for step in steps:
        begin, end = step["ts"], step["ts"] + step["dur"]
        for frame in frames:
            if frame["tid"] != step["tid"]:
                continue
            first, last = frame["ts"], frame["ts"] + frame["dur"]
            is_apart = last <= begin or end <= first
            is_nested = (begin <= first and last <= end) or (first <= begin and end <= last)
            assert is_apart or is_nested, (step["name"], frame["name"])


def test_a_c_function_lasts_as_long_as_the_python_functions_that_it_calls():
    """P27, upstream: test_method_with_c_function"""

    def slow(item):
        time.sleep(0.001)
        return item

    def program():
        return sorted([3, 1, 2], key=slow)

    with marey.profile(with_stack=True) as prof:
        program()
    rows = call_trees.rows(prof)
    (call,) = [row for row in rows if row["name"] == "builtins.sorted"]
    inner = [row for row in rows if row["name"].endswith(".slow")]
    assert len(inner) == 3 and all(rows[row["parent"]] is call for row in inner)
    assert call["duration_ns"] >= sum(row["duration_ns"] for row in inner)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with 3.12")
def test_the_tool_id_is_taken_while_recording_and_then_released():
    """P31, P32, upstream: test_monitoring_callback"""

    def tools():
        return [tool for tool in range(6) if sys.monitoring.get_tool(tool) == "marey"]

    assert tools() == []
    with marey.profile(with_stack=True):
        (tool,) = tools()
        assert sys.monitoring.get_events(tool) != 0
        assert sys.monitoring.get_tool(2) is None  # where cProfile and others look
    assert tools() == []
    sys.monitoring.use_tool_id(sys.monitoring.PROFILER_ID, "somebody")
    try:
        with marey.profile(with_stack=True) as prof:
            leaf()
        assert sys.monitoring.get_tool(sys.monitoring.PROFILER_ID) == "somebody"
    finally:
        sys.monitoring.free_tool_id(sys.monitoring.PROFILER_ID)
    assert any(event.name.endswith("): leaf") for event in prof.events())


@MODES
def test_a_thread_that_returns_from_c_in_a_later_session_is_harmless(c_calls):
    """P9, P25, upstream: test_unexpected_c_return_events"""
    go, done = threading.Event(), threading.Event()

    def waits():
        go.wait()
        leaf()
        done.set()

    thread = threading.Thread(target=waits)
    with marey.profile(with_stack=True, c_calls=c_calls) as first:
        thread.start()
        leaf()
    with marey.profile(with_stack=True, c_calls=c_calls) as second:
        go.set()
        done.wait()
        thread.join()
    for prof in (first, second):
        assert sum(event.name.endswith("): leaf") for event in prof.events()) == 1
        assert not prof.trace.problems
    (event,) = [event for event in second.events() if event.name.endswith("): leaf")]
    assert any(frame.endswith(".waits") for frame in event.stack)
