"""Random programs with ranges, compared with a plain model."""

import asyncio
import threading
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import ASYNC, UNFINISHED, recording

import marey

NAMES = ["a", "b", "c", "d"]


class Model:
    """The expected records of a program: for each range its path of names."""

    def __init__(self):
        self.paths = Counter()
        self.lock = threading.Lock()

    def see(self, path):
        with self.lock:
            self.paths[path] += 1


def program(leaf_kinds, max_leaves=25):
    """Trees of ranges: (kind, name, children)."""
    leaf = st.tuples(st.sampled_from(leaf_kinds), st.sampled_from(NAMES), st.just([]))
    return st.lists(
        st.recursive(
            leaf,
            lambda inner: st.tuples(st.sampled_from(leaf_kinds), st.sampled_from(NAMES), st.lists(inner, max_size=4)),
            max_leaves=max_leaves,
        ),
        max_size=4,
    )


SHARED = {name: marey.record_function_fast(name) for name in NAMES}


def run(tree, model, path):
    for kind, name, children in tree:
        here = path + (name,)
        if kind == "thread":  # a range on a separate thread: not nested there
            thread = threading.Thread(target=run, args=([("with", name, children)], model, ()))
            thread.start()
            thread.join()
            continue
        model.see(here)
        if kind == "with":
            with marey.record_function(name):
                run(children, model, here)
        elif kind == "fast":  # one object for all, entered again while it is open
            with SHARED[name]:
                run(children, model, here)
        elif kind == "begin":
            marey.begin(name)
            run(children, model, here)
            marey.end()
        elif kind == "call":
            marey.record_function(name)(run)(children, model, here)
        elif kind == "raise":
            try:
                with marey.record_function(name):
                    run(children, model, here)
                    raise KeyError
            except KeyError:
                pass
        elif kind == "drop":
            range_ = marey.record_function(name)
            range_.__enter__()
            run(children, model, here)
            del range_
        elif kind == "generator":

            def body(children=children, here=here):
                run(children, model, here)
                if False:
                    yield

            list(marey.record_function(name)(body)())


SYNCHRONOUS = ["with", "fast", "begin", "call", "raise", "drop", "generator"]


def check(seen, model):
    lives = [row for row in seen.rows if row["name"].endswith(" (life)")]
    rows = [row for row in seen.rows if not row["name"].endswith(" (life)")]
    assert all(row["flags"] == ASYNC for row in lives)
    assert Counter(seen.path(row) for row in rows) == model.paths
    assert not any(row["flags"] for row in rows)


@settings(max_examples=150, deadline=None)
@given(program(SYNCHRONOUS))
def test_nested_and_recursive_ranges_match_the_program(tree):
    model = Model()
    with recording() as seen:
        run(tree, model, ())
    check(seen, model)


@settings(max_examples=60, deadline=None)
@given(program(SYNCHRONOUS + ["thread"]))
def test_threads_have_their_own_nesting(tree):
    model = Model()
    with recording() as seen:
        run(tree, model, ())
    check(seen, model)


@settings(max_examples=60, deadline=None)
@given(program(SYNCHRONOUS), program(SYNCHRONOUS), st.integers(0, 3))
def test_overlapping_sessions_record_the_ranges_inside_them(first, second, nested):
    outer_model, inner_model = Model(), Model()
    with recording() as outer:
        run(first, outer_model, ())
        sessions = [marey.Session() for _ in range(nested)]
        for session in sessions:
            session.start()
        with recording() as inner:
            run(second, inner_model, ())
        for session in sessions:
            session.discard()
    check(inner, inner_model)
    outer_model.paths += inner_model.paths
    check(outer, outer_model)


async def run_async(steps, name, model):
    """A task: ranges between its awaits, and around some."""
    for kind in steps:
        if kind == "await":
            await asyncio.sleep(0)
        elif kind == "range":
            model.see(name)
            with marey.record_function(name):
                pass
        elif kind == "around":
            model.see(name)
            with marey.record_function(name):
                await asyncio.sleep(0)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.lists(st.sampled_from(["await", "range", "around"]), max_size=8), max_size=5))
def test_tasks_that_run_in_turns_lose_no_range(tasks):
    model = Model()

    async def main():
        await asyncio.gather(*(run_async(steps, f"task {i}", model) for i, steps in enumerate(tasks)))

    with recording() as seen:
        asyncio.run(main())
        with marey.record_function("after"):
            pass
    assert Counter(seen.names()) == model.paths + Counter(["after"])
    assert not any(row["flags"] & UNFINISHED for row in seen.rows)
    assert seen.one("after")["depth"] == 0


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=40))
def test_ranges_entered_and_left_in_any_order_on_any_thread_lose_nothing(moves):
    """upstream: test_record_function_multithreaded"""
    ranges = [marey.record_function(f"r{i}") for i in range(6)]
    entered = Counter()
    expected = Counter()

    def leave(i):
        ranges[i].__exit__(None, None, None)

    with recording() as seen:
        for here, i in moves:
            if entered[i] == 0:
                ranges[i].__enter__()
                entered[i] = 1
                expected[f"r{i}"] += 1
            else:
                entered[i] = 0
                if here:
                    leave(i)
                else:
                    thread = threading.Thread(target=leave, args=(i,))
                    thread.start()
                    thread.join()
        for i in range(6):
            if entered[i]:
                leave(i)
        with marey.record_function("after"):
            pass
    assert Counter(seen.names()) == expected + Counter(["after"])
    assert not any(row["flags"] & UNFINISHED for row in seen.rows)
    assert seen.one("after")["depth"] == 0
