"""`marey now PID` of processes that do not record: what is read from outside is what the program itself says."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from running import write
from test_now import marey_command
from test_other_pythons import installed

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
PROGRAMS = {
    "a lock": """
        import threading
        lock = threading.Lock()
        def f():
            with lock:
                lock.acquire()
        ready(); f()
        """,
    "C with the GIL held": "import ctypes\ndef load(): ctypes.PyDLL(None).sleep(600)\nready(); load()\n",
    "sleeping threads": """
        import threading, time
        def sleep(seconds):
            time.sleep(seconds)
        for _ in range(3): threading.Thread(target=sleep, args=(600,), daemon=True).start()
        ready(); sleep(600)
        """,
    "generators": """
        import time
        def count(depth):
            if depth == 0:
                time.sleep(600)
            yield from count(depth - 1)
        class Rows:
            def __iter__(self):
                for row in count(7):
                    yield row
        ready(); list(Rows())
        """,
    "recursion": """
        import time
        def fall(depth):
            if depth:
                fall(depth - 1)
            else:
                time.sleep(600)
        ready(); fall(90)
        """,
    "asyncio": """
        import asyncio
        async def leaf():
            await asyncio.sleep(600)
        async def main():
            await asyncio.gather(leaf(), leaf())
        ready(); asyncio.run(main())
        """,
    "callbacks from C": """
        import functools, re, time
        class Key:
            def __lt__(self, other):
                return re.sub("x", lambda match: time.sleep(600), "x")
        def outer(items):
            return sorted(items)
        ready(); functools.reduce(lambda sum, item: outer([Key(), Key()]), [1, 2])
        """,
    "a class body and exec": """
        import time
        text = "class A:\\n    exec('def f(): time.sleep(600)')\\n    f()\\n"
        ready(); exec(compile(text, "made.py", "exec"))
        """,
    "names that are not ASCII": """
        import time
        class Größe:
            def 測る(self): time.sleep(600)
        ready(); Größe().測る()
        """,
    "an exception handler": """
        import time
        def handle():
            try:
                1 / 0
            except ZeroDivisionError:
                try:
                    [][1]
                finally:
                    time.sleep(600)
        ready(); handle()
        """,
}
# The program answers SIGUSR1 with its stacks, and says when it is about to wait.
START = """\
import faulthandler as _f, signal as _s
_f.register(_s.SIGUSR1, open("stacks", "w"), all_threads=True)
def ready(): open("ready", "w").close()
"""


def start(folder, text, python=sys.executable):
    program = write(folder, text, "hang.py")
    (folder / program).write_text(START + (folder / program).read_text())
    process = subprocess.Popen([python, program], cwd=folder, stderr=subprocess.DEVNULL)
    while not (folder / "ready").exists():
        assert process.poll() is None
        time.sleep(0.01)
    return process


def waits(process):
    """Return whether all threads of a process wait, for something else than a moment."""
    tasks = list(Path(f"/proc/{process.pid}/task").iterdir())
    before = [(task / "syscall").read_text() for task in tasks]
    time.sleep(0.05)
    return "running\n" not in before and before == [(task / "syscall").read_text() for task in tasks]


def look(folder, pid):
    done = marey_command("now", "--json", str(pid), folder=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def stacks_from_outside(tables):
    stacks = {}
    for row in tables["now_ranges"]:
        stack = stacks.setdefault(row["thread_id"], [])
        if row["kind"] == "python":
            file, name = re.fullmatch(r"(.*)\(\d+\): (.*)", row["name"]).groups()
            stack.append((os.path.basename(file), row["line"], name.rpartition(".")[2]))
    return sorted(stack for stack in stacks.values() if stack)


def stacks_from_inside(process):
    os.kill(process.pid, signal.SIGUSR1)
    dump = Path(os.readlink(f"/proc/{process.pid}/cwd")) / "stacks"
    while not (text := dump.read_text()).endswith("in <module>\n"):  # the main thread comes last
        time.sleep(0.01)
    frame = re.compile(r'  File "(.*)", line (\d+) in (.*)')
    threads = re.split(r"^(?:Current thread|Thread).*\n", text, flags=re.M)[1:]
    return sorted([(os.path.basename(f), int(n), name) for f, n, name in frame.findall(each)] for each in threads)


def end(process):
    process.kill()
    process.wait()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", PROGRAMS)
def test_stacks_are_those_that_the_program_itself_shows(tmp_path, kind, version):
    python = installed(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    process = start(tmp_path, PROGRAMS[kind], python)
    try:
        while not waits(process):
            pass
        before = re.sub("SigQ.*", "", Path(f"/proc/{process.pid}/status").read_text())
        tables = look(tmp_path, process.pid)
        assert re.sub("SigQ.*", "", Path(f"/proc/{process.pid}/status").read_text()) == before
        seen = stacks_from_outside(tables)
        plain = [[(f, n, name.encode("ascii", "backslashreplace").decode()) for f, n, name in s] for s in seen]
        assert plain == stacks_from_inside(process)
        assert not any(row["is_torn"] or row["is_cut"] for row in tables["now_threads"])
    finally:
        end(process)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_hang_in_c_with_the_gil_names_its_holder_and_who_waits(tmp_path, version):
    python = installed(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    text = """
        import ctypes, threading
        def spin():
            while True: pass
        threading.Thread(target=spin, daemon=True).start()
        def load(): ctypes.PyDLL(None).sleep(600)
        ready(); load()
        """
    process = start(tmp_path, text, python)
    try:
        for _ in range(200):  # who waits for the GIL wakes up every 5 ms
            rows = {row["thread_id"]: row for row in look(tmp_path, process.pid)["now_threads"]}
            if all(row["waits_for"] for row in rows.values()):
                break
        (other,) = rows.keys() - {process.pid}
        assert (rows[process.pid]["waits_for"], rows[process.pid]["holds_gil"]) == ("sleep", True)
        assert (rows[other]["waits_for"], rows[other]["waits_for_thread_id"]) == ("GIL", process.pid)
        for _ in range(200):
            text = marey_command("now", str(process.pid), folder=tmp_path).stdout
            if "waits: GIL" in text:
                break
        assert re.search(
            r"^  main thread +waits: sleep, holds the GIL +libc\S+: \w*sleep  <  .*hang.py\(\d+\): load", text, re.M
        )
        assert re.search(r"waits: GIL of main thread .*hang.py\(\d+\): spin line \d+$", text, re.M)
    finally:
        end(process)


DEADLOCK = """
    import threading
    a, b = threading.{kind}(), threading.{kind}()
    both = threading.Barrier(2)
    def take(first, second):
        with first:
            both.wait()
            with second: pass
    for locks in ((a, b), (b, a)): threading.Thread(target=take, args=locks, daemon=True).start()
    ready(); threading.Event().wait()
    """


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["Lock", "RLock"])
def test_a_deadlock_of_two_threads_is_named(tmp_path, kind, version):
    python = installed(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    process = start(tmp_path, DEADLOCK.format(kind=kind), python)
    try:
        while not waits(process):
            pass
        tables = look(tmp_path, process.pid)
        locked = {row["thread_id"]: row["waits_for_thread_id"] for row in tables["now_threads"] if row["is_deadlocked"]}
        first, second = locked
        assert locked == {first: second, second: first} and process.pid not in locked
        text = marey_command("now", str(process.pid), folder=tmp_path).stdout
        assert re.match(r"deadlock: (.+) waits for (.+), \2 waits for \1\n\n\S+ \d+, Python 3\.", text), text
    finally:
        end(process)


def test_a_thread_that_waits_for_its_own_lock_is_named(tmp_path):
    process = start(tmp_path, PROGRAMS["a lock"])
    try:
        while not waits(process):
            pass
        text = marey_command("now", str(process.pid), folder=tmp_path).stdout
        assert text.startswith("deadlock: main thread waits for main thread\n"), text
    finally:
        end(process)


def test_a_lock_that_nobody_is_known_to_hold_has_no_owner(tmp_path):
    text = """
        import threading
        lock = threading.Lock()
        lock.acquire()
        free = threading.Condition()
        def wait():
            with free: free.wait()
        threading.Thread(target=wait, daemon=True).start()
        ready()
        with lock: pass
        """
    process = start(tmp_path, text)
    try:
        while not waits(process):
            pass
        tables = look(tmp_path, process.pid)
        assert [(row["waits_for"], row["waits_for_thread_id"]) for row in tables["now_threads"]] == [("lock", None)] * 2
    finally:
        end(process)


def test_native_frames_are_where_python_calls_c_and_c_calls_python(tmp_path):
    process = start(tmp_path, PROGRAMS["callbacks from C"])
    try:
        while not waits(process):
            pass
        rows = [row for row in look(tmp_path, process.pid)["now_ranges"] if row["thread_id"] == process.pid]
        order = [row["name"].rpartition(": ")[2].rpartition(".")[2] for row in rows if row["kind"] == "python"]
        assert [name for name in order if name in ("__lt__", "outer", "<module>")] == ["__lt__", "outer", "<module>"]
        kinds = "".join(row["kind"][0] for row in rows)
        assert re.match("n+i+p", kinds), kinds
        at = [i for i, row in enumerate(rows) if row["name"].endswith(("__lt__", ": outer"))]
        between = [row["name"] for row in rows[at[0] + 1 : at[1]]]
        assert any("list_sort" in name or "slot_tp_richcompare" in name for name in between), between
    finally:
        end(process)


def test_a_program_without_python_shows_its_native_frames(tmp_path):
    process = subprocess.Popen(["sleep", "600"])
    try:
        while not waits(process):
            pass
        text = marey_command("now", str(process.pid), folder=tmp_path).stdout
        assert re.fullmatch(
            rf"\w+ {process.pid}, not recorded\n  main thread  waits: sleep  libc\S+: \w*nanosleep.*\n", text
        )
    finally:
        end(process)


def failed(folder, pid):
    done = marey_command("now", str(pid), folder=folder)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
    return done.stderr


def test_what_cannot_be_read_is_one_line_with_the_cause(tmp_path):
    assert failed(tmp_path, 999999999) == "marey: process 999999999: No such process\n"
    zombie = subprocess.Popen(["true"])
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    reason = f"has ended, and its parent {os.getpid()} has not waited for it yet"
    assert failed(tmp_path, zombie.pid) == f"marey: process {zombie.pid}: {reason}\n"
    zombie.wait()
    process = start(tmp_path, PROGRAMS["sleeping threads"])
    try:
        (tid, *_) = {int(name) for name in os.listdir(f"/proc/{process.pid}/task")} - {process.pid}
        assert failed(tmp_path, tid) == f"marey: process {tid}: is a thread of process {process.pid}\n"
    finally:
        end(process)


def test_an_unknown_python_is_named(tmp_path):
    python = installed("3.10") or installed("3.9")
    if python is None:
        pytest.skip("no older Python here")
    process = subprocess.Popen(
        [python, "-c", "import time; print(1, flush=True); time.sleep(600)"], stdout=subprocess.PIPE
    )
    with process:
        process.stdout.readline()
        reason = "its Python is older than 3.11, and only 3.11 to 3.14 can be read from outside"
        assert failed(tmp_path, process.pid) == f"marey: process {process.pid}: {reason}\n"
        process.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_the_process_of_another_user_is_refused_with_what_helps():
    process = subprocess.Popen(["sleep", "600"])
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        for verb in ("now",), ("doctor", "--pid"):
            words = [os.environ["MAREY_BUILD_DIR"] + "/marey", *verb, str(process.pid)]
            try:
                done = subprocess.run(
                    words, cwd=name, user=65534, group=65534, extra_groups=[], capture_output=True, text=True
                )
            except PermissionError:
                pytest.skip("nobody cannot execute what was built here")
            assert done.returncode == 2
            said = "its memory may not be read: it belongs to root (use sudo, or become that user)"
            assert said in done.stdout + done.stderr, done
    end(process)


def test_a_program_that_protects_itself_is_refused_to_its_own_user(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may read it")
    text = "import ctypes\nctypes.CDLL(None).prctl(4, 0)\nimport time\nready(); time.sleep(600)\n"
    process = start(tmp_path, text)
    try:
        assert "protects itself" in failed(tmp_path, process.pid)
    finally:
        end(process)


@pytest.mark.parametrize("what", ["exec", "threads"])
def test_programs_that_change_while_they_are_read_do_no_harm(tmp_path, what):
    text = {
        "exec": "import os, sys\nopen('ready', 'w').close()\nos.execv(sys.executable, [sys.executable, *sys.argv])\n",
        "threads": """
            import threading
            def fall(depth):
                if depth: fall(depth - 1)
            ready()
            while True:
                threads = [threading.Thread(target=fall, args=(50,)) for _ in range(20)]
                for thread in threads: thread.start()
                for thread in threads: thread.join()
            """,
    }[what]
    process = start(tmp_path, text)
    try:
        for _ in range(20):
            done = marey_command("now", str(process.pid), folder=tmp_path)
            assert done.returncode == 0 or (done.returncode == 2 and done.stderr.count("\n") == 1), done
            assert process.poll() is None
    finally:
        end(process)


def test_doctor_says_what_can_be_seen_of_a_process(tmp_path):
    process = start(tmp_path, PROGRAMS["sleeping threads"])
    try:
        done = marey_command("doctor", "--pid", str(process.pid), folder=tmp_path)
        assert done.returncode == 0, done
        version = ".".join(map(str, sys.version_info[:3]))
        assert re.search(r"^ok  memory +its memory can be read while it runs$", done.stdout, re.M), done.stdout
        assert re.search(r"^ok  native +frames of threads that wait, from \d+ ", done.stdout, re.M), done.stdout
        assert re.search(rf"^ok  python +Python {version}: threads, frames, GIL and locks$", done.stdout, re.M)
        assert re.search(r"^off recording +it does not record\n.*marey run", done.stdout, re.M), done.stdout
    finally:
        end(process)
    done = marey_command("doctor", "--pid", "999999999", folder=tmp_path)
    assert (done.returncode, done.stderr) == (2, "marey: process 999999999: No such process\n")
