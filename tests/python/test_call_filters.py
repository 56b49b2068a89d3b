"""Which calls are recorded: include, exclude, fold_libraries, min_duration_us, max_depth, call_budget."""

import math
import subprocess
import sys
import threading
import time
import warnings

import call_trees
import pytest

import marey
from marey import _marey  # private: count_as_program: what the command calls

MODES = pytest.mark.parametrize("c_calls", [False, True], ids=["python", "with_c"])


def names(prof):
    return [row["name"] for row in call_trees.rows(prof)]


def functions(prof):
    """The qualified names of Python functions, and the names of C functions."""
    return [name.rpartition("): ")[2] for name in names(prof)]


SOURCE = """
def outer():
    inner()

def inner():
    leaf()
    return len(())

def leaf():
    pass
"""
app = call_trees.make_module("shop.cart.items", "/srv/shop/cart/items.py", SOURCE)
other = call_trees.make_module("stock", "/srv/stock.py", "def call(function):\n    function()\n")


@pytest.mark.parametrize(
    "pattern",
    [
        "shop",
        "shop.cart",
        "shop.cart.items",
        "shop.*",
        "*.cart",
        "sho?",
        "s[a-h]op",
        "s[!x]op",
        "shop.**",
        "/srv/shop",
        "/srv/shop/",
        "/srv/shop/**",
        "/srv/*/cart/items.py",
        "/srv/**/items.py",
        "/srv/shop/cart/**/items.py",
        "items.py",
        "cart/items.py",
        "./cart/*.py",
        "*.py",
        "shop/",
    ],
)
@MODES
def test_a_pattern_matches_files_or_modules(c_calls, pattern):
    with marey.profile(with_stack=True, c_calls=c_calls, exclude=[pattern]) as without:
        app["outer"]()
        other["call"](time.monotonic)
    assert not {"outer", "inner", "leaf"} & set(functions(without))
    if pattern != "*.py":
        assert "call" in functions(without)
    with marey.profile(with_stack=True, c_calls=c_calls, include=[pattern]) as only:
        app["outer"]()
        other["call"](time.monotonic)
    assert [name for name in functions(only) if name in ("outer", "inner", "leaf", "call")] == [
        "outer",
        "inner",
        "leaf",
        *(["call"] if pattern == "*.py" else []),
    ]


@pytest.mark.parametrize(
    "pattern",
    ["sho", "cart", "shop.cart.item", "hop", "srv", "art/items.py", "/shop", "shop.?", "/srv/*.py", "tems.py"],
)
def test_a_pattern_matches_whole_components_only(pattern):
    with marey.profile(with_stack=True, c_calls=False, exclude=[pattern]) as prof:
        app["outer"]()
    assert {"outer", "inner", "leaf"} <= set(functions(prof))


@MODES
def test_calls_made_by_excluded_calls_belong_to_the_nearest_recorded_caller(c_calls):
    with marey.profile(with_stack=True, c_calls=c_calls, exclude=["stock"]) as prof:
        other["call"](app["outer"])
    (event,) = [event for event in prof.events() if event.name.endswith("): outer")]
    assert event.cpu_parent.name.endswith(
        test_calls_made_by_excluded_calls_belong_to_the_nearest_recorded_caller.__name__
    )


def test_c_functions_are_matched_by_their_module():
    def program():
        math.hypot(4, 6)
        len(())
        [].append(1)

    with marey.profile(with_stack=True, exclude=["math"]) as without:
        program()
    assert "math.hypot" not in names(without)
    assert {"builtins.len", "list.append"} <= set(names(without))
    with marey.profile(with_stack=True, include=["math"]) as only:
        program()
    assert names(only) == ["math.hypot"]


def test_matches_are_recomputed_for_every_filter():
    def calls(**options):
        with marey.profile(with_stack=True, **options) as prof:
            app["outer"]()
            math.hypot(4, 6)
        return {name for name in functions(prof) if name in ("outer", "math.hypot")}

    assert calls() == {"outer", "math.hypot"}
    assert calls(exclude=["shop"]) == {"math.hypot"}
    assert calls() == {"outer", "math.hypot"}
    assert calls(exclude=["math"]) == {"outer"}
    assert calls(include=["nothing"]) == set()
    assert calls(include=["shop", "math"]) == {"outer", "math.hypot"}


