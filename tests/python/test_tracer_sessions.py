"""Overlapping sessions with different kinds of calls: a call that runs while the hook changes is one range."""

import sys
import threading

import call_trees
import pytest
from call_trees import count, leaf, names, problems

import marey

CHANGES = pytest.mark.parametrize(
    ("outer", "inner"),
    [(False, True), (True, False), (False, "all"), ("all", True)],
    ids=["more", "less", "all", "not_all"],
)


def short(name):
    """The bare name of a Python function."""
    return name.rpartition(": ")[2].rpartition(".")[2]


def parents(prof, function):
    """The callers of a function that are Python functions, by their names."""
    rows = call_trees.rows(prof)
    found = []
    for row in rows:
        if not row["name"].endswith(f": {function}"):
            continue
        parent = row["parent"]
        while parent is not None and "): " not in rows[parent]["name"]:
            parent = rows[parent]["parent"]
        found.append(None if parent is None else short(rows[parent]["name"]))
    return found


@CHANGES
def test_calls_running_while_the_hook_changes_stay_open(outer, inner):
    def nest():
        leaf()
        with marey.profile(with_stack=True, c_calls=inner) as prof:
            leaf()
            len([])
        leaf()
        return prof

    def around():
        return nest()

    with marey.profile(with_stack=True, c_calls=outer) as prof:
        other = around()
        leaf()
    here = sys._getframe().f_code.co_name
    assert parents(prof, "leaf") == ["nest", "nest", "nest", here]
    assert parents(other, "leaf") == ["nest"]
    for each in (prof, other):
        rows = [row for row in call_trees.rows(each) if short(row["name"]) in (here, "around", "nest")]
        assert [short(row["name"]) for row in rows] == [here, "around", "nest"]
        assert problems(each) == []
    assert ("builtins.len" in names(prof)) == bool(outer)
    assert ("builtins.len" in names(other)) == bool(inner)


@CHANGES
def test_overlapping_sessions_have_every_call_once(outer, inner):
    first = marey.profile(with_stack=True, c_calls=outer)
    second = marey.profile(with_stack=True, c_calls=inner)
    first.start()
    leaf()
    second.start()
    leaf()
    first.stop()
    leaf()
    second.stop()
    here = sys._getframe().f_code.co_name
    for each in (first, second):
        assert parents(each, "leaf") == [here, here]
        assert count(each, here) == 1
        assert problems(each) == []


@CHANGES
def test_the_hook_may_change_within_c_calls_and_generators(outer, inner):
    def change(_):
        with marey.profile(with_stack=True, c_calls=inner):
            leaf()

    def generator():
        with marey.profile(with_stack=True, c_calls=inner):
            yield 1
            leaf()
        yield 2

    with marey.profile(with_stack=True, c_calls=outer) as prof:
        list(map(change, range(3)))
        assert sum(generator()) == 3
        leaf()
    here = sys._getframe().f_code.co_name
    assert parents(prof, "leaf") == ["change"] * 3 + ["generator", here]
    calls = [call for call in prof.trace.suspended_calls() if call.name.endswith("generator")]
    assert [call.parts for call in calls] == [3]
    assert problems(prof) == []


@CHANGES
def test_the_hook_changes_for_every_thread(outer, inner):
    """One is in a call that ran at the start, one in a call that began since, one has had no event."""
    turns = [threading.Event() for _ in range(3)]
    ready = threading.Barrier(3)

    def wait(turn):
        turn.wait()

    def before():
        ready.wait()
        turns[0].wait()
        leaf()
        wait(turns[1])
        leaf()

    def silent():
        ready.wait()
        turns[1].wait()
        leaf()

    workers = [threading.Thread(target=work) for work in (before, silent)]
    for worker in workers:
        worker.start()
    ready.wait()
    with marey.profile(with_stack=True, c_calls=outer) as prof:
        turns[0].set()
        with marey.profile(with_stack=True, c_calls=inner):
            turns[1].set()
            started = threading.Thread(target=leaf)
            started.start()
            for worker in (*workers, started):
                worker.join()
    assert sorted(parents(prof, "leaf")) == sorted(["before", "before", "silent", "run"])
    for name in ("before", "silent"):
        assert [short(each) for each in names(prof)].count(name) == 1
    assert problems(prof) == []


@pytest.mark.parametrize("c_calls", [False, True])
@pytest.mark.parametrize("first_ends", ["stopped", "spent"])
def test_a_session_begun_within_calls_of_an_earlier_one_has_each_running_call_once(c_calls, first_ends):
    """The earlier one has been stopped, or has spent its budget and continues without calls."""
    budget = 5 if first_ends == "spent" else 0
    first = marey.profile(with_stack=True, c_calls=c_calls, call_budget=budget)
    second = marey.Session()
    made = []

    def inner():
        for _ in range(10):
            leaf()
        if first_ends == "stopped":
            first.stop()
        second.start(with_stack=True, c_calls=c_calls)
        leaf()

    def outer():
        inner()
        leaf()

    def around():
        first.start()
        outer()
        leaf()
        made.append(second.stop())
        if first_ends == "spent":
            first.stop()

    around()
    (trace,) = made
    rows = [event for event in trace.events() if event.name.endswith((": leaf", "inner", "outer", "around"))]
    parent = {event.id: short(event.cpu_parent.name) for event in rows if event.cpu_parent is not None}
    calls = [(short(event.name), parent[event.id]) for event in sorted(rows, key=lambda event: event.time_range.start)]
    (caller,) = {caller for name, caller in calls if name == "around"}
    assert calls == [
        ("around", caller),
        ("outer", "around"),
        ("inner", "outer"),
        ("leaf", "inner"),
        ("leaf", "outer"),
        ("leaf", "around"),
    ]
    # Ends of the earlier session's calls, seen while the later one recorded, are not mistakes of the program.
    assert "resyncs" not in {code for code, *_ in trace.problems}


@pytest.mark.parametrize("c_calls", [False, True])
def test_a_thread_that_waits_through_the_start_of_a_second_session_has_each_call_once(c_calls):
    is_there, may_go = threading.Event(), threading.Event()

    def waiting():
        is_there.set()
        may_go.wait()

    with marey.profile(with_stack=True, c_calls=c_calls):
        thread = threading.Thread(target=waiting)
        thread.start()
        is_there.wait()
    second = marey.Session()
    second.start(with_stack=True, c_calls=c_calls)
    trace = second.stop()
    may_go.set()
    thread.join()
    (call,) = [event for event in trace.events() if event.name.endswith("waiting")]
    assert short(call.cpu_parent.name) == "run"
