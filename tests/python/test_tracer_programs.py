"""Random programs give the call tree that a plain sys.setprofile reference builds."""

import gc
import threading

import call_trees
import pytest
from call_trees import MODES, has_every_c_call
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_programs import PLANS, STEPS, call_and_catch

import marey


@pytest.fixture
def no_collection():
    """Garbage collections can happen at any time, and the calls of hypothesis' callback for them are recorded too."""
    gc.disable()
    yield
    gc.enable()


def make_program(plan):
    def program():
        call_and_catch(plan)

    return program


def assert_same_tree(plan, c_calls):
    program = make_program(plan)
    program()  # fills caches of the standard library
    with_c = has_every_c_call(c_calls)
    expected = call_trees.reference(program, with_c)
    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        program()
    assert call_trees.recorded(prof, program, with_c) == [expected]


@MODES
@pytest.mark.parametrize("kind", sorted(STEPS))
def test_every_kind_of_call_gives_the_tree_that_setprofile_sees(no_collection, c_calls, kind):
    plan = (kind, (("call", (("try", ()),)), ("raise", ()), ("map", (("call", ()),))))
    assert_same_tree(plan, c_calls)
    assert_same_tree((kind, ()), c_calls)
    assert_same_tree((kind, (("call", ()), ("mixed", (("call", ()),)))), c_calls)


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(plan=PLANS)
@MODES
def test_random_programs_give_the_tree_that_setprofile_sees(no_collection, c_calls, plan):
    """P10, P26"""
    assert_same_tree(plan, c_calls)


@settings(deadline=None, max_examples=10, suppress_health_check=list(HealthCheck))
@given(plans=st.lists(PLANS, min_size=2, max_size=4))
@MODES
def test_random_programs_on_threads_do_not_mix(no_collection, c_calls, plans):
    """P3, P24"""
    programs = [make_program(plan) for plan in plans]
    for program in programs:
        program()
    with_c = has_every_c_call(c_calls)
    expected = sorted(call_trees.reference(program, with_c) for program in programs)
    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        threads = [threading.Thread(target=program) for program in programs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(call_trees.recorded(prof, programs[0], with_c)) == expected


@settings(deadline=None, max_examples=20, suppress_health_check=list(HealthCheck))
@given(plan=PLANS)
@MODES
def test_nothing_stays_open_after_a_program(no_collection, c_calls, plan):
    def after():
        pass

    def outer():
        make_program(plan)()
        after()

    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        outer()
    rows = call_trees.rows(prof)
    (found,) = [row for row in rows if row["name"].endswith("<locals>.after")]
    assert rows[found["parent"]]["name"].endswith("<locals>.outer")
    # Neither cut off at the end nor closed out of order: only the calls of the test itself and of stop() are open.
    inside = [row for row in rows if found["start_ns"] >= row["start_ns"] and "random_programs" in row["name"]]
    assert not [row for row in inside if row["flags"]]
