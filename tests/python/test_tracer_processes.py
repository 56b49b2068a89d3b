"""The tracer in separate programs: deep stacks, forks, and all kinds of exits."""

import os
import sys

import pytest
from call_trees import MODES, run_program


@MODES
def test_very_deep_recursion_works_as_without_marey(c_calls):
    """P40; recording.md rule 24."""
    assert (
        run_program(f"""
        import sys, marey
        sys.setrecursionlimit(100000)
        def down(n):
            return 0 if n == 0 else 1 + down(n - 1)
        def leaf(): pass
        with marey.profile(with_stack=True, c_calls={c_calls!r}) as prof:
            print(down(60000))
            leaf()
        print(sum(e.name.endswith(": leaf") for e in prof.events()))
        """)
        == "60000\n1\n"
    )


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="sys.monitoring takes no C stack")
def test_calls_lost_in_deep_recursion_are_reported_without_their_number():
    """Every call within one that is too deep is missing; only that one is seen."""
    said = (
        "deep {} were not recorded (their number is unknown): more than half of the thread's C stack was in use "
        "(--c-calls, in Python c_calls=True, records all of them; so does a larger stack, such as ulimit -s unlimited)"
    )
    assert (
        run_program("""
        import sys, marey
        sys.setrecursionlimit(100000)
        def down(n):
            return 0 if n == 0 else 1 + down(n - 1)
        for often in (1, 3):
            with marey.profile(with_stack=True, c_calls=False) as prof:
                for _ in range(often):
                    down(60000)
            print(*(text for _, text, *_ in prof.trace.problems))
        """)
        == f"calls made within 1 {said.format('call')}\ncalls made within 3 {said.format('calls')}\n"
    )


def test_deep_recursion_is_recorded_completely_with_c_calls():
    """The advice of the message about calls that are missing."""
    assert (
        run_program("""
        import sys, marey
        sys.setrecursionlimit(100000)
        def down(n):
            return 0 if n == 0 else 1 + down(n - 1)
        with marey.profile(with_stack=True, c_calls=True) as prof:
            for _ in range(3):
                down(50000)
        print(sum(e.name.endswith(": down") for e in prof.events()), *prof.trace.problems)
        """)
        == "150003\n"
    )


@pytest.mark.skipif(sys.version_info[:2] != (3, 12), reason="other versions count levels of C in other ways")
def test_recursion_through_c_is_limited_only_as_documented():
    """docs/reference/python_tracer.md, Recursion depth."""
    printed = run_program("""
        import functools, sys, threading, marey
        sys.setrecursionlimit(100000)
        threading.stack_size(512 << 20)  # some builds of Python end their own program before they count to their limit
        ways = {
            "sum": lambda go: sum(map(go, [1])),
            "next": lambda go: next(map(go, [1])),
            "sorted": lambda go: sorted([1, 2], key=go),
            "getattr": lambda go: getattr(type("C", (), {"a": property(go)})(), "a"),
            "isinstance": lambda go: isinstance(1, type("M", (type,), {"__instancecheck__": go})("C", (), {})),
            "exec": lambda go: exec("go()", {"go": go}),
            "len": lambda go: len(type("C", (), {"__len__": go})()),
            "list": lambda go: list(map(go, [1])),
            "any": lambda go: any(map(go, [1])),
            "max": lambda go: max([1, 2], key=go),
            "reduce": lambda go: functools.reduce(go, [1, 2]),
            "partial": lambda go: functools.partial(go)(),
            "join": lambda go: "".join(map(go, [1])),
        }
        def depth(way):
            levels = 0
            def go(*_):
                nonlocal levels
                levels += 1
                return way(go)
            try:
                go()
            except RecursionError:
                return levels
        def compare():
            plain = {name: depth(way) for name, way in ways.items()}
            for c_calls in (False, True):
                with marey.profile(with_stack=True, c_calls=c_calls):
                    recorded = {name: depth(way) for name, way in ways.items()}
                print(*(name for name in ways if recorded[name] < plain[name] - 1))
        thread = threading.Thread(target=compare)
        thread.start()
        thread.join()
        """)
    assert printed == "\nsum next sorted getattr isinstance exec len\n"


@MODES
def test_small_stacks_allow_the_same_depth_as_without_marey(c_calls):
    """recording.md rule 24."""
    assert (
        run_program(f"""
        import sys, threading, marey
        threading.stack_size(256 * 1024)
        def down(n):
            return 0 if n == 0 else 1 + down(n - 1)
        with marey.profile(with_stack=True, c_calls={c_calls!r}) as prof:
            thread = threading.Thread(target=lambda: print(down(900)))
            thread.start()
            thread.join()
        """)
        == "900\n"
    )


