"""`marey watch`, conditions of `marey run`, and `marey.flight_recorder`: snapshots of moments, with their reasons."""

import os
import re
import select
import signal
import subprocess
import sys
import time

import pytest
from running import environment, write

import marey

SERVER = """
    import sys, time, marey
    def handle(seconds):
        with marey.record_function("request"): time.sleep(seconds)
    for line in sys.stdin:
        handle(float(line))
        print("done", flush=True)
"""


def command(*arguments, folder):
    words = [sys.executable, "-m", "marey", *arguments]
    return subprocess.run(words, cwd=folder, env=environment(), capture_output=True, text=True, timeout=120)


class Server:
    """A program that handles a request for each line."""

    def __init__(self, folder, *options, text=SERVER):
        script = write(folder, text, "api.py")
        words = [sys.executable, "-m", "marey", "run", "-q", "-o", "api.marey", *options, script]
        self.process = subprocess.Popen(
            words,
            cwd=folder,
            env=environment(),
            start_new_session=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def handle(self, *requests):
        for seconds in requests:
            self.process.stdin.write(f"{seconds}\n")
            self.process.stdin.flush()
            assert self.process.stdout.readline() == "done\n", self.process.stderr.read()

    def end(self):
        """Return what it wrote to standard error."""
        return self.process.communicate(timeout=60)[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.__exit__(None, None, None)


class Watcher:
    """`marey watch` of a folder; its lines as it writes them."""

    def __init__(self, folder, *options):
        words = [sys.executable, "-m", "marey", "watch", *options]
        self.process = subprocess.Popen(words, cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True)
        assert self.line().startswith("marey: watching for ")

    def line(self):
        assert select.select([self.process.stderr], [], [], 60)[0], "it writes nothing"
        return self.process.stderr.readline()

    def end(self):
        """Return the rest of its lines."""
        self.process.send_signal(signal.SIGINT)
        return self.process.communicate(timeout=60)[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def snapshots(folder):
    return sorted(path for path in folder.glob("*.marey") if re.search(r"\.\d{8}T\d{6}\.", path.name))


def names(path):
    return [event.name.rpartition("): ")[2] for event in marey.load(path).events()]


def reason(path):
    return marey.load(path).metadata["snapshot"]


def test_a_slow_range_is_in_exactly_one_snapshot_with_what_was_before(tmp_path):
    with Server(tmp_path) as server:
        server.handle(0.01, 0.01)
        with Watcher(tmp_path, ".", "--when", "handle > 250ms", "--after", "0s") as watcher:
            server.handle(0.01, 0.5)
            line = watcher.line()
            found = r"marey: (api\.\d{8}T\d{6}\.slow-handle\.marey): the last 30s, .*, because handle took 5\d\d ms "
            assert re.match(found + r"\(limit 250ms\)\n", line), line
            server.handle(0.01)
            assert watcher.end() == ""
    (path,) = snapshots(tmp_path)
    assert names(path).count("handle") >= 4
    why = reason(path)
    assert why["reason"].startswith("handle took 5") and 500_000_000 <= why["end_ns"] - why["begin_ns"] < 10**9
    assert why["thread"] != 0
    text = command("report", path.name, folder=tmp_path).stdout
    assert text.startswith(f"snapshot: {why['reason']}\n"), text


def test_what_the_limits_hold_back_is_counted(tmp_path):
    with Server(tmp_path) as server, Watcher(tmp_path, ".", "--when", "handle > 50ms", "--after", "0s") as watcher:
        server.handle(0.1, 0.1, 0.1, 0.1)
        assert "slow-handle" in watcher.line()
        time.sleep(0.5)
        assert watcher.end() == "marey: handle > 50ms: 3 times more without a snapshot\n"
    assert len(snapshots(tmp_path)) == 1


def test_the_oldest_are_deleted_and_a_command_is_run_for_each(tmp_path):
    options = ["--when", "handle > 50ms", "--after", "0s", "--every", "0s", "--keep", "1", "--exec", "echo >> seen.txt"]
    with Server(tmp_path) as server, Watcher(tmp_path, ".", *options) as watcher:
        for _ in range(3):
            server.handle(0.1)
            assert "slow-handle" in watcher.line()
        watcher.end()
    seen = (tmp_path / "seen.txt").read_text().splitlines()
    assert len(seen) == 3 and all(re.fullmatch(r"api\..*\.marey handle took 1\d\d ms .*", line) for line in seen), seen
    (path,) = snapshots(tmp_path)
    assert seen[-1].startswith(path.name)


def test_watchers_of_one_folder_choose_different_names(tmp_path):
    options = [".", "--when", "handle > 50ms", "--after", "0s", "--every", "0s"]
    with Server(tmp_path) as server, Watcher(tmp_path, *options) as one, Watcher(tmp_path, *options) as other:
        lines = set()
        for _ in range(5):
            server.handle(0.1)
            lines |= {one.line(), other.line()}
    files = {line.split(": ")[1] for line in lines}
    assert len(files) == 10 and files == {path.name for path in snapshots(tmp_path)}


def test_a_program_that_is_killed_leaves_a_snapshot(tmp_path):
    with Server(tmp_path) as server:
        server.handle(0.01)
        with Watcher(tmp_path, "api.marey", "--when", "died") as watcher:
            time.sleep(0.5)
            os.killpg(server.process.pid, signal.SIGKILL)
            assert re.search(r"because process \d+ ended without closing its capture in \S+", watcher.line())
            assert watcher.process.wait(timeout=60) == 0


def test_a_range_that_never_ends_is_a_stall(tmp_path):
    with Server(tmp_path) as server, Watcher(tmp_path, ".", "--when", "stall:handle > 300ms", "--once") as watcher:
        server.process.stdin.write("600\n")
        server.process.stdin.flush()
        assert re.search(r"because handle is open for \d+ ms \(limit 300ms\)", watcher.line())
        assert watcher.process.wait(timeout=60) == 0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "no condition is given with --when"),
        (
            ["--when", "handle > soon"],
            "condition 'handle > soon', column 10: expected a time such as 250ms, or a quantile such as p99*3",
        ),
        (["--when", "died", "--keep", "0"], "--keep 0 keeps nothing"),
        (["--when", "died", "-o", "nowhere"], "nowhere: is not a folder"),
        (
            ["--when", "died", "--disk", "much"],
            "--disk: invalid size 'much': expected a number with an optional unit, such as 512MB",
        ),
        (["nothing.marey", "--when", "died"], "nothing.marey: No such file or directory"),
    ],
)
def test_options_that_are_not_understood_are_named(tmp_path, arguments, error):
    done = command("watch", *arguments, folder=tmp_path)
    assert done.returncode == 2 and done.stderr.removeprefix("marey: ").removeprefix("watch: ") == f"{error}\n"