def test_the_main_module_matches_main_and_its_own_name(run_python):
    text = """
import marey
from marey import _marey  # private: count_as_program: what the command calls
def work(): pass
found = []
for pattern in ("__main__", "program", "program.py", "other"):
    with marey.profile(with_stack=True, c_calls=False, include=[pattern]) as prof:
        work()
    found.append(sum(event.name.endswith(": work") for event in prof.events()))
print(found)
"""
    assert run_python(text) == "[1, 1, 1, 0]\n"


def test_filters_without_calls_are_ignored_with_a_warning():
    with pytest.warns(UserWarning, match="include, max_depth ignored: calls are recorded only if with_stack") as found:
        marey.profile(include=["shop"], max_depth=3)
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        marey.profile(include=(), max_depth=0)
        marey.profile(with_stack=True, include=["shop"])


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"include": "shop"}, TypeError, "include must be a sequence"),
        ({"exclude": b"shop"}, TypeError, "exclude must be a sequence"),
        ({"exclude": 3}, TypeError, "exclude must be a sequence"),
        ({"include": ["a", 3]}, TypeError, r"include must be a sequence of str, not \['a', 3\]"),
        ({"include": [""]}, ValueError, "include: the pattern '' is empty"),
        ({"exclude": ["a[b"]}, ValueError, r"exclude: the pattern 'a\[b' has an unclosed '\['"),
        ({"exclude": ["a\0b"]}, ValueError, "exclude: the pattern .* contains a NUL"),
        ({"max_depth": -1}, ValueError, "max_depth"),
        ({"max_depth": 1 << 40}, ValueError, "max_depth"),
        ({"max_depth": 10**30}, ValueError, "max_depth must be .* 4294967295"),
        ({"max_depth": 1.5}, TypeError, "max_depth"),
        ({"call_budget": -1}, ValueError, "call_budget"),
        ({"call_budget": 10**30}, ValueError, "call_budget must be .* 18446744073709551615"),
        ({"call_budget": -(10**5000)}, ValueError, "call_budget must"),
        ({"call_budget": "many"}, TypeError, "call_budget"),
        ({"max_bytes": 10**30}, ValueError, "max_bytes must be .* 18446744073709551615"),
        ({"max_bytes": -1}, ValueError, "max_bytes"),
        ({"max_bytes": "1 GiB"}, TypeError, "max_bytes"),
        ({"min_duration_us": 10**5000}, ValueError, "min_duration_us"),
        ({"min_duration_us": -0.5}, ValueError, "min_duration_us"),
        ({"min_duration_us": float("nan")}, ValueError, "min_duration_us"),
        ({"min_duration_us": "10us"}, TypeError, "min_duration_us"),
        ({"fold_libraries": "yes"}, TypeError, "fold_libraries must be True or False, not 'yes'"),
        ({"call_lines": "no"}, TypeError, "call_lines must be True or False, not 'no'"),
    ],
)
def test_errors_name_the_invalid_option(options, error, text):
    with pytest.raises(error, match=text):
        marey.profile(with_stack=True, **options).start()
    session = marey.Session()
    with pytest.raises((TypeError, ValueError)) as found:
        session.start(with_stack=True, **options)
    if error is ValueError:
        assert found.type is ValueError and found.match(text)
    assert not session.is_running


# ---- libraries

library = call_trees.make_module(
    "lib.tools",
    "/opt/env/lib/python3/site-packages/lib/tools.py",
    """
def enter(callback=None):
    math.hypot(4, 6)
    inner(callback)

def inner(callback):
    if callback is not None:
        callback()
""",
    math=math,
)


@MODES
def test_only_outermost_library_calls_are_recorded(c_calls):
    def back():
        math.hypot(4, 6)
        library["enter"]()

    def program():
        library["enter"](back)

    with marey.profile(with_stack=True, c_calls=c_calls, fold_libraries=True) as prof:
        program()
    c_call = (("hypot", ()),) if c_calls else ()
    (tree,) = call_trees.recorded(prof, program, c_calls)
    back_line = back.__code__.co_firstlineno
    assert tree[1] == (("enter:2", ((f"{back.__code__.co_qualname}:{back_line}", (*c_call, ("enter:2", ()))),)),)


