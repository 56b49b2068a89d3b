"""Captured tracebacks of Python frames: their contents, their lifetime and their text."""

import copy
import gc
import itertools
import json
import pickle
import sys
import threading
import traceback
import types
import weakref

import pytest

import marey
from marey import CapturedTraceback, _marey  # private: symbolize_tracebacks: many at once, as PyTorch calls it


def names(tb):
    return [frame.name for frame in tb.summary()]


def fresh_function(body="return marey.CapturedTraceback.extract()", **names_in_it):
    """Return a function with code that has no other references, and a weak reference to that code."""
    scope = {"marey": marey, **names_in_it}
    exec(f"def fresh(*args):\n    {body}", scope)
    function = scope.pop("fresh")
    return function, weakref.ref(function.__code__)


def test_the_summary_is_that_of_the_standard_library():
    """S1, S2, S14: outermost first, with the lines that ran at the capture."""

    def inner():
        return (
            CapturedTraceback.extract(),
            traceback.extract_stack(),
        )

    def outer():
        return inner()

    ours, theirs = outer()
    mine = ours.summary()
    assert isinstance(mine, traceback.StackSummary)
    assert [(f.filename, f.name) for f in mine] == [(f.filename, f.name) for f in theirs]
    assert [f.lineno for f in mine][:-1] == [f.lineno for f in theirs][:-1]
    assert mine[-1].lineno == theirs[-1].lineno - 1
    assert ours.format()[-2] == traceback.format_list(theirs)[-2]


def test_lines_are_those_of_the_capture_although_the_function_has_continued():
    """S2: an instruction is captured, and its line found later."""

    def steps():
        yield CapturedTraceback.extract()
        yield CapturedTraceback.extract()

    first, second = steps()
    assert second.summary()[-1].lineno - first.summary()[-1].lineno == 1


def test_skip_leaves_out_the_innermost():
    """S14"""

    def inner(skip):
        return CapturedTraceback.extract(skip=skip)

    assert names(inner(0))[-2:] == ["test_skip_leaves_out_the_innermost", "inner"]
    assert names(inner(1)) == names(inner(0))[:-1]
    assert names(inner(10**6)) == []
    with pytest.raises(ValueError, match="got -1"):
        CapturedTraceback.extract(skip=-1)
    with pytest.raises(marey.Error, match="cannot be used with cpp"):
        CapturedTraceback.extract(cpp=True, skip=1)
    with pytest.raises(TypeError, match="'depth'"):
        CapturedTraceback.extract(depth=1)
    with pytest.raises(TypeError, match="only keyword"):
        CapturedTraceback.extract(True)


def test_frames_of_generators_coroutines_classes_and_comprehensions_are_captured():
    """S2"""

    def numbers():
        yield CapturedTraceback.extract()

    async def task():
        return next(numbers())

    class Body:
        try:
            task().send(None)
        except StopIteration as stop:
            captured = stop.value

    assert names(Body.captured)[-3:] == ["Body", "task", "numbers"]


def test_any_depth_is_captured():
    """S1"""

    def down(n):
        return CapturedTraceback.extract() if n == 0 else down(n - 1)

    before = len(names(CapturedTraceback.extract()))
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(5000)
        for depth in (62, 63, 64, 65, 3000):
            assert len(names(down(depth))) == before + depth + 1
    finally:
        sys.setrecursionlimit(limit)


def test_many_are_symbolized_together_and_cleaned_up_ones_have_no_frames():
    """S11, S14"""

    def capture():
        return CapturedTraceback.extract()

    tbs = [capture() for _ in range(3)]
    tbs[1].cleanup()
    tbs[1].cleanup()
    assert [bool(tb) for tb in tbs] == [True] * 3
    texts = CapturedTraceback.format_all(tbs)
    assert texts == [tbs[0].format(), [], tbs[2].format()]
    frames = _marey.symbolize_tracebacks(tbs)
    assert frames[0][0] is frames[2][0]  # a repeated frame is symbolized once
    assert CapturedTraceback.format_all([]) == []
    with pytest.raises(TypeError, match="got int"):
        CapturedTraceback.format_all([tbs[0], 7])


def test_frames_come_as_dicts_innermost_first():
    """S13, S14: such a list goes into JSON as it is."""
    frames = json.loads(json.dumps(CapturedTraceback.extract().symbolize()))
    assert frames[0] == {
        "name": "test_frames_come_as_dicts_innermost_first",
        "filename": __file__,
        "line": sys._getframe().f_lineno - 4,
        "python": True,
        "inlined": False,
    }


