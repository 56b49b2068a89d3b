"""Every Python call is recorded with with_stack=True."""

import _thread
import asyncio
import gc
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import call_trees
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kymo

MODES = pytest.mark.parametrize("c_calls", [False, True], ids=["python", "with_c"])


def leaf():
    return 1


def twice():
    leaf()
    leaf()


def names(prof):
    return [row["name"] for row in call_trees.rows(prof)]


def count(prof, function):
    return sum(name.endswith(f": {function}") for name in names(prof))


@MODES
def test_calls_are_ranges_that_nest_as_they_ran(c_calls):
    """P11"""
    with kymo.profile(with_stack=True, c_calls=c_calls) as prof:
        twice()
    assert call_trees.recorded(prof, twice) == [call_trees.reference(twice)]


def test_names_are_file_line_and_qualified_name_without_the_import_prefix():
    class Holder:
        def method(self):
            pass

    with kymo.profile(with_stack=True) as prof:
        Holder().method()
    line = Holder.method.__code__.co_firstlineno
    function = "test_names_are_file_line_and_qualified_name_without_the_import_prefix"
    assert f"test_tracer.py({line}): {function}.<locals>.Holder.method" in names(prof)


def test_c_functions_are_named_by_module_or_class():
    """P11"""
    items = []
    with kymo.profile(with_stack=True) as prof:
        len(items)
        items.append(1)
        time.monotonic()
    assert {"builtins.len", "list.append", "time.monotonic"} <= set(names(prof))


def test_c_calls_can_be_left_out():
    with kymo.profile(with_stack=True, c_calls=False) as prof:
        len([])
        leaf()
    assert count(prof, "leaf") == 1
    assert "builtins.len" not in names(prof)


def test_c_calls_is_checked():
    with pytest.raises(ValueError, match="c_calls"):
        kymo.profile(with_stack=True, c_calls="some")


def test_without_with_stack_there_are_no_calls_even_beside_a_session_that_has_them():
    """P1"""
    with kymo.profile() as plain, kymo.profile(with_stack=True) as traced:
        twice()
    assert count(plain, "leaf") == 0
    assert count(traced, "leaf") == 2


def test_a_session_without_c_calls_does_not_get_those_of_another():
    with kymo.profile(with_stack=True, c_calls=False) as python, kymo.profile(with_stack=True) as both:
        len([])
        leaf()
    assert "builtins.len" in names(both)
    assert "builtins.len" not in names(python)
    assert count(python, "leaf") == count(both, "leaf") == 1


@MODES
def test_the_hook_goes_with_the_last_session(c_calls):
    """P7"""
    outer = kymo.profile(with_stack=True, c_calls=c_calls)
    inner = kymo.profile(with_stack=True, c_calls=c_calls)
    outer.start()
    inner.start()
    leaf()
    outer.stop()
    leaf()
    inner.stop()
    leaf()
    assert count(outer, "leaf") == 1
    assert count(inner, "leaf") == 2
    assert sys.getprofile() is None


@MODES
def test_ranges_of_the_program_stand_in_their_calls(c_calls):
    """P38"""

    def marked():
        with kymo.record_function("marked range"):
            leaf()

    with kymo.profile(with_stack=True, c_calls=c_calls) as prof:
        marked()
    (event,) = [event for event in prof.events() if event.name == "marked range"]
    assert event.cpu_parent.name.endswith("<locals>.marked")
    assert [child.name.rpartition(": ")[2] for child in event.cpu_children if "leaf" in child.name] == ["leaf"]
    assert event.stack[0].endswith("<locals>.marked")


@MODES
def test_frames_that_run_at_the_start_are_open_ranges(c_calls):
    """P21"""
    prof = kymo.profile(with_stack=True, c_calls=c_calls)

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
    assert events["outer"].cpu_parent.name.endswith(": test_frames_that_run_at_the_start_are_open_ranges")
    leaves = [event.cpu_parent.name.rpartition(".")[2] for event in prof.events() if event.name.endswith(": leaf")]
    assert leaves[:2] == ["starter", "outer"]
    assert leaves[2].endswith("test_frames_that_run_at_the_start_are_open_ranges")