@MODES
@pytest.mark.parametrize("pattern", ["lib", "lib.tools", "site-packages/lib/*.py"])
def test_a_library_can_count_as_the_program(c_calls, pattern):
    def program():
        library["enter"]()

    _marey.count_as_program([pattern, "other"])
    try:
        with marey.profile(with_stack=True, c_calls=c_calls, fold_libraries=True) as prof:
            program()
    finally:
        _marey.count_as_program([])
    c_call = (("hypot", ()),) if c_calls else ()
    (tree,) = call_trees.recorded(prof, program, c_calls)
    assert tree[1] == (("enter:2", (*c_call, ("inner:6", ()))),)


def test_the_standard_library_and_frozen_modules_are_libraries():
    import json

    def program():
        json.loads("[1]")
        import colorsys  # noqa: F401

    sys.modules.pop("colorsys", None)
    with marey.profile(with_stack=True, c_calls=False, fold_libraries=True) as prof:
        program()
    (tree,) = call_trees.recorded(prof, program)
    (loads, *imports) = tree[1]
    assert loads[0].startswith("loads:") and loads[1] == ()
    assert imports and all(call[1] == () for call in imports)


# ---- depth


@MODES
def test_calls_deeper_than_the_limit_are_left_out(c_calls):
    def down(n):
        math.hypot(4, n)
        if n:
            down(n - 1)

    with marey.profile(with_stack=True, c_calls=c_calls, max_depth=3) as prof:
        down(10)
        down(1)
    found = [name.rpartition(".")[2] for name in functions(prof) if name.endswith(("down", "hypot"))]
    each = ["down", "hypot"] if c_calls else ["down"]
    assert found == each * 5


def test_depth_is_counted_on_each_thread():
    def down(n):
        if n:
            down(n - 1)

    with marey.profile(with_stack=True, c_calls=False, include=["test_call_filters"], max_depth=4) as prof:
        down(10)
        call_trees.in_thread(lambda: down(10))
    assert sum(name.endswith("down") for name in functions(prof)) == 4 + 3


# ---- duration


@MODES
def test_short_calls_are_left_out_and_their_ranges_stay_in_place(c_calls):
    def quick():
        math.hypot(4, 6)

    def marked():
        with marey.record_function("in a quick one"):
            pass

    def slow():
        quick()
        marked()
        time.sleep(0.05)  # the filter is about durations: this call must last longer than min_duration_us
        quick()

    with marey.profile(with_stack=True, c_calls=c_calls, min_duration_us=20000) as prof:
        slow()
        marked()
        slow()
    rows = call_trees.rows(prof)
    program = [row for row in rows if row["name"].endswith(("quick", "marked", "slow", "a quick one", ".hypot"))]
    assert [row["name"].rpartition(".")[2] for row in program] == [
        "slow",
        "in a quick one",
        "in a quick one",
        "slow",
        "in a quick one",
    ]
    parents = [rows[row["parent"]]["name"].rpartition(".")[2] for row in program if row["name"] == "in a quick one"]
    assert [parent == "slow" for parent in parents] == [True, False, True]
    assert all(row["flags"] == 0 for row in program)
    if c_calls:
        assert names(prof).count("time.sleep") == 2


def test_short_calls_deep_down_are_left_out_too():
    def down(n):
        if n:
            down(n - 1)

    with marey.profile(with_stack=True, c_calls=False, min_duration_us=5_000_000) as prof:
        down(600)
        with marey.record_function("after"):
            pass
    assert not any(name.endswith("down") for name in functions(prof))
    assert not [problem for problem in prof.trace.problems if problem[0] == "dropped"]
    assert names(prof).count("after") == 1


# ---- budget


def hook_is_out():
    if sys.version_info >= (3, 12):
        return all(sys.monitoring.get_tool(tool) != "marey" for tool in (2, 3, 4))
    return sys.getprofile() is None


