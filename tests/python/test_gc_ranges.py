"""Garbage collections as ranges."""

import gc

import pytest
from call_trees import in_thread, rows

import marey

EVERY_HOOK = pytest.mark.parametrize("c_calls", [False, True], ids=["python_calls", "c_calls"])


def collections_of(prof):
    return [row for row in rows(prof) if row["name"] == "Python GC"]


@pytest.fixture(autouse=True)
def no_collections_of_their_own():
    gc.disable()
    yield
    gc.enable()


@EVERY_HOOK
def test_a_garbage_collection_is_a_range_with_the_number_of_objects(c_calls):
    """upstream: test_python_gc_event"""
    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        gc.collect()
        gc.collect(0)
        for _ in range(10):
            cycle = []
            cycle.append(cycle)
            del cycle
        gc.collect(1)
    first, second, third = collections_of(prof)
    assert [row["keywords"]["generation"] for row in (first, second, third)] == [2, 0, 1]
    assert third["keywords"]["collected"] >= 10
    assert third["keywords"]["uncollectable"] == 0
    assert first["scope"] == 12


@EVERY_HOOK
def test_calls_made_by_a_finalizer_are_inside_the_collection(c_calls):
    class Noisy:
        def __init__(self):
            self.me = self

        def __del__(self):
            pass

    Noisy()
    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        gc.collect()
    everything = rows(prof)
    (finalizer,) = [row for row in everything if "__del__" in row["name"]]
    assert everything[finalizer["parent"]]["name"] == "Python GC"


def test_the_callback_is_installed_once_while_calls_are_recorded_and_removed_after():
    before = list(gc.callbacks)
    with marey.profile(with_stack=True):
        assert len(gc.callbacks) == len(before) + 1
        with marey.profile(with_stack=True, c_calls=False):
            assert len(gc.callbacks) == len(before) + 1
    assert gc.callbacks == before
    with marey.profile():
        assert gc.callbacks == before


def test_a_program_that_clears_the_callbacks_is_left_alone():
    kept = list(gc.callbacks)
    with marey.profile(with_stack=True) as prof:
        gc.callbacks.clear()
        gc.collect()
    assert gc.callbacks == []
    assert collections_of(prof) == []
    gc.callbacks.extend(kept)
    with marey.profile(with_stack=True) as prof:
        gc.collect()
    assert len(collections_of(prof)) == 1


def test_a_session_without_calls_has_none():
    with marey.profile() as outer:
        with marey.profile(with_stack=True) as inner:
            gc.collect()
    assert collections_of(outer) == []
    assert len(collections_of(inner)) == 1


def test_a_collection_is_shown_on_the_thread_that_ran_it():
    def work():
        in_thread(gc.collect)

    with marey.profile(with_stack=True) as prof:
        work()
        gc.collect()
    on_thread, on_main = collections_of(prof)
    assert on_thread["os_tid"] != on_main["os_tid"]


def test_a_session_that_ends_within_a_collection_shows_it_open():
    prof = marey.profile(with_stack=True)

    class Stopper:
        def __init__(self):
            self.me = self

        def __del__(self):
            prof.stop()

    Stopper()
    prof.start()
    gc.collect()
    assert len(collections_of(prof)) == 1
    assert gc.collect() >= 0


def test_chrome_traces_show_collections_as_python_functions(tmp_path):
    import json

    with marey.profile(with_stack=True) as prof:
        gc.collect()
    prof.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    (event,) = [event for event in events if event.get("name") == "Python GC"]
    assert event["cat"] == "python_function"
    assert event["args"]["generation"] == 2
