"""The tracer together with other hooks: of the program, of other tools, and of overlapping sessions."""

import cProfile
import gc
import sys
import threading
import types
import warnings

import call_trees
import pytest
from call_trees import MODES, count, leaf, names, problems, run_program
from running import recorded

import marey

uses_profile_hook = pytest.mark.skipif(sys.version_info >= (3, 12), reason="calls come through sys.monitoring")
uses_monitoring = pytest.mark.skipif(sys.version_info < (3, 12), reason="there is no sys.monitoring")


def hook(frame, event, arg):
    pass


@pytest.fixture
def no_hooks():
    yield
    sys.setprofile(None)
    threading.setprofile(None)


def test_a_foreign_profile_hook_is_not_replaced(no_hooks):
    """P6"""
    sys.setprofile(hook)
    if sys.version_info < (3, 12):
        with pytest.raises(marey.Error, match="profile hook"):
            marey.profile(with_stack=True).start()
    with marey.profile(with_stack=True, c_calls=False) as prof:
        leaf()
    assert sys.getprofile() is hook
    assert count(prof, "leaf") == 1


@uses_profile_hook
def test_a_foreign_profile_hook_on_another_thread_stays_and_is_reported():
    ready, go = threading.Event(), threading.Event()
    seen = []

    def other():
        sys.setprofile(hook)
        ready.set()
        go.wait()
        seen.append(sys.getprofile())

    thread = threading.Thread(target=other)
    thread.start()
    ready.wait()
    with marey.profile(with_stack=True) as prof:
        leaf()
        go.set()
        thread.join()
    assert seen == [hook]
    assert count(prof, "leaf") == 1
    assert "python_profile_hook" in problems(prof)


@MODES
def test_a_profile_hook_that_the_program_sets_while_recording_stays(no_hooks, c_calls):
    def sets():
        leaf()
        sys.setprofile(hook)
        leaf()

    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        sets()
    assert sys.getprofile() is hook
    sys.setprofile(None)
    is_replaced = sys.version_info < (3, 12) and bool(c_calls)
    assert count(prof, "leaf") == (1 if is_replaced else 2)
    assert ("python_profile_hook" in problems(prof)) == is_replaced


@uses_profile_hook
@pytest.mark.parametrize("replaces", ["cProfile.run('work()', '/dev/null')", "sys.setprofile(None)"])
def test_a_replaced_hook_is_reported(tmp_path, replaces):
    script = tmp_path / "x.py"
    script.write_text(f"import cProfile, sys\ndef work(): pass\n{replaces}\nwork()\n")
    for options in (["--c-calls"], ["--no-c-calls"]):
        _, errors, code = recorded([script], tmp_path, run_options=["-q", "--force", "-o", "x.marey", *options])
        is_replaced = options == ["--c-calls"]
        assert code == 0 and ("has replaced Marey's profile hook" in errors) == is_replaced
        codes = [code for code, *_ in marey.load(tmp_path / "x.marey").problems]
        assert codes == ["python_profile_hook"] * is_replaced


@MODES
def test_the_standard_library_profiler_works_while_recording(c_calls):
    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        leaf()
        inner = cProfile.Profile()
        if sys.version_info < (3, 12):
            inner.enable()
            leaf()
            inner.disable()
        else:
            inner.runcall(leaf)
    assert any(entry.callcount == 1 for entry in inner.getstats() if getattr(entry.code, "co_name", "") == "leaf")
    assert count(prof, "leaf") >= 1
    assert sys.getprofile() is None


@MODES
def test_a_program_profile_hook_for_new_threads_works_while_recording(no_hooks, c_calls):
    seen = []
    threading.setprofile(lambda frame, event, arg: seen.append(frame.f_code.co_name))
    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        call_trees.in_thread(leaf)
        leaf()
    assert "leaf" in seen
    assert count(prof, "leaf") >= 1


@MODES
def test_a_trace_function_works_while_recording(c_calls):
    seen = []

    def trace(frame, event, arg):
        seen.append((frame.f_code.co_name, event))
        return trace

    def traced():
        sys.settrace(trace)
        leaf()
        sys.settrace(None)

    before = sys.gettrace()
    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        traced()
    sys.settrace(before)
    assert ("leaf", "call") in seen
    assert count(prof, "leaf") == 1