@MODES
def test_recording_of_calls_ends_when_the_budget_is_spent(c_calls):
    def leaf():
        pass

    prof = marey.profile(with_stack=True, c_calls=c_calls, include=["test_call_filters"], call_budget=100)
    prof.start()
    for _ in range(99):
        leaf()

    def last():
        leaf()
        for _ in range(1000):
            leaf()
        assert hook_is_out()

    last()
    with marey.record_function("later"):
        leaf()
    prof.stop()
    found = [name for name in functions(prof) if name.endswith(("leaf", "last"))]
    assert len(found) == 100 and found[-1].endswith("last")
    assert [text for code, text, _ in prof.trace.problems if code == "python_calls_ended"]
    (later,) = [row for row in call_trees.rows(prof) if row["name"] == "later"]
    rows = call_trees.rows(prof)
    assert later["parent"] is None or not rows[later["parent"]]["name"].endswith("last")
    with marey.profile(with_stack=True, c_calls=c_calls, include=["test_call_filters"], call_budget=100) as again:
        leaf()
    assert sum(name.endswith("leaf") for name in functions(again)) == 1
    assert not again.trace.problems


@MODES
def test_a_budget_spent_with_calls_open_on_other_threads_is_harmless(c_calls, tmp_path):
    go, done = threading.Event(), threading.Event()

    def waits():
        go.wait()
        done.wait()

    def leaf():
        pass

    thread = threading.Thread(target=waits)
    with marey.profile(with_stack=True, c_calls=c_calls, call_budget=1000) as prof:
        thread.start()
        go.set()
        for _ in range(3000):
            leaf()
        done.set()
        thread.join()
        with marey.record_function("later"):
            pass
    assert any(name.endswith("waits") for name in functions(prof))
    assert names(prof).count("later") == 1
    prof.trace.save(tmp_path / "trace.marey")
    check = [sys.executable, "-m", "marey", "validate", tmp_path / "trace.marey"]
    found = subprocess.run(check, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


def test_short_calls_do_not_count():
    def leaf():
        pass

    def slow():
        time.sleep(0.02)  # longer than min_duration_us

    with marey.profile(
        with_stack=True, c_calls=False, include=["test_call_filters"], min_duration_us=5000, call_budget=10
    ) as prof:
        for _ in range(100):
            leaf()
        slow()
    assert [name.rpartition(".")[2] for name in functions(prof) if name.endswith(("leaf", "slow"))] == ["slow"]
    assert not prof.trace.problems


# ---- several sessions


@MODES
def test_sessions_with_different_filters_share_all_calls_and_report_it(c_calls):
    with marey.profile(with_stack=True, c_calls=c_calls, include=["shop"]) as narrow:
        app["outer"]()
        other["call"](time.monotonic)
        with marey.profile(with_stack=True, c_calls=c_calls, include=["stock"], max_depth=1) as second:
            app["outer"]()
            other["call"](time.monotonic)
        app["outer"]()
        other["call"](time.monotonic)
    program = ("outer", "inner", "leaf", "call")
    trio = ["outer", "inner", "leaf"]
    assert [name for name in functions(narrow) if name in program] == [*trio, *trio, "call", *trio]
    assert [name for name in functions(second) if name in program] == [*trio, "call"]
    for prof in (narrow, second):
        assert [code for code, _, _ in prof.trace.problems] == ["python_calls_of_others"]


def test_equal_filters_are_not_reported():
    with (
        marey.profile(with_stack=True, exclude=["shop"]) as outer,
        marey.profile(with_stack=True, exclude=["shop"]) as inner,
    ):
        app["outer"]()
        other["call"](time.monotonic)
    for prof in (outer, inner):
        assert "outer" not in functions(prof) and "call" in functions(prof)
        assert not prof.trace.problems


def test_deep_recursion_of_excluded_calls_works_as_without_marey(run_python):
    """recording.md rule 24."""
    for c_calls in (False, True):
        text = f"""
import sys, marey
sys.setrecursionlimit(100000)
def down(n):
    return 0 if n == 0 else 1 + down(n - 1)
for options in ({{"exclude": ["__main__"]}}, {{"max_depth": 5}}, {{"min_duration_us": 1e9}}, {{"call_lines": True}}):
    with marey.profile(with_stack=True, c_calls={c_calls}, **options) as prof:
        print(down(60000))
"""
        assert run_python(text) == "60000\n" * 4
