"""Every Python call is recorded with with_stack=True."""

import asyncio
import gc
import sys
import weakref

import call_trees
import pytest
from call_trees import MODES, count, has_every_c_call, leaf, names, twice

import marey


@MODES
def test_calls_are_ranges_that_nest_as_they_ran(c_calls):
    """P11"""
    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        twice()
    assert call_trees.recorded(prof, twice) == [call_trees.reference(twice)]


def test_names_are_file_line_and_qualified_name_without_the_import_prefix():
    class Holder:
        def method(self):
            pass

    with marey.profile(with_stack=True) as prof:
        Holder().method()
    line = Holder.method.__code__.co_firstlineno
    function = "test_names_are_file_line_and_qualified_name_without_the_import_prefix"
    assert f"test_tracer.py({line}): {function}.<locals>.Holder.method" in names(prof)


@MODES
def test_the_costs_of_a_call_and_a_resume_are_measured_outside_the_trace(c_calls):
    program = f"""
        import marey

        def outer(depth):
            if depth:
                return outer(depth - 1)
            session = marey.Session()
            session.start(with_stack=True, c_calls={c_calls!r})
            len([])
            return session.stop()

        trace = outer(5)
        costs = trace.info()["costs_ns"]
        assert costs["python_call"] > 0 and costs["python_resume"] > 0, costs
        assert not [event for event in trace.events() if "<marey>" in event.name]
        assert trace.problems == [], trace.problems
        """
    call_trees.run_program(program)


def test_c_calls_can_be_left_out():
    with marey.profile(with_stack=True, c_calls=False) as prof:
        len([])
        leaf()
    assert count(prof, "leaf") == 1
    assert "builtins.len" not in names(prof)


def test_c_calls_is_checked():
    with pytest.raises(ValueError, match="c_calls"):
        marey.profile(with_stack=True, c_calls="some")


def test_without_with_stack_there_are_no_calls_even_if_another_session_records_them():
    """P1"""
    with marey.profile() as plain, marey.profile(with_stack=True) as traced:
        twice()
    assert count(plain, "leaf") == 0
    assert count(traced, "leaf") == 2


def test_a_session_without_c_calls_does_not_get_those_of_another():
    with marey.profile(with_stack=True, c_calls=False) as python, marey.profile(with_stack=True) as both:
        len([])
        leaf()
    assert "builtins.len" in names(both)
    assert "builtins.len" not in names(python)
    assert count(python, "leaf") == count(both, "leaf") == 1


@MODES
def test_ranges_of_the_program_are_inside_their_calls(c_calls):
    """P38"""

    def marked():
        with marey.record_function("marked range"):
            leaf()

    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        marked()
    (event,) = [event for event in prof.events() if event.name == "marked range"]
    assert event.cpu_parent.name.endswith("<locals>.marked")
    assert [child.name.rpartition(": ")[2] for child in event.cpu_children if "leaf" in child.name] == ["leaf"]
    assert event.stack[0].endswith("<locals>.marked")


@MODES
def test_frames_running_at_the_start_are_open_ranges(c_calls):
    """P21"""
    prof = marey.profile(with_stack=True, c_calls=c_calls)

    def starter():
        prof.start()
        leaf()

    def outer():
        starter()
        leaf()

    outer()
    leaf()
    prof.stop()
    events = {event.name.rpartition(".")[2]: event for event in prof.events() if "<locals>" in event.name}
    assert events["starter"].cpu_parent is events["outer"]
    assert events["outer"].cpu_parent.name.endswith(": test_frames_running_at_the_start_are_open_ranges")
    leaves = [event.cpu_parent.name.rpartition(".")[2] for event in prof.events() if event.name.endswith(": leaf")]
    assert leaves[:2] == ["starter", "outer"]
    assert leaves[2].endswith("test_frames_running_at_the_start_are_open_ranges")


def test_a_range_after_the_return_of_a_frame_running_at_the_start_is_not_inside_it():
    prof = marey.profile(with_stack=True, c_calls=False)

    def starter():
        prof.start()

    starter()
    with marey.record_function("later"):
        pass
    prof.stop()
    (event,) = [event for event in prof.events() if event.name == "later"]
    assert "starter" not in " ".join(event.stack)


@MODES
def test_each_stretch_of_a_generator_is_a_range_but_its_creation_is_not(c_calls):
    """P33"""

    def numbers():
        leaf()
        yield 1
        leaf()

    def user():
        generator = numbers()
        leaf()
        return list(generator)

    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        user()
    with_c = has_every_c_call(c_calls)
    assert call_trees.recorded(prof, user, with_c) == [call_trees.reference(user, with_c)]
    assert sum(name.endswith("<locals>.numbers") for name in names(prof)) == 2


@MODES
def test_exceptions_end_the_calls_that_they_leave(c_calls):
    def fails():
        raise ValueError

    def middle():
        fails()

    def catches():
        try:
            middle()
        except ValueError:
            pass
        try:
            int("x")
        except ValueError:
            pass
        leaf()

    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        catches()
    with_c = has_every_c_call(c_calls)
    assert call_trees.recorded(prof, catches, with_c) == [call_trees.reference(catches, with_c)]


@MODES
def test_asyncio_coroutines_are_recorded(c_calls):
    async def work(n):
        await asyncio.sleep(0)
        leaf()
        return n

    async def main():
        return await asyncio.gather(*(work(i) for i in range(20)))

    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        assert asyncio.run(main()) == list(range(20))
    assert count(prof, "leaf") == 20
    assert sum(name.endswith("<locals>.work") for name in names(prof)) == 40


@MODES
def test_freed_code_keeps_its_name_and_its_reused_address_is_not_confused(c_calls):
    """P12, P13"""
    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        for i in range(200):
            scope = {}
            exec(f"def made_{i}(): pass", scope)
            scope[f"made_{i}"]()
            del scope
    found = [name.rpartition(": ")[2] for name in names(prof) if ": made_" in name]
    assert found == [f"made_{i}" for i in range(200)]


def test_no_reference_is_kept():
    """P13"""

    class Thing:
        def method(self):
            pass

    thing = Thing()
    seen = weakref.ref(thing)
    with marey.profile(with_stack=True):
        thing.method()
        del thing
        gc.collect()
        assert seen() is None


@MODES
def test_recursion_errors_are_unchanged(c_calls):
    """P20"""

    def down():
        down()

    def falls():
        try:
            down()
        except RecursionError:
            return "fell"

    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        assert falls() == "fell"
        leaf()
    depth = sum(name.endswith("<locals>.down") for name in names(prof))
    assert sys.getrecursionlimit() - 100 < depth <= sys.getrecursionlimit()
    assert count(prof, "leaf") == 1
