"""Greenlets: each has its own calls, on the thread that they share. recording.md rule 27."""

import os
import sys

import call_trees
import pytest
from call_trees import count, leaf, run_program

import kymo

greenlet = pytest.importorskip("greenlet")

# The frame hook of 3.11 has no list of calls that could be put aside: ends out of order are async there.
has_stretches = pytest.mark.skipif(sys.version_info < (3, 12), reason="not with the frame hook")
WITH_STRETCHES = pytest.mark.parametrize(
    "c_calls", [pytest.param(False, marks=has_stretches), True, "all"], ids=["python", "with_c", "all_c"]
)

# A switch copies the C stack away and back. With the frame hook our frames are on it, and AddressSanitizer takes the
# copy, which greenlet makes with memcpy, for an access to the red zones between their variables; the zones of the stack
# that comes back are then another's. Neither is an error of greenlet's or ours.
has_plain_stack = pytest.mark.skipif(
    "KYMO_TEST_SANITIZER" in os.environ and sys.version_info < (3, 12), reason="the sanitizer's frames cannot be copied"
)
MODES = pytest.mark.parametrize(
    "c_calls", [pytest.param(False, marks=has_plain_stack), True, "all"], ids=["python", "with_c", "all_c"]
)


def parents(prof, function):
    """The names of the callers of a function, each time that it was called."""
    rows = call_trees.rows(prof)
    calls = [row for row in rows if row["name"].endswith(f": {function}")]
    return [rows[row["parent"]]["name"].rpartition(".")[2] for row in calls if row["parent"] is not None]


@WITH_STRETCHES
def test_calls_stand_in_the_greenlet_that_makes_them(c_calls):
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
    with kymo.profile(with_stack=True, c_calls=c_calls) as prof:
        one.switch()
        leaf()
    assert parents(prof, "leaf")[:3] == ["first", "first", "second"]
    rows = call_trees.rows(prof)
    assert not [row for row in rows if row["name"].endswith((".first", ".second", ": leaf")) and row["flags"]]


@MODES
def test_programs_with_greenlets_run_as_without_kymo(c_calls):
    def work(n):
        total = 0
        for i in range(n):
            leaf()
            total += main.switch(i)
        return total

    main = greenlet.getcurrent()
    with kymo.profile(with_stack=True, c_calls=c_calls) as prof:
        workers = [greenlet.greenlet(work) for _ in range(5)]
        assert [worker.switch(10) for worker in workers] == [0] * 5
        for _ in range(9):
            for worker in workers:
                worker.switch(1)
        assert [worker.switch(1) for worker in workers] == [10] * 5
    assert count(prof, "leaf") == 50


@MODES
def test_greenlets_that_are_left_or_fail_do_no_harm(c_calls):
    def left():
        leaf()
        main.switch()

    def fails():
        leaf()
        raise ValueError

    main = greenlet.getcurrent()
    with kymo.profile(with_stack=True, c_calls=c_calls) as prof:
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
        with kymo.profile(with_stack=True, c_calls=c_calls):
            greenlet.greenlet(leaf).switch()
    finally:
        greenlet.settrace(None)
    assert seen == ["switch", "switch"]


@WITH_STRETCHES
def test_greenlets_imported_while_tracing_are_kept_apart(c_calls):
    assert (
        run_program(f"""
        import kymo
        from kymo import _kymo
        def leaf(): pass
        with kymo.profile(with_stack=True, c_calls={c_calls!r}) as prof:
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
        rows = _kymo.range_rows(prof.trace)
        print([rows[r["parent"]]["name"].rpartition(": ")[2] for r in rows if r["name"].endswith(": leaf")])
        """)
        == "['one', 'two']\n"
    )