def test_a_name_that_never_occurs_is_said(tmp_path):
    with Server(tmp_path) as server, Watcher(tmp_path, ".", "--when", "hanlde > 1ms") as watcher:
        server.handle(0.01)
        time.sleep(0.5)
        assert watcher.end() == "marey: hanlde > 1ms: no such range has ended\n"


def test_marey_run_watches_its_program(tmp_path):
    with Server(tmp_path, "--last", "5s", "--when", "handle > 250ms", "--after", "0s") as server:
        server.handle(0.01, 0.5, 0.01)
        text = server.end()
    assert re.search(r"api\.\S+\.slow-handle\.marey: the last 5s, .*, because handle took 5\d\d ms", text), text
    (path,) = snapshots(tmp_path)
    assert re.search(r"\bring\b", command("info", "api.marey", folder=tmp_path).stdout)
    assert "request" in names(path)


def test_a_flight_recorder_writes_what_nothing_handled(run_python, tmp_path):
    run_python(
        """
import sys, threading, marey
recorder = marey.flight_recorder(folder=".")
def fail(): raise KeyError("no such user")
sys.stderr = open("errors.txt", "w")
thread = threading.Thread(target=fail)
thread.start()
thread.join()
"""
    )
    (path,) = snapshots(tmp_path)
    assert reason(path)["reason"] == "KeyError: 'no such user'"
    assert "fail" in names(path)
    assert list(tmp_path.glob("*.flight.marey")) == []
    assert "the last 30 s, because KeyError" in (tmp_path / "errors.txt").read_text()


def test_a_flight_recorder_answers_a_signal_and_leaves_a_handler_of_the_program_alone(run_python, tmp_path):
    out = run_python(
        """
import glob, os, signal, time, marey
with marey.flight_recorder(exceptions=False):
    os.kill(os.getpid(), signal.SIGUSR2)
    while not glob.glob("*.snapshot.marey"): time.sleep(0.01)
signal.signal(signal.SIGUSR2, lambda *_: print("own"))
with marey.flight_recorder():
    os.kill(os.getpid(), signal.SIGUSR2)
"""
    )
    assert out == "own\n"
    (path,) = snapshots(tmp_path)
    assert reason(path)["reason"] == "SIGUSR2"


def test_a_flight_recorder_has_conditions(run_python, tmp_path):
    run_python(
        """
import glob, time, marey
def handle(seconds): time.sleep(seconds)
with marey.flight_recorder(when=["handle > 200ms"], after=0, last=10):
    handle(0.01)
    handle(0.4)
    end = time.monotonic() + 60
    while not glob.glob("*.slow-handle.marey") and time.monotonic() < end: time.sleep(0.05)
"""
    )
    (path,) = snapshots(tmp_path)
    assert reason(path)["reason"].startswith("handle took 4")


def test_there_is_one_flight_recorder_and_wrong_conditions_stop_it(run_python):
    out = run_python(
        """
import glob, marey
def error(**options):
    try: marey.flight_recorder(**options)
    except Exception as error: print(f"{type(error).__name__}: {error}")
with marey.flight_recorder():
    error()
error(when="handle > soon")
print(glob.glob("*.marey"))
"""
    )
    assert out.splitlines() == [
        "Error: a flight recorder is running: there is one in a process",
        "ValueError: condition 'handle > soon', column 10: expected a time such as 250ms, or a quantile such as p99*3",
        "[]",
    ]


def test_a_flight_recorder_keeps_the_error_that_leaves_its_block(run_python, tmp_path):
    run_python(
        """
import marey
def work():
    with marey.flight_recorder():
        inner()
def inner(): 1 / 0
try: work()
except ZeroDivisionError: pass
"""
    )
    (path,) = snapshots(tmp_path)
    assert reason(path)["reason"] == "ZeroDivisionError: division by zero" and "inner" in names(path)


def test_marey_snapshot_writes_the_recording_of_marey_run(tmp_path):
    text = """
        import marey
        def work(): return marey.snapshot("half way", "half.marey")
        print(work())
    """
    script = write(tmp_path, text)
    done = command("run", "-q", "-o", "x.marey", script, folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "half.marey\n"), done.stderr
    assert reason(tmp_path / "half.marey")["reason"] == "half way"
    assert "work" in names(tmp_path / "half.marey") and (tmp_path / "x.marey").exists()


def test_marey_snapshot_without_a_recording_is_an_error(run_python):
    out = run_python(
        """
import marey
try: marey.snapshot()
except marey.Error as error: print(error)
"""
    )
    assert out == "nothing is recorded into a file: use marey.flight_recorder(), or marey run\n"
