"""Calls into C: which callables are recorded, under which names, and that each end finds its call."""

import functools
import sys
import threading
import types

import call_trees
import pytest
from call_trees import MODES, count, leaf, names

import marey

numpy = pytest.importorskip("numpy")
sees_all_callables = pytest.mark.skipif(sys.version_info < (3, 12), reason="the profile hook does not report them")


def test_c_functions_are_named_by_module_or_class():
    """P11"""
    items = []
    with marey.profile(with_stack=True) as prof:
        len(items)
        items.append(1)
        threading.get_ident()
    assert {"builtins.len", "list.append", "_thread.get_ident"} <= set(names(prof))


@sees_all_callables
def test_callables_that_the_profile_hook_does_not_report_are_recorded():
    append = [].append
    length = [].__len__
    bound = types.MethodType(len, [])
    partial = functools.partial(leaf)
    cached = functools.lru_cache(leaf)
    with marey.profile(with_stack=True) as prof:
        append(1)
        bound()
        partial()
        cached()
        int("1")
        list.__len__([])
        length()
        dict.fromkeys([])
        functools.partial(leaf)
    assert {
        "list.append",
        "builtins.len",
        "functools.partial.__call__",
        "functools._lru_cache_wrapper.__call__",
        "int",
        "list.__len__",
        "dict.fromkeys",
        "functools.partial",
    } <= set(names(prof))
    called = [row["parent"] for row in call_trees.rows(prof) if row["name"].endswith(": leaf")]
    assert [names(prof)[parent] for parent in called] == [
        "functools.partial.__call__",
        "functools._lru_cache_wrapper.__call__",
    ]


@sees_all_callables
def test_ufuncs_are_recorded_by_name():
    with marey.profile(with_stack=True) as prof:
        numpy.add(1, 2)
        numpy.multiply(3, 4)
    assert {"numpy.add", "numpy.multiply"} <= set(names(prof))


class WithCall:
    def __call__(self):
        leaf()


@sees_all_callables
def test_classes_and_objects_whose_call_is_python_are_not_calls_into_c():
    thing = WithCall()
    with marey.profile(with_stack=True) as prof:
        WithCall()
        thing()
    assert not [name for name in names(prof) if name.endswith(("WithCall", "WithCall.__call__")) and "(" not in name]
    assert count(prof, "WithCall.__call__") == 1


def mixed(callee, argument):
    return callee(argument)


def test_fast_misses_c_calls_at_sites_that_called_python_functions_and_all_does_not():
    """recording.md rule 25."""
    for c_calls, expected in (("fast", 1 if sys.version_info >= (3, 12) else 2), ("all", 2)):
        with marey.profile(with_stack=True, c_calls=c_calls) as prof:
            mixed(len, "")
            mixed(lambda text: text, "")
            mixed(len, "")
        assert names(prof).count("builtins.len") == expected
        said = [text for code, text, _ in prof.trace.problems if code == "python_c_calls_missing"]
        assert len(said) == (expected == 1)
        assert all(text.startswith("1 call site has called C functions and then a Python function") for text in said)


def test_nothing_is_reported_missing_if_call_sites_are_not_mixed():
    class Thing:
        pass

    def plain():
        return len("")

    with marey.profile(with_stack=True) as prof:
        for callee in (Thing, lambda: 0, Thing, lambda: 1):
            callee()
        for _ in range(3):
            plain()
            [].append(plain())
    assert [code for code, _, _ in prof.trace.problems] == []


def test_calls_at_a_site_within_a_c_call_from_the_same_code_are_complete():
    """Such a site is not switched off yet, and is checked with exponential backoff."""

    def level(depth):
        if depth == 0:
            return [leaf() for _ in range(5000)]
        return list(map(level, [depth - 1]))

    with marey.profile(with_stack=True) as prof:
        level(3)
        level(3)
    assert count(prof, "leaf") == 10_000
    assert sum(name.endswith(".level") for name in names(prof)) == 8
    assert names(prof).count("map") == names(prof).count("list") == (6 if sys.version_info >= (3, 12) else 0)


@MODES
def test_a_call_into_c_ends_although_its_site_calls_a_python_function_within_it(c_calls):
    """Switching the site off would lose the end of the outer call."""

    def inner(_):
        leaf()

    def outer():
        mixed(list, map(functools.partial(mixed, inner), [1]))
        leaf()

    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        outer()
    rows = call_trees.rows(prof)
    leaves = [rows[row["parent"]]["name"] for row in rows if row["name"].endswith(": leaf")]
    assert [name.rpartition(".")[2] for name in leaves] == ["inner", "outer"]


@MODES
def test_a_call_into_c_ends_although_another_thread_calls_a_python_function_at_its_site(c_calls):
    inside, go = threading.Event(), threading.Event()

    def work():
        lock = threading.Lock()
        lock.acquire()
        inside.set()
        mixed(lambda seconds: go.wait(seconds), 10)  # the site is switched off, if it ever is
        leaf()

    def waits():
        mixed(blocking.acquire, True)
        leaf()

    blocking = threading.Lock()
    blocking.acquire()
    thread = threading.Thread(target=waits)
    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        thread.start()
        other = threading.Thread(target=work)
        other.start()
        inside.wait()
        go.set()
        other.join()
        blocking.release()
        thread.join()
    rows = call_trees.rows(prof)
    leaves = {rows[row["parent"]]["name"].rpartition(".")[2] for row in rows if row["name"].endswith(": leaf")}
    assert leaves == {"waits", "work"}


@MODES
def test_unpacked_arguments_do_not_end_another_call(c_calls):
    """On 3.12 such a call of a Python function has the end of a call into C."""

    def recurse(depth):
        if depth == 0:
            return leaf(*())
        sorted([1, 2], key=lambda each: recurse(*(depth - 1,)) or 1)
        return leaf(*())

    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        recurse(3)
    with_c = call_trees.has_every_c_call(c_calls)
    assert call_trees.recorded(prof, recurse, with_c)[0] == call_trees.reference(lambda: recurse(3), with_c)[1][0]


@MODES
def test_recursion_errors_inside_calls_into_c_leave_nothing_open(c_calls):
    def down(_):
        return sorted([1], key=down)

    def falls():
        with pytest.raises(RecursionError):
            down(1)
        leaf()

    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        falls()
    rows = call_trees.rows(prof)
    (found,) = [row for row in rows if row["name"].endswith(": leaf")]
    assert rows[found["parent"]]["name"].endswith("<locals>.falls")
    assert not [row for row in rows if row["name"].endswith("<locals>.down") and row["flags"]]
