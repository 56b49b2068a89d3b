"""Greenlets: each has its own calls, on the thread that they share. recording.md rule 27."""

import os
import sys

import call_trees
import pytest
from call_trees import count, leaf, run_program

import marey

greenlet = pytest.importorskip("greenlet")

# A switch copies the C stack away and back. With the frame hook our frames are on it, and AddressSanitizer takes the
# copy, which greenlet makes with memcpy, for an access to the red zones between their variables; the zones of the stack
# that resumes then belong to another. Neither is an error in greenlet or Marey.
has_plain_stack = pytest.mark.skipif(
    "MAREY_TEST_SANITIZER" in os.environ and sys.version_info < (3, 12),
    reason="the sanitizer's frames cannot be copied",
)
MODES = pytest.mark.parametrize(
    "c_calls", [pytest.param(False, marks=has_plain_stack), True, "all"], ids=["python", "with_c", "all_c"]
)


def parents(prof, function):
    """The names of the callers of a function, each time that it was called."""
    rows = call_trees.rows(prof)
    calls = [row for row in rows if row["name"].endswith(f": {function}")]
    return [rows[row["parent"]]["name"].rpartition(".")[2] for row in calls if row["parent"] is not None]


@MODES
def test_calls_appear_in_the_greenlet_that_makes_them(c_calls):
    def first():
        leaf()
        two.switch()
        leaf()
        two.switch()

    def second():
        one.switch()
        leaf()
        one.switch()

    one, two = greenlet.greenlet(first), greenlet.greenlet(second)
    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        one.switch()
        leaf()
    assert parents(prof, "leaf")[:3] == ["first", "first", "second"]
    rows = call_trees.rows(prof)
    assert not [row for row in rows if row["name"].endswith((".first", ".second", ": leaf")) and row["flags"]]


FILTERS = [
    {"include": ["test_tracer_greenlets.py", "call_trees"]},
    {"exclude": ["json"]},
    {"max_depth": 50},
    {"call_lines": True},
    {"fold_libraries": True},
    {"call_budget": 1000},
]


@MODES
@pytest.mark.parametrize("options", FILTERS, ids=lambda options: next(iter(options)))
def test_calls_appear_in_their_greenlet_with_a_filter_too(c_calls, options):
    def inner():
        two.switch()
        leaf()

    def first():
        inner()
        leaf()
        main.switch()

    def second():
        leaf()
        one.switch()

    main = greenlet.getcurrent()
    one, two = greenlet.greenlet(first), greenlet.greenlet(second)
    with marey.profile(with_stack=True, c_calls=c_calls, **options) as prof:
        one.switch()
        leaf()
    here = sys._getframe().f_code.co_name
    found = [name.rpartition(": ")[2] for name in parents(prof, "leaf")]
    assert sorted(found) == sorted(["second", "inner", "first", here])
    assert call_trees.problems(prof) == []


@MODES
@pytest.mark.parametrize("options", [{}, *FILTERS], ids=lambda options: next(iter(options), "plain"))
def test_a_call_counts_once_however_often_its_greenlet_is_switched(c_calls, options):
    def inner():
        main.switch()
        leaf()

    def values():
        inner()
        yield
        main.switch()

    def work():
        for _ in range(3):
            inner()
        list(values())

    main = greenlet.getcurrent()
    with marey.profile(with_stack=True, c_calls=c_calls, **options) as prof:
        workers = [greenlet.greenlet(work) for _ in range(4)]
        while workers:
            for worker in workers:
                worker.switch()
            workers = [worker for worker in workers if not worker.dead]
    found = {row.key.rpartition(".")[2]: row.count for row in prof.key_averages()}
    assert [found[name] for name in ("work", "inner", "values")] == [4, 16, 4]
    assert count(prof, "leaf") == 16
    calls = {}
    for call in prof.trace.suspended_calls():
        calls.setdefault(call.name.rpartition(".")[2], []).append(call)
    assert [call.parts for call in calls["work"]] == [6] * 4
    assert [call.parts for call in calls["inner"]] == [2] * 16
    assert [call.parts for call in calls["values"]] == [4] * 4  # suspended by its greenlet and by itself
    assert all(call.finished and call.suspended_ns > 0 and call.running_ns > 0 for call in calls["inner"])