def test_pickling_drops_the_frames():
    """S14"""
    copy = pickle.loads(pickle.dumps(CapturedTraceback.extract()))
    assert type(copy) is CapturedTraceback
    assert copy.summary() == [] and copy.format() == [] and copy.symbolize() == []


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_has_the_same_frames_and_an_independent_lifetime(copied):
    tb = CapturedTraceback.extract()
    twin = copied(tb)
    assert type(twin) is CapturedTraceback and twin is not tb
    assert len(twin) > 0 and twin.symbolize() == tb.symbolize()
    tb.cleanup()
    assert len(tb) == 0 and names(twin)[-1] == "test_a_copy_has_the_same_frames_and_an_independent_lifetime"
    assert copied(tb).symbolize() == []


def test_a_copy_of_a_subclass_has_what_was_added_to_it():
    class Marked(CapturedTraceback):
        pass

    tb = Marked.extract()
    tb.words, tb.itself = ["a"], tb
    twin, deep = copy.copy(tb), copy.deepcopy(tb)
    assert type(twin) is type(deep) is Marked and len(twin) == len(deep) == len(tb)
    assert twin.words is tb.words and twin.itself is tb
    assert deep.words == ["a"] and deep.words is not tb.words and deep.itself is deep


def test_a_capture_holds_and_releases_code():
    """S2, S7"""
    function, code = fresh_function()
    tb = function()
    del function
    gc.collect()
    assert code() is not None and names(tb)[-1] == "fresh"
    tb.cleanup()
    gc.collect()  # free-threaded builds release code only then
    assert code() is None


def test_no_reference_is_leaked():
    """S2"""
    function, code = fresh_function()
    before = sys.getrefcount(code())
    for _ in range(100):
        function()
    kept = [function() for _ in range(100)]
    while_kept = sys.getrefcount(code())
    del kept
    after = sys.getrefcount(code())
    assert (while_kept, after) == (before + 100, before)


def test_a_reference_cycle_through_a_traceback_is_collected():
    """S9"""

    class Noted(CapturedTraceback):
        pass

    function, code = fresh_function("return Noted.extract()", Noted=Noted)
    tb = function()
    tb.itself = [tb]
    seen = weakref.ref(tb)
    del function, tb
    assert seen() is not None
    gc.collect()
    assert seen() is None and code() is None


def test_the_collector_visits_code_held_only_by_a_traceback():
    """S9"""
    tb = CapturedTraceback.extract()
    assert gc.is_tracked(tb)
    assert sys._getframe().f_code in gc.get_referents(tb)


def test_a_finalizer_may_capture_while_references_are_released():
    """S7: releasing a code object runs its finalizers."""
    captured = []
    function, code = fresh_function()
    tb = function()
    weakref.finalize(function.__code__, lambda: captured.append(CapturedTraceback.extract()))
    del function
    tb.cleanup()
    gc.collect()  # free-threaded builds release code only then
    assert code() is None and len(captured) == 1
    assert "test_a_finalizer_may_capture_while_references_are_released" in names(captured[0])


def test_threads_capture_symbolize_and_release_at_the_same_time():
    """S6, S11"""
    wrong = []

    def work(number):
        def mine():
            return CapturedTraceback.extract()

        for _ in range(300):
            tbs = list(itertools.starmap(mine, [()] * 5))
            for text in CapturedTraceback.format_all(tbs):
                if "in mine" not in text[-1] or "in work" not in text[-2]:
                    wrong.append(text)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_unusual_names_survive_symbolization():
    """S13"""
    code = compile("def f():\n    return extract()", "caf\udce9.py", "exec")
    scope = {"extract": CapturedTraceback.extract}
    exec(code, scope)
    renamed = types.FunctionType(scope["f"].__code__.replace(co_name="größe"), scope)
    frame = renamed().summary()[-1]
    assert (frame.filename, frame.name, frame.lineno) == ("caf\udce9.py", "größe", 2)


def test_a_forked_child_captures_and_symbolizes(run_python):
    """S17"""
    out = run_python(
        "import os, marey\n"
        "def f(): return marey.CapturedTraceback.extract(cpp=True)\n"
        "f().format()\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    ok = any('in f' in line for line in f().format())\n"
        "    os._exit(0 if ok else 1)\n"
        "print(os.waitpid(pid, 0)[1])\n"
    )
    assert out == "0\n"