def test_a_session_running_at_the_end_of_the_program_is_harmless():
    """P40"""
    for c_calls in (False, True, "all"):
        assert (
            run_program(f"""
            import marey
            class Late:
                def __del__(self): print("late")
            keep = Late()
            prof = marey.profile(with_stack=True, c_calls={c_calls!r})
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
        import os, sys, marey
        def leaf(): pass
        with marey.profile(with_stack=True, c_calls={c_calls!r}) as prof:
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


@pytest.mark.skipif(
    "MAREY_TEST_SANITIZER" in os.environ,
    reason="a lock of AddressSanitizer's allocator may be held by a thread that the child does not have",
)
@MODES
def test_forks_while_threads_come_and_go_do_not_hang(c_calls):
    """Locks that another thread held when the process forked are free in the child."""
    assert (
        run_program(f"""
        import os, threading, marey
        def leaf(): pass
        stop = False
        def churn():
            while not stop:
                thread = threading.Thread(target=leaf)
                thread.start()
                thread.join()
        threads = [threading.Thread(target=churn) for _ in range(3)]
        with marey.profile(with_stack=True, c_calls={c_calls!r}) as prof:
            for thread in threads: thread.start()
            for _ in range(30):
                pid = os.fork()
                if pid == 0:
                    leaf()
                    with marey.profile(with_stack=True, c_calls={c_calls!r}) as own:
                        leaf()
                    os._exit(sum(e.name.endswith(": leaf") for e in own.events()))
                assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
            stop = True
            for thread in threads: thread.join()
        print("done")
        """)
        == "done\n"
    )


@MODES
def test_a_forked_child_has_no_hook(c_calls):
    assert (
        run_program(f"""
        import os, sys, marey
        def tools(): return [sys.monitoring.get_tool(i) for i in range(6)] if sys.version_info >= (3, 12) else []
        with marey.profile(with_stack=True, c_calls={c_calls!r}) as prof:
            pid = os.fork()
            if pid == 0:
                os.write(1, repr((sys.getprofile(), "marey" in tools())).encode())
                os._exit(0)
            os.waitpid(pid, 0)
            print()
            print("marey" in tools() or sys.version_info < (3, 12))
        """)
        == "(None, False)\nTrue\n"
    )


@MODES
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing_processes_run_as_without_marey(c_calls, method, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(f"""
import multiprocessing, marey
def square(n): return n * n
if __name__ == "__main__":
    with marey.profile(with_stack=True, c_calls={c_calls!r}) as prof:
        with multiprocessing.get_context({method!r}).Pool(2) as pool:
            print(pool.map(square, range(5)))
""")
    assert run_program(f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')") == "[0, 1, 4, 9, 16]\n"


@MODES
def test_subprocesses_and_exec_work(c_calls):
    assert (
        run_program(f"""
        import os, subprocess, sys, marey
        with marey.profile(with_stack=True, c_calls={c_calls!r}) as prof:
            print(subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, text=True).stdout, end="")
            print(subprocess.run(["true"], preexec_fn=lambda: None).returncode, flush=True)
            pid = os.fork()
            if pid == 0:
                os.execv(sys.executable, [sys.executable, "-c", "print(2)"])
            os.waitpid(pid, 0)
        """)
        == "1\n0\n2\n"
    )


@MODES
@pytest.mark.parametrize(
    ("end", "code"),
    [("sys.exit(3)", 3), ("os._exit(4)", 4), ("raise SystemExit(5)", 5), ("1 / 0", 1), ("os.abort()", -6)],
)
def test_a_program_ends_as_without_marey_while_a_session_runs(c_calls, end, code):
    text = run_program(
        f"""
        import os, sys, threading, time, marey
        prof = marey.profile(with_stack=True, c_calls={c_calls!r})
        prof.start()
        threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
        print("before", flush=True)
        {end}
        """,
        code,
    )
    assert text == "before\n"


@MODES
def test_daemon_threads_running_at_the_end_are_harmless(c_calls):
    assert (
        run_program(f"""
        import threading, marey
        def leaf(): return 1
        def forever():
            while True: leaf(); len([])
        threads = [threading.Thread(target=forever, daemon=True) for _ in range(3)]
        for thread in threads[:1]: thread.start()
        prof = marey.profile(with_stack=True, c_calls={c_calls!r}, max_bytes=1 << 24, policy="ring")
        prof.start()
        for thread in threads[1:]: thread.start()
        for _ in range(1000): leaf()
        print("end")
        """)
        == "end\n"
    )


@MODES
def test_python_signal_handlers_are_ordinary_calls(c_calls):
    assert (
        run_program(f"""
        import os, signal, marey
        def handler(number, frame): pass
        signal.signal(signal.SIGUSR1, handler)
        def kills():
            os.kill(os.getpid(), signal.SIGUSR1)
            for _ in range(100): pass
        with marey.profile(with_stack=True, c_calls={c_calls!r}) as prof:
            kills()
        (event,) = [e for e in prof.events() if e.name.endswith(": handler")]
        print([parent for parent in event.stack if "kills" in parent] != [])
        signal.signal(signal.SIGALRM, lambda *_: 1 / 0)
        def spins():
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            while True: len([])
        with marey.profile(with_stack=True, c_calls={c_calls!r}, max_bytes=1 << 24, policy="ring") as prof:
            try: spins()
            except ZeroDivisionError: print("caught")
        """)
        == "True\ncaught\n"
    )