def test_a_range_after_the_return_of_a_frame_that_ran_at_the_start_is_not_in_it():
    prof = kymo.profile(with_stack=True, c_calls=False)

    def starter():
        prof.start()

    starter()
    with kymo.record_function("later"):
        pass
    prof.stop()
    (event,) = [event for event in prof.events() if event.name == "later"]
    assert "starter" not in " ".join(event.stack)


@MODES
def test_every_thread_is_seen_those_born_later_too(c_calls):
    """P2, P4"""
    go, done = threading.Event(), threading.Event()

    def early():
        go.wait()
        leaf()
        done.set()

    running = threading.Thread(target=early)
    running.start()
    with kymo.profile(with_stack=True, c_calls=c_calls) as prof:
        go.set()
        running.join()
        call_trees.in_thread(leaf)
        finished = _thread.allocate_lock()
        finished.acquire()

        def bare():
            leaf()
            finished.release()

        _thread.start_new_thread(bare, ())
        finished.acquire()
    assert count(prof, "leaf") == 3
    assert len({event.thread for event in prof.events() if event.name.endswith(": leaf")}) == 3
    assert any(event.name.endswith("<locals>.early") for event in prof.events())


@MODES
def test_each_stretch_of_a_generator_is_a_range_and_its_making_is_none(c_calls):
    """P33"""

    def numbers():
        leaf()
        yield 1
        leaf()

    def user():
        generator = numbers()
        leaf()
        return list(generator)

    with kymo.profile(with_stack=True, c_calls=c_calls) as prof:
        user()
    with_c = c_calls
    assert call_trees.recorded(prof, user) == [call_trees.reference(user, with_c)]
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

    with kymo.profile(with_stack=True, c_calls=c_calls) as prof:
        catches()
    assert call_trees.recorded(prof, catches) == [call_trees.reference(catches, c_calls)]


@MODES
def test_coroutines_of_asyncio_are_recorded(c_calls):
    async def work(n):
        await asyncio.sleep(0)
        leaf()
        return n

    async def main():
        return await asyncio.gather(*(work(i) for i in range(20)))

    with kymo.profile(with_stack=True, c_calls=c_calls) as prof:
        assert asyncio.run(main()) == list(range(20))
    assert count(prof, "leaf") == 20
    assert sum(name.endswith("<locals>.work") for name in names(prof)) == 40


@MODES
def test_code_that_dies_keeps_its_name_and_its_address_is_not_mistaken(c_calls):
    """P12, P13"""
    with kymo.profile(with_stack=True, c_calls=c_calls) as prof:
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
    with kymo.profile(with_stack=True):
        thing.method()
        del thing
        gc.collect()
        assert seen() is None


@MODES
def test_recursion_errors_are_as_they_are(c_calls):
    """P20"""

    def down():
        down()

    def falls():
        try:
            down()
        except RecursionError:
            return "fell"

    with kymo.profile(with_stack=True, c_calls=c_calls) as prof:
        assert falls() == "fell"
        leaf()
    depth = sum(name.endswith("<locals>.down") for name in names(prof))
    assert sys.getrecursionlimit() - 100 < depth <= sys.getrecursionlimit()
    assert count(prof, "leaf") == 1


