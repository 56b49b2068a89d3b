"""``marey run``: Python programs behave as without it, and all their calls are recorded."""

import os
import shutil
import subprocess
import sys
import zipfile

import pytest
from running import captures, environment, functions, plain, recorded, report, write

import marey

# Each of them behaves the same with and without Marey: output, errors, exit code.
PROGRAMS = {
    "exit_of_c": "import ctypes\nprint('out', flush=True)\nctypes.CDLL(None).exit(4)",
    "arguments": "import sys; print(sys.argv, sys.path[0], __name__, __file__, __spec__, __package__)",
    "main_module": """
        import sys, __main__
        print(__main__ is sys.modules['__main__'], __builtins__.__name__, sorted(k for k in vars(__main__)))
        print(type(__loader__).__name__, __main__.__doc__, __annotations__ if '__annotations__' in globals() else None)
    """,
    "path": "import sys; print(sys.path, sys.executable, sys.prefix)",
    "flags": "import sys; print(sys.flags, sys.warnoptions, sys._xoptions)",
    "exit_number": "import sys; print('out'); sys.exit(3)",
    "exit_text": "import sys; sys.exit('so it ends')",
    "exit_none": "import sys; sys.exit(None)",
    "exit_other": "import sys; sys.exit([1, 2])",
    "exit_large": "import sys; sys.exit(256 + 7)",
    "exit_minus": "import sys; sys.exit(-1)",
    "exit_hard": "import os, sys; print('kept'); sys.stdout.flush(); os._exit(9)",
    "exit_true": "import sys; sys.exit(True)",
    "exception": """
        def inner(x):
            return 1 / x
        def outer():
            inner(0)
        outer()
    """,
    "exception_chain": """
        try:
            {}['key']
        except KeyError as error:
            raise RuntimeError('no key') from error
    """,
    "exception_group": "raise ExceptionGroup('many', [ValueError(1), TypeError(2)])",
    "exception_hook": """
        import sys
        sys.excepthook = lambda kind, value, trace: print('hook', kind.__name__, trace.tb_next)
        1 / 0
    """,
    "syntax_error": "def broken(:\n    pass\n",
    "thread_exit": """
        import sys, threading
        thread = threading.Thread(target=sys.exit, args=(4,)); thread.start(); thread.join(); print('on')
    """,
    "thread_exception": """
        import threading
        def work():
            raise ValueError('in a thread')
        thread = threading.Thread(target=work, name='one'); thread.start(); thread.join(); print('on')
    """,
    "atexit": """
        import atexit
        def say(word): print(word)
        atexit.register(say, 'second'); atexit.register(say, 'first'); print('end')
    """,
    "atexit_exception": "import atexit; atexit.register(lambda: 1 / 0)",
    "destructors": """
        class Thing:
            def __del__(self): print('gone', self.name)
        thing = Thing(); thing.name = 'at the end'
    """,
    "warning": "import warnings; warnings.warn('careful'); warnings.warn('old', DeprecationWarning)",
    "input": "import sys; print(repr(input()), repr(sys.stdin.read()))",
    "pickle": """
        import pickle
        class Point:
            def __init__(self, x): self.x = x
        if __name__ == '__main__':
            data = pickle.dumps(Point(3)); print(data); print(pickle.loads(data).x, Point.__module__)
    """,
    "stack": """
        import sys, traceback
        def show(): traceback.print_stack(file=sys.stdout)
        show()
        print(sys._getframe().f_back)
    """,
    "recursion": """
        def deep(n): return 0 if n == 0 else 1 + deep(n - 1)
        print(deep(900))
        try:
            deep(10 ** 6)
        except RecursionError as error:
            print(error)
    """,
    "asyncio": """
        import asyncio
        async def part(n):
            await asyncio.sleep(0); return n
        async def main(): print(await asyncio.gather(*(part(i) for i in range(5))))
        asyncio.run(main())
    """,
    "profile_hook": """
        import sys
        seen = []
        def hook(frame, event, argument): seen.append((event, frame.f_code.co_name))
        def f(): pass
        sys.setprofile(hook); f(); sys.setprofile(None); print([each for each in seen if each[0] != 'c_return'])
    """,
    "profiler": """
        import cProfile, io, pstats
        def f(): return sum(i for i in range(10))
        profile = cProfile.Profile(); profile.runcall(f)
        out = io.StringIO(); stats = pstats.Stats(profile, stream=out); print(stats.total_calls)
    """,
    "signals": """
        import signal, os
        print([signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)])
        signal.signal(signal.SIGUSR1, lambda number, frame: print('got', number)); os.kill(os.getpid(), signal.SIGUSR1)
    """,
    "killed_by_itself": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "interrupt": "import os, signal; os.kill(os.getpid(), signal.SIGINT); import time; time.sleep(9)",
    "aborted": "import os; os.abort()",
    "spawned": """
        import multiprocessing
        def square(x): return x * x
        if __name__ == '__main__':
            with multiprocessing.get_context('spawn').Pool(1) as pool: print(pool.map(square, [1, 2, 3]))
    """,
    "forked": """
        import multiprocessing
        def square(x): return x * x
        if __name__ == '__main__':
            with multiprocessing.get_context('fork').Pool(2) as pool: print(pool.map(square, range(9)))
    """,
    "children": """
        import os, subprocess, sys
        print(subprocess.run([sys.executable, '-c', 'import sys; print(sys.path); sys.exit(6)']).returncode)
        print(subprocess.run([sys.executable, '-I', '-c', 'print(1)'], env={}).returncode, flush=True)
        print(os.system('exit 2'), os.spawnl(os.P_WAIT, '/bin/sh', 'sh', '-c', 'exit 3'))
        pid = os.fork()
        if pid == 0: os._exit(5)
        print(os.waitpid(pid, 0)[1])
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_behaves_as_without_it(tmp_path, name):
    script = write(tmp_path, PROGRAMS[name])
    arguments = [script, "a b", "--", "-o", "", "--include"]
    expected = plain(arguments, tmp_path, text="one\ntwo\n")
    assert recorded(arguments, tmp_path, text="one\ntwo\n") == expected
    if name != "syntax_error":
        assert functions(captures(tmp_path)[0])["<module>"] >= 1


@pytest.mark.parametrize(
    "options",
    [["-O"], ["-OO", "-B"], ["-W", "error"], ["-X", "dev"], ["-u"], ["-b", "-X", "utf8=1"], ["-P"], ["-q", "-s"]],
    ids=" ".join,
)
def test_interpreter_options_apply_to_the_program(tmp_path, options):
    script = write(
        tmp_path, "import sys, warnings; print(sys.flags, sys._xoptions, sys.path); warnings.warn('w')\nassert 0"
    )
    assert recorded([script], tmp_path, options) == plain([script], tmp_path, options)
    assert captures(tmp_path)


@pytest.mark.parametrize(
    "variable", [("PYTHONOPTIMIZE", "1"), ("PYTHONWARNINGS", "error"), ("PYTHONDEVMODE", "1"), ("PYTHONUTF8", "1")]
)
def test_interpreter_variables_apply(tmp_path, variable):
    script = write(tmp_path, "import sys, warnings; print(sys.flags, sys.path); warnings.warn('w')")
    changes = dict([variable])
    assert recorded([script], tmp_path, **changes) == plain([script], tmp_path, **changes)


def test_a_custom_path_and_a_custom_sitecustomize_still_work(tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    write(own, "import sys\nsys.marked = __file__\n", "sitecustomize.py")
    path = os.pathsep.join([str(own), os.environ.get("PYTHONPATH", "")])
    script = write(tmp_path, "import sys, sitecustomize; print(sys.marked, sitecustomize.__file__, sys.path)")
    assert recorded([script], tmp_path, PYTHONPATH=path) == plain([script], tmp_path, PYTHONPATH=path)


def test_modules_commands_folders_archives_and_standard_input_are_programs(tmp_path):
    package = tmp_path / "pack"
    package.mkdir()
    show = "import sys; print(sys.argv, __name__, __spec__ and __spec__.name, sys.path[0])\ndef f(): pass\nf()\n"
    write(package, show, "__main__.py")
    write(package, "", "__init__.py")
    write(tmp_path, show, "single.py")
    with zipfile.ZipFile(tmp_path / "app.pyz", "w") as archive:
        archive.writestr("__main__.py", show)
    for arguments in (
        ["-m", "pack", "x", "-m"],
        ["-mpack"],
        ["-m", "single", "--", "x"],
        ["-c", show, "-c", "x"],
        ["pack", "x"],
        ["./pack/", "x"],
        ["app.pyz", "x"],
        ["-", "x"],
    ):
        for path in captures(tmp_path):
            path.unlink()
        assert recorded(arguments, tmp_path, text=show) == plain(arguments, tmp_path, text=show), arguments
        (path,) = captures(tmp_path)
        assert functions(path)["f"] == 1, arguments


def test_missing_programs_are_reported_as_by_python(tmp_path):
    for arguments in (["missing.py"], ["-m", "no_such_module"], ["-c", "raise SystemExit(2)"]):
        expected = plain(arguments, tmp_path)
        out, errors, code = recorded(arguments, tmp_path)
        assert (out, code) == (expected[0], expected[2])
        assert errors.startswith(expected[1])


def test_dashes_end_marey_options(tmp_path):
    script = write(tmp_path, "import sys; print(sys.argv)")
    assert recorded(["--", script, "-o", "x"], tmp_path)[0] == f"['{script}', '-o', 'x']\n"
    assert recorded(["--", "-O", script], tmp_path)[0] == f"['{script}']\n"


def test_every_call_is_recorded_to_the_end(tmp_path):
    script = write(
        tmp_path,
        """
        import atexit, threading
        def leaf(): pass
        def work():
            for _ in range(50): leaf()
        def late(): leaf()
        atexit.register(late)
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        work()
        """,
    )
    recorded([script], tmp_path)
    counts = functions(captures(tmp_path)[0])
    assert (counts["leaf"], counts["work"], counts["late"]) == (201, 4, 1)
    names = [row[0] for row in report(captures(tmp_path)[0], "--csv", "--columns", "name")]
    assert not [name for name in names if "marey/" in name or "site.py" in name]


def test_calls_into_c_are_optional(tmp_path):
    script = write(tmp_path, "import math\nfor i in range(20): math.sqrt(i)\n")
    wanted = {(): sys.version_info >= (3, 12), ("--c-calls",): True, ("--no-c-calls",): False}
    for number, (options, is_there) in enumerate(wanted.items()):
        recorded([script], tmp_path, run_options=["-q", "-o", f"{number}.marey", *options])
        assert functions(tmp_path / f"{number}.marey")["math.sqrt"] == (20 if is_there else 0)
    _, errors, code = recorded([script], tmp_path, run_options=["--c-calls", "--no-c-calls"])
    assert code == 2 and "mutually exclusive" in errors


def test_the_capture_is_named_after_the_program_and_overwrites_nothing(tmp_path):
    script = write(tmp_path, "pass", "job.py")
    recorded([script], tmp_path)
    recorded([script], tmp_path)
    names = [path.name for path in captures(tmp_path)]
    assert len(names) == 2
    assert all(name.startswith("job.") and name.split(".")[1].isdigit() for name in names)
    shows = write(tmp_path, "import os; print(os.getpid(), os.getppid())", "shows.py")
    pid, parent = recorded([shows], tmp_path)[0].split()  # the program's own number, not that of marey
    assert (tmp_path / f"shows.{pid}.marey").exists() and not (tmp_path / f"shows.{parent}.marey").exists()
    (tmp_path / "there.marey").write_text("mine")
    out, errors, code = recorded([script], tmp_path, run_options=["-o", "there.marey"])
    assert (out, code) == ("", 2) and "there.marey: already exists" in errors
    assert (tmp_path / "there.marey").read_text() == "mine"
    recorded([script], tmp_path, run_options=["-q", "--force", "-o", "there.marey"])
    assert functions(tmp_path / "there.marey")["<module>"] == 1


def test_the_number_in_the_name_is_the_pid_of_the_program(tmp_path):
    script = write(
        tmp_path,
        """
        import os, subprocess, sys
        print(os.getpid(), flush=True)
        subprocess.run([sys.executable, '-c', 'pass'])
        os.execv(sys.executable, [sys.executable, '-c', 'import os; print(os.getpid())'])
        """,
        "job.py",
    )
    first, second = recorded([script], tmp_path, run_options=("-q", "--keep-captures"))[0].split()
    assert first == second
    names = {path.name for path in captures(tmp_path)}
    assert {f"job.{first}.marey", f"job.{first}.{first}.marey"} <= names
    assert len(names) == 3 and all(name.startswith(f"job.{first}.") for name in names)


def test_an_empty_summary_names_the_cause(tmp_path):
    script = write(tmp_path, "pass")
    marks = write(tmp_path, "import marey", "imports.py")
    out = recorded([script], tmp_path, run_options=["--no-calls"])[1]
    assert "--no-calls records only ranges that the program marks, and it did not import marey" in out
    out = recorded([marks], tmp_path, run_options=["--no-calls"])[1]
    assert "empty: --no-calls excludes calls, and the program marked no range" in out
    out = recorded([script], tmp_path, run_options=["--include", "no.such.module"])[1]
    assert "empty: no call matched the options" in out


def test_the_name_of_a_capture_may_look_like_settings(tmp_path):
    script = write(tmp_path, "pass")
    for name in ("a,c_calls=auto.marey", "a,calls=off,out=b\\.marey", "a,calls=on"):
        assert recorded([script], tmp_path, run_options=["-q", "-o", name]) == ("", "", 0)
        assert {path.name for path in tmp_path.iterdir()} == {os.path.basename(script), name}
        assert functions(tmp_path / name)["<module>"] == 1
        (tmp_path / name).unlink()


def test_lines_of_calls_are_recorded_on_request(tmp_path):
    script = write(tmp_path, "def work(): pass\nwork()\n\nwork()\n")
    recorded([script], tmp_path, run_options=["-q", "--call-lines", "-o", "lines.marey"])
    trace = marey.load(tmp_path / "lines.marey")
    lines = [event.kwinputs.get("line") for event in trace.events() if event.name.endswith(": work")]
    assert lines == [2, 4]


def test_a_ring_keeps_the_end(tmp_path):
    script = write(
        tmp_path,
        """
        def early(): pass
        def late(): pass
        early()
        for _ in range(400000): late()
        """,
    )
    recorded([script], tmp_path, run_options=["-q", "--ring", "--max-bytes", "2MB", "-o", "ring.marey"])
    counts = functions(tmp_path / "ring.marey")
    assert counts["early"] == 0 and 0 < counts["late"] < 400000
    assert (tmp_path / "ring.marey").stat().st_size < 16 << 20


def test_the_summary_names_the_hot_functions_and_the_next_commands(tmp_path):
    script = write(tmp_path, "def hot():\n    sum(range(100000))\nfor _ in range(30): hot()\n")
    out, errors, code = recorded([script], tmp_path, run_options=["-o", "a b.marey"])
    assert (out, code) == ("", 0)
    assert "a b.marey: " in errors and "program.py(1): hot" in errors
    assert "threads   1 thread" in errors and "overhead  about" in errors
    assert "marey report 'a b.marey'" in errors and "marey view 'a b.marey'" in errors
    assert "\x1b" not in errors
    assert recorded([script], tmp_path) == ("", "", 0)


def test_the_summary_counts_all_calls_that_the_capture_has(tmp_path):
    script = write(tmp_path, "import json, colorsys\ndef f(): return [i for i in range(3)]\nf()")
    _, errors, code = recorded([script], tmp_path, run_options=["-o", "x.marey"])
    rows = report(tmp_path / "x.marey", "--csv", "--show-importlib", "--columns", "scope,count")
    calls = sum(int(count) for scope, count in rows if scope in ("python_function", "c_function"))
    assert code == 0 and f"x.marey: {calls:,} calls in " in errors


def test_the_summary_has_colours_only_on_a_terminal(tmp_path):
    script = write(tmp_path, "def f():\n    for _ in range(300_000): pass\nf()\n")
    for changes, is_coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        ours, theirs = os.openpty()
        done = subprocess.run(
            [sys.executable, "-m", "marey", "run", script],
            cwd=tmp_path,
            env=environment(**{"TERM": "xterm", "NO_COLOR": "", **changes}),
            stderr=theirs,
        )
        os.close(theirs)
        text = b""
        with os.fdopen(ours, "rb", 0) as terminal:
            try:
                while part := terminal.read(4096):
                    text += part
            except OSError:  # the other end is closed
                pass
        assert done.returncode == 0
        assert b"program.py(1): f" in text and (b"\x1b[1m" in text) == is_coloured, changes


def test_invalid_options_are_reported_before_the_program_runs(tmp_path):
    script = write(tmp_path, "print('ran')")
    for options, text in (
        (["--min-duration", "soon"], "invalid duration 'soon'"),
        (["--min-duration", "5"], "invalid duration '5': expected a number with a unit (ns, us, ms or s)"),
        (["--max-bytes", "x"], "invalid size 'x'"),
        (["--ring", "--policy", "drop"], "mutually exclusive"),
        (["--no-such"], "--no-such"),
    ):
        out, errors, code = recorded([script], tmp_path, run_options=options)
        assert (out, code) == ("", 2), options
        assert text in errors and errors.startswith("marey: ")


def test_a_capture_that_cannot_be_created_is_not_reported_as_an_unloaded_package(tmp_path):
    script = write(tmp_path, "print('ran')")
    out, errors, code = recorded([script], tmp_path, run_options=["-o", "/proc/x.marey"])
    assert (out, code) == ("", 2)
    assert errors.startswith("marey: /proc/: cannot write a capture here: ")
    # The program itself reports errors that the command cannot detect in advance.
    limited = [
        "sh",
        "-c",
        'ulimit -f 1; exec "$@"',
        "sh",
        sys.executable,
        "-m",
        "marey",
        "run",
        "-o",
        "x.marey",
        script,
    ]
    done = subprocess.run(limited, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.returncode) == ("ran\n", 0)
    assert "marey: not recording: " in done.stderr and "File too large" in done.stderr
    assert "nothing was recorded: unless a line above gives the reason, " in done.stderr


def test_programs_notice_only_the_documented_differences(tmp_path):
    """docs/guide/run.md, How your program is affected."""
    script = write(
        tmp_path,
        """
        import gc, sys
        tools = [sys.monitoring.get_tool(i) for i in range(6)] if hasattr(sys, "monitoring") else []
        print(len(gc.callbacks), type(sys.getprofile()).__name__, tools.count("marey"))
        """,
    )
    is_monitored = sys.version_info >= (3, 12)
    for options, profile in (
        (["--c-calls"], "NoneType" if is_monitored else "ProfileThread"),
        (["--no-c-calls"], "NoneType"),
    ):
        out, _, code = recorded([script], tmp_path, run_options=["-q", *options])
        assert (out, code) == (f"1 {profile} {int(is_monitored)}\n", 0)


# ---- the command


def test_an_interpreter_that_cannot_load_marey_is_reported(tmp_path):
    script = write(tmp_path, "print('ran')")
    out, errors, code = recorded(["--", "-S", script], tmp_path, run_options=[])
    assert (out, code) == ("ran\n", 0)
    assert "nothing was recorded" in errors and "-E, -I or -S" in errors


def test_the_command_alone_reports_that_the_package_is_missing(tmp_path):
    binary = os.path.join(os.environ["MAREY_BUILD_DIR"], "marey")
    shutil.copy(os.path.realpath(binary), tmp_path / "marey")
    write(tmp_path, "print('ran')")
    libraries = os.path.dirname(os.path.realpath(binary))
    done = subprocess.run(
        [tmp_path / "marey", "run", "program.py"],
        cwd=tmp_path,
        env=environment(LD_LIBRARY_PATH=libraries),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and done.stdout == ""
    assert "built without the Python package" in done.stderr


@pytest.mark.parametrize("by", ["function", "line", "file", "module", "package"])
def test_a_report_counts_calls_by_location(tmp_path, by):
    write(tmp_path, "def helper(): pass\ndef other(): helper()\n", "shop.py")
    script = write(tmp_path, "import shop, json\nfor _ in range(5): shop.other()\njson.loads('[1]')\n")
    recorded([script], tmp_path, run_options=["-q", "--no-c-calls", "-o", "x.marey"])
    rows = {
        name: int(count) for name, count in report(tmp_path / "x.marey", "--by", by, "--csv", "--columns", "name,count")
    }
    own = {
        "function": {"shop.py: helper": 5, "shop.py: other": 5, "shop.py: import shop": 1},
        "line": {"shop.py:1": 6, "shop.py:2": 5},
        "file": {"shop.py": 11},
        "module": {"shop": 11},
        "package": {"(program)": 12},
    }[by]
    for name, count in own.items():
        assert rows[name] == count
    if by == "module":
        assert rows["json.decoder (standard library)"] >= 2
    table = subprocess.run(
        [sys.executable, "-m", "marey", "report", "--by", by, "x.marey"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
    ).stdout
    assert table.split("\n")[0].split() == ["self", "share", "total", "calls", "per", "call", by]


def test_stacks_and_traces_name_the_calls(tmp_path):
    script = write(tmp_path, "def inner(): pass\ndef outer(): inner()\nouter()\n")
    recorded([script], tmp_path, run_options=["-q", "-o", "x.marey"])
    for verb in (["stacks", "x.marey"], ["tree", "--min-share", "0", "x.marey"], ["export", "x.marey", "-o", "-"]):
        text = subprocess.run(
            [sys.executable, "-m", "marey", *verb], cwd=tmp_path, env=environment(), capture_output=True, text=True
        ).stdout
        text = text.replace(":_", ": ")  # stacks have no blanks
        assert "program.py(1): inner" in text and "program.py(2): outer" in text, verb