@uses_monitoring
def test_tool_ids_of_other_tools_are_left_alone():
    monitoring = sys.monitoring
    monitoring.use_tool_id(3, "other")
    try:
        with marey.profile(with_stack=True) as prof:
            leaf()
        assert monitoring.get_tool(3) == "other"
    finally:
        monitoring.free_tool_id(3)
    assert count(prof, "leaf") == 1
    assert [monitoring.get_tool(i) for i in (2, 3, 4)] == [None] * 3


@uses_monitoring
def test_without_a_free_tool_id_there_are_no_calls_and_a_problem():
    monitoring = sys.monitoring
    for i in (2, 3, 4):
        monitoring.use_tool_id(i, "other")
    try:
        with marey.profile(with_stack=True) as prof:
            leaf()
        assert [monitoring.get_tool(i) for i in (2, 3, 4)] == ["other"] * 3
    finally:
        for i in (2, 3, 4):
            monitoring.free_tool_id(i)
    assert count(prof, "leaf") == 0
    assert "python_calls_missing" in problems(prof)


@uses_monitoring
def test_a_tool_id_that_the_program_takes_over_is_not_taken_back():
    monitoring = sys.monitoring
    with marey.profile(with_stack=True) as prof:
        leaf()
        (ours,) = [i for i in range(6) if monitoring.get_tool(i) == "marey"]
        monitoring.free_tool_id(ours)
        monitoring.use_tool_id(ours, "thief")
    try:
        assert monitoring.get_tool(ours) == "thief"
    finally:
        monitoring.free_tool_id(ours)
    assert count(prof, "leaf") == 1
    assert "python_calls_missing" in problems(prof)


@uses_monitoring
def test_events_restarted_by_another_tool_are_harmless():
    def calls():
        leaf()
        sys.monitoring.restart_events()
        leaf()

    with marey.profile(with_stack=True) as prof:
        calls()
    assert count(prof, "leaf") == 2


@MODES
def test_the_hook_is_removed_with_the_last_session(c_calls):
    """P7"""
    outer = marey.profile(with_stack=True, c_calls=c_calls)
    inner = marey.profile(with_stack=True, c_calls=c_calls)
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
    if sys.version_info >= (3, 12):
        assert "marey" not in [sys.monitoring.get_tool(i) for i in range(6)]


@MODES
def test_a_session_that_ends_while_a_thread_is_registered_is_harmless(c_calls, monkeypatch):
    """At a thread's first event, greenlet's callback is read: code that runs then may end tracing."""
    asked = []

    def gettrace():
        if not asked:
            asked.append(True)
            del sys.modules["greenlet"]
            prof.stop()

    library = types.ModuleType("greenlet")
    library.gettrace = gettrace
    library.settrace = lambda callback: None
    monkeypatch.setitem(sys.modules, "greenlet", library)
    del library
    prof = marey.profile(with_stack=True, c_calls=c_calls)
    prof.start()
    leaf()
    if not asked:  # the frame hook of 3.11 does not read it
        prof.stop()
    with marey.profile(with_stack=True, c_calls=c_calls) as after:
        leaf()
    assert count(after, "leaf") == 1
    assert not [row for row in call_trees.rows(after) if row["name"].endswith(": leaf") and row["flags"]]


@MODES
def test_a_deleted_profiler_warns_and_unhooks(c_calls):
    def drop():
        prof = marey.profile(with_stack=True, c_calls=c_calls)
        prof.start()
        leaf()

    with pytest.warns(ResourceWarning, match="deleted"):
        drop()
        gc.collect()
    assert not marey.profiler.is_enabled()
    assert sys.getprofile() is None
    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        leaf()
    assert count(prof, "leaf") == 1