def run_program(text):
    """Runs a program in an interpreter of its own; what it prints."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("c_calls", [False, True])
def test_very_deep_recursion_works_as_without_kymo(c_calls):
    """P40; recording.md rule 24."""
    assert (
        run_program(f"""
        import sys, kymo
        sys.setrecursionlimit(100000)
        def down(n):
            return 0 if n == 0 else 1 + down(n - 1)
        def leaf(): pass
        with kymo.profile(with_stack=True, c_calls={c_calls}) as prof:
            print(down(60000))
            leaf()
        print(sum(e.name.endswith(": leaf") for e in prof.events()))
        """)
        == "60000\n1\n"
    )


@pytest.mark.parametrize("c_calls", [False, True])
def test_small_stacks_hold_as_much_as_without_kymo(c_calls):
    """recording.md rule 24."""
    assert (
        run_program(f"""
        import sys, threading, kymo
        threading.stack_size(256 * 1024)
        def down(n):
            return 0 if n == 0 else 1 + down(n - 1)
        with kymo.profile(with_stack=True, c_calls={c_calls}) as prof:
            thread = threading.Thread(target=lambda: print(down(900)))
            thread.start()
            thread.join()
        """)
        == "900\n"
    )


def test_a_foreign_profile_hook_is_not_replaced():
    """P6"""

    def hook(frame, event, arg):
        pass

    sys.setprofile(hook)
    try:
        if sys.version_info < (3, 12):
            with pytest.raises(kymo.Error, match="profile hook"):
                kymo.profile(with_stack=True).start()
        with kymo.profile(with_stack=True, c_calls=False) as prof:
            leaf()
        assert sys.getprofile() is hook
    finally:
        sys.setprofile(None)
    assert count(prof, "leaf") == 1


def test_a_session_that_lives_at_the_end_of_the_program_does_no_harm():
    """P40"""
    for c_calls in (False, True):
        assert (
            run_program(f"""
            import kymo
            class Late:
                def __del__(self): print("late")
            keep = Late()
            prof = kymo.profile(with_stack=True, c_calls={c_calls})
            prof.start()
            print("end")
            """)
            == "end\nlate\n"
        )


@MODES
def test_a_forked_child_runs_without_the_hook(c_calls):
    """P35"""
    assert (
        run_program(f"""
        import os, sys, kymo
        def leaf(): pass
        with kymo.profile(with_stack=True, c_calls={c_calls}) as prof:
            leaf()
            pid = os.fork()
            if pid == 0:
                leaf()
                os.write(1, b"child\\n")
                os._exit(0)
            os.waitpid(pid, 0)
            leaf()
        print(sum(e.name.endswith(": leaf") for e in prof.events()))
        """)
        == "child\n2\n"
    )


# ---- random programs


@pytest.fixture
def no_collection():
    """Collections come when they like, and hypothesis has a callback for them, whose calls are seen like any."""
    gc.disable()
    yield
    gc.enable()


class Fault(Exception):
    pass


def call_and_catch(plan):
    try:
        run(plan)
    except Fault:
        pass


def generate(plans):
    for plan in plans:
        run(plan)
        yield plan


def spread(plans):
    for _ in generate(plans):
        pass


def delegate(plans):
    yield from generate(plans)


def half(plans):
    generator = delegate(plans)
    next(generator, None)
    try:
        generator.throw(Fault)
    except (Fault, StopIteration):
        pass


async def wait_for(plan):
    run(plan)


def drive(plan):
    coroutine = wait_for(plan)
    try:
        coroutine.send(None)
    except (StopIteration, Fault):
        pass


def run(plan):
    """Does what a plan says: a tree of steps."""
    kind, plans = plan
    if kind == "raise":
        raise Fault
    if kind == "c":
        sorted(plans, key=lambda each: len(each))
    elif kind == "map":
        list(map(call_and_catch, plans))
    elif kind == "generate":
        spread(plans)
    elif kind == "half":
        half(plans)
    elif kind == "drive":
        for each in plans:
            drive(each)
    elif kind == "try":
        for each in plans:
            call_and_catch(each)
    else:
        for each in plans:
            run(each)


KINDS = st.sampled_from(["call", "raise", "c", "map", "generate", "half", "drive", "try"])
PLANS = st.recursive(
    st.tuples(KINDS, st.just(())), lambda inner: st.tuples(KINDS, st.lists(inner, max_size=4).map(tuple)), max_leaves=20
)


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(plan=PLANS)
@MODES
def test_random_programs_give_the_tree_that_setprofile_sees(no_collection, c_calls, plan):
    """P10, P26"""

    def program():
        call_and_catch(plan)

    expected = call_trees.reference(program, c_calls)
    with kymo.profile(with_stack=True, c_calls=c_calls) as prof:
        program()
    assert call_trees.recorded(prof, program) == [expected]


@settings(deadline=None, max_examples=10, suppress_health_check=list(HealthCheck))
@given(plans=st.lists(PLANS, min_size=2, max_size=4))
@MODES
def test_random_programs_on_threads_do_not_mix(no_collection, c_calls, plans):
    """P3, P24"""

    def make(plan):
        def program():
            call_and_catch(plan)

        return program

    programs = [make(plan) for plan in plans]
    expected = sorted(call_trees.reference(program, c_calls) for program in programs)
    with kymo.profile(with_stack=True, c_calls=c_calls) as prof:
        threads = [threading.Thread(target=program) for program in programs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(call_trees.recorded(prof, programs[0])) == expected