@MODES
def test_the_calls_of_greenlets_that_run_when_recording_stops_count_once(c_calls):
    def work():
        main.switch()
        leaf()
        prof.stop()

    main = greenlet.getcurrent()
    prof = marey.profile(with_stack=True, c_calls=c_calls)
    prof.start()
    worker = greenlet.greenlet(work)
    worker.switch()
    worker.switch()
    (call,) = [call for call in prof.trace.suspended_calls() if call.name.endswith(".work")]
    assert (call.parts, call.finished) == (2, False)


@MODES
def test_depth_is_counted_in_each_greenlet(c_calls):
    def below():
        leaf()

    def work():
        main.switch()
        below()
        main.switch()

    main = greenlet.getcurrent()
    with marey.profile(with_stack=True, c_calls=c_calls, max_depth=2) as prof:
        workers = [greenlet.greenlet(work) for _ in range(3)]
        for _ in range(2):
            for worker in workers:
                worker.switch()
        leaf()
    assert sum(name.endswith(".below") for name in call_trees.names(prof)) == 3
    assert count(prof, "leaf") == 1


@pytest.mark.parametrize("options", [{}, {"call_lines": True}], ids=["plain", "lines"])
def test_calls_of_a_greenlet_that_was_running_at_the_start_are_kept_apart(options):
    """It is switched away from, resumes, and makes more calls."""

    def other():
        leaf()
        one.switch()

    def run():
        prof.start()
        greenlet.greenlet(other).switch()
        leaf()
        main.switch()

    main = greenlet.getcurrent()
    one = greenlet.greenlet(run)
    prof = marey.profile(with_stack=True, **options)
    one.switch()
    prof.stop()
    assert sorted(parents(prof, "leaf")) == ["other", "run"]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="there is no profile hook")
def test_the_trace_reports_switches_that_cannot_be_followed():
    with marey.profile(with_stack=True, c_calls=False) as prof:
        sys.setprofile(lambda *_: None)
        try:
            for _ in range(3):
                greenlet.greenlet(leaf).switch()
        finally:
            sys.setprofile(None)
    assert count(prof, "leaf") == 3
    assert call_trees.problems(prof) == ["python_greenlets"]


@MODES
def test_programs_with_greenlets_run_as_without_marey(c_calls):
    def work(n):
        total = 0
        for i in range(n):
            leaf()
            total += main.switch(i)
        return total

    main = greenlet.getcurrent()
    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        workers = [greenlet.greenlet(work) for _ in range(5)]
        assert [worker.switch(10) for worker in workers] == [0] * 5
        for _ in range(9):
            for worker in workers:
                worker.switch(1)
        assert [worker.switch(1) for worker in workers] == [10] * 5
    assert count(prof, "leaf") == 50


@MODES
def test_greenlets_that_are_abandoned_or_fail_are_harmless(c_calls):
    def left():
        leaf()
        main.switch()

    def fails():
        leaf()
        raise ValueError

    main = greenlet.getcurrent()
    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        for _ in range(100):
            greenlet.greenlet(left).switch()
            with pytest.raises(ValueError):
                greenlet.greenlet(fails).switch()
    assert count(prof, "leaf") == 200


@MODES
def test_the_trace_callback_of_the_program_is_called_too(c_calls):
    seen = []
    greenlet.settrace(lambda event, pair: seen.append(event))
    try:
        with marey.profile(with_stack=True, c_calls=c_calls):
            greenlet.greenlet(leaf).switch()
    finally:
        greenlet.settrace(None)
    assert seen == ["switch", "switch"]


@MODES
def test_greenlets_imported_while_tracing_are_kept_apart(c_calls):
    assert (
        run_program(f"""
        import marey
        def leaf(): pass
        with marey.profile(with_stack=True, c_calls={c_calls!r}) as prof:
            import greenlet
            def one():
                main.switch()
                leaf()
            def two():
                main.switch()
                leaf()
            main = greenlet.getcurrent()
            both = [greenlet.greenlet(one), greenlet.greenlet(two)]
            for each in both: each.switch()
            for each in both: each.switch()
        leaves = [event for event in prof.events() if event.name.endswith(": leaf")]
        print([event.cpu_parent.name.rpartition(": ")[2] for event in leaves])
        """)
        == "['one', 'two']\n"
    )