def test_a_deleted_profiler_raises_nothing_if_warnings_are_errors(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        marey.profile(with_stack=True).start()
        gc.collect()
    assert "deleted" in capsys.readouterr().err


def test_calls_of_a_program_in_a_folder_named_like_the_package_are_recorded(tmp_path):
    folder = tmp_path / "marey"
    folder.mkdir()
    (folder / "script.py").write_text("def in_a_folder_called_marey():\n    pass\n")
    scope = {}
    exec(compile((folder / "script.py").read_text(), str(folder / "script.py"), "exec"), scope)
    with marey.profile(with_stack=True) as prof:
        scope["in_a_folder_called_marey"]()
    assert count(prof, "in_a_folder_called_marey") == 1
    assert not [name for name in names(prof) if "_profile.py" in name]


def test_subinterpreters_are_rejected_with_a_clear_error():
    text = run_program(
        """
        import sys
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        program = '''
        try:
            import marey
            marey.profile(with_stack=True).start()
        except (ImportError, RuntimeError) as error:
            print("refused:", error, flush=True)
        else:
            print("started", flush=True)
        '''
        import textwrap
        interpreter = interpreters.create()
        error = interpreters.run_string(interpreter, textwrap.dedent(program))
        if error is not None: print("refused:", error)
        interpreters.destroy(interpreter)
        """
    )
    assert text.startswith("refused:")


def test_a_subinterpreter_that_imports_the_package_leaves_the_main_one_alone():
    text = run_program(
        """
        import marey
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        def leaf(): pass
        program = "try: import marey" + chr(10) + "except ImportError as error: print(error, flush=True)"
        for _ in range(2):
            interpreter = interpreters.create()
            interpreters.run_string(interpreter, program)
            interpreters.destroy(interpreter)
            with marey.profile(with_stack=True) as prof: leaf()
            print(sum(event.name.endswith(": leaf") for event in prof.events()), flush=True)
        """
    )
    assert text == "module marey._marey does not support loading in subinterpreters\n1\n" * 2


@MODES
def test_the_profilers_own_calls_are_not_in_the_trace(c_calls):
    """The second session, since the first one imports the modules that it needs."""
    for _ in range(2):
        with marey.profile(with_stack=True, c_calls=c_calls) as prof:
            leaf()
    own = [event.name for event in prof.events() if not event.name.endswith((": leaf", "Python GC"))]
    me = "test_the_profilers_own_calls_are_not_in_the_trace"
    position = max(i for i, name in enumerate(own) if name.endswith(me))
    assert own[position + 1 :] == []


@MODES
def test_a_range_before_any_call_is_inside_the_function_that_opened_it(c_calls):
    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        with marey.record_function("first"):
            leaf()
    everything = call_trees.rows(prof)
    (first,) = [row for row in everything if row["name"] == "first"]
    me = "test_a_range_before_any_call_is_inside_the_function_that_opened_it"
    assert everything[first["parent"]]["name"].endswith(me)
    (call,) = [row for row in everything if row["name"].endswith(": leaf")]
    assert everything[call["parent"]]["name"] == "first"


AUDITED = """
import sys, threading, marey

threads = []
def end_one(event, arguments):
    if event in ("sys.setprofile", "sys.monitoring.register_callback"):
        {what}

def leaf():
    pass

class Waiting:
    def __init__(self):
        self.go = threading.Event()
        self.thread = threading.Thread(target=self.go.wait)
        self.thread.start()

    def end(self):
        self.go.set()
        self.thread.join()

threads += [Waiting() for _ in range(20)]
sys.addaudithook(end_one)
for c_calls in (False, True):
    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        leaf()
        done = threading.Thread(target=leaf)
        done.start()
        done.join()
    names = [event.name.rpartition(": ")[2] for event in prof.events()]
    print(names.count("leaf"), sorted({{problem[0] for problem in prof.trace.problems}}))
while threads:
    threads.pop().end()
"""


def test_an_audit_hook_may_end_threads_while_hooks_are_set(run_python):
    assert run_python(AUDITED.format(what="threads and threads.pop(0).end()")) == "2 []\n2 []\n"


def test_ranges_of_a_thread_recorded_while_hooks_are_set_are_inside_its_calls(run_python):
    assert run_python(AUDITED.format(what="import gc; gc.collect()")) == "2 []\n2 []\n"


@uses_profile_hook
def test_an_audit_hook_may_refuse_the_hook(run_python):
    printed = run_python(AUDITED.format(what='raise RuntimeError("no")'))
    assert printed == "2 []\n0 ['python_calls_missing']\n"
