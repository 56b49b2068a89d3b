"""`marey start` and `marey stop`: recordings of programs that take requests, and pages that are none."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from running import environment, write

import marey

PROGRAM = """
    import sys, time
    import marey
    def work(): time.sleep(0.001)
    print("ready", flush=True)
    while True: work()
"""


@pytest.fixture
def runtime(tmp_path):
    folder = tmp_path / "runtime"
    folder.mkdir()
    return folder


def command(*arguments, folder, runtime, **changes):
    words = [sys.executable, "-m", "marey", *map(str, arguments)]
    variables = environment(XDG_RUNTIME_DIR=str(runtime), **changes)
    return subprocess.run(words, cwd=folder, env=variables, capture_output=True, text=True, timeout=120)


class Program:
    """One that takes requests, once its first line has been read."""

    def __init__(self, folder, runtime, text=PROGRAM, lines=1, **changes):
        variables = {"MAREY": "control=on", **changes}
        self.process = subprocess.Popen(
            [sys.executable, write(folder, text)],
            cwd=folder,
            env=environment(XDG_RUNTIME_DIR=str(runtime), **variables),
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.lines = [self.process.stdout.readline().strip() for _ in range(lines)]
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.killpg(self.pid, signal.SIGKILL)
        self.process.communicate()


def names(path):
    return {event.name.rpartition("): ")[2] for event in marey.load(path).events()}


def test_a_program_is_recorded_from_start_to_stop(tmp_path, runtime):
    with Program(tmp_path, runtime) as program:
        assert not list(tmp_path.glob("*.marey"))
        started = command("start", program.pid, "--calls", "-o", "x.marey", folder=tmp_path, runtime=runtime)
        assert started.stdout == f"{program.pid}: recording into {tmp_path}/x.marey\n", started.stderr
        again = command("start", program.pid, folder=tmp_path, runtime=runtime)
        assert again.stderr == f"marey: start: process {program.pid}: it is being recorded into {tmp_path}/x.marey\n"
        time.sleep(0.3)
        stopped = command("stop", program.pid, folder=tmp_path, runtime=runtime)
        assert stopped.stdout == f"{program.pid}: wrote {tmp_path}/x.marey\n", stopped.stderr
        assert "work" in names(tmp_path / "x.marey")
        once_more = command("stop", program.pid, folder=tmp_path, runtime=runtime)
        assert once_more.stderr == f"marey: stop: process {program.pid}: no recording that was requested runs\n"
        assert command("start", program.pid, folder=tmp_path, runtime=runtime).returncode == 0


def test_a_recording_ends_after_its_time(tmp_path, runtime):
    with Program(tmp_path, runtime) as program:
        assert command("start", "--all", "--calls", "--for", "200ms", folder=tmp_path, runtime=runtime).returncode == 0
        for _ in range(400):
            done = command("stop", program.pid, folder=tmp_path, runtime=runtime)
            if "no recording" in done.stderr:
                break
            if done.returncode == 0:  # a busy machine: too early
                break
            time.sleep(0.05)
        assert "work" in names(tmp_path / f"{program.pid}.marey")


def test_ranks_begin_together(tmp_path, runtime):
    programs = [Program(tmp_path, runtime, RANK=str(rank), WORLD_SIZE="3") for rank in range(3)]
    try:
        options = ["--all", "--rank", "1-2", "--at", "+300ms", "-o", "job.marey"]
        done = command("start", *options, folder=tmp_path, runtime=runtime)
        assert done.returncode == 0 and len(done.stdout.splitlines()) == 2, done.stderr
        time.sleep(0.1)
        assert command("stop", "--all", "--rank", "1-2", folder=tmp_path, runtime=runtime).returncode == 0
        paths = [tmp_path / f"job.{program.pid}.marey" for program in programs]
        assert [path.exists() for path in paths] == [False, True, True]
    finally:
        for program in programs:
            program.__exit__()


def test_a_forked_child_has_a_page_of_its_own(tmp_path, runtime):
    text = """
        import os, time
        import marey
        child = os.fork()
        os.write(1, f"{os.getpid()}\\n".encode())  # print() may write the end of the line by itself
        while True: time.sleep(0.01)
    """
    with Program(tmp_path, runtime, text, lines=2) as program:
        pids = sorted(map(int, program.lines))
        assert program.pid in pids
        assert sorted(int(path.name) for path in (runtime / "marey").iterdir()) == pids
        for pid in pids:
            done = command("start", pid, folder=tmp_path, runtime=runtime)
            assert done.stdout == f"{pid}: recording into {tmp_path}/{pid}.marey\n", done.stderr


def test_a_program_that_ends_leaves_no_page_and_completes_its_recording(tmp_path, runtime):
    text = """
        import sys
        import marey
        marey.allow_control()
        marey.allow_control()
        print("ready", flush=True)
        sys.stdin.readline()
        with marey.record_function("last words"): pass
    """
    script = write(tmp_path, text)
    variables = environment(XDG_RUNTIME_DIR=str(runtime))
    process = subprocess.Popen(
        [sys.executable, script], cwd=tmp_path, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    done = command("start", process.pid, "-o", "x.marey", folder=tmp_path, runtime=runtime)
    assert done.returncode == 0, done.stderr
    process.communicate("\n", timeout=60)
    assert process.returncode == 0 and not list((runtime / "marey").iterdir())
    assert "last words" in names(tmp_path / "x.marey")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["start"], "start: name processes, or give --all"),
        (["start", "x"], "start: invalid number 'x'"),
        (["start", "--all"], "start: no such process takes requests"),
        (["start", "--all", "--rank", "1-x"], "start: invalid number 'x'"),
        (["start", "--all", "7"], "start: --all and 7 are mutually exclusive"),
        (["start", "1", "--at", "2s"], "start: --at 2s: expected a time from now, such as +2s"),
        (["start", "1", "--options", "colour=red"], "'colour=red': expected out=, "),
        (
            ["start", "1"],
            "start: process 1 takes no requests (start it with MAREY=control=on, or call marey.allow_control())",
        ),
        (["stop", "1"], "stop: process 1 takes no requests"),
    ],
)
def test_what_cannot_be_asked_is_an_error(tmp_path, runtime, arguments, error):
    done = command(*arguments, folder=tmp_path, runtime=runtime)
    assert done.returncode == 2 and done.stderr.startswith(f"marey: {error}"), done.stderr


def test_the_page_of_a_dead_process_is_removed(tmp_path, runtime):
    with Program(tmp_path, runtime) as program:
        pass
    page = runtime / "marey" / str(program.pid)
    assert page.exists()
    done = command("stop", program.pid, folder=tmp_path, runtime=runtime)
    assert done.stderr == f"marey: stop: process {program.pid} has ended\n"
    assert command("stop", "--all", folder=tmp_path, runtime=runtime).returncode == 2
    assert not page.exists()


def test_pages_full_of_noise_and_links_are_not_used(tmp_path, runtime):
    folder = runtime / "marey"
    folder.mkdir(mode=0o700)
    with Program(tmp_path, runtime) as program:
        page = folder / str(program.pid)
        good = page.read_bytes()
        shutil.copy(page, tmp_path / "good")
        for content in (os.urandom(4096), good[:100], b""):
            page.unlink()
            page.write_bytes(content)
            done = command("start", program.pid, folder=tmp_path, runtime=runtime)
            assert done.returncode == 2 and re.search(r"has ended|is not a control page of yours", done.stderr)
        page.unlink()
        page.symlink_to(tmp_path / "good")
        done = command("start", program.pid, folder=tmp_path, runtime=runtime)
        assert done.returncode == 2 and "Too many levels of symbolic links" in done.stderr
        assert command("start", "--all", folder=tmp_path, runtime=runtime).returncode == 2


def test_a_folder_that_others_can_use_is_refused(tmp_path, runtime):
    folder = runtime / "marey"
    folder.mkdir()
    folder.chmod(0o777)
    error = f"{folder}: is not a folder that only you can use: remove it, or set XDG_RUNTIME_DIR"
    done = command("start", "1", folder=tmp_path, runtime=runtime)
    assert done.stderr == f"marey: {error}\n" or done.stderr == f"marey: start: {error}\n"
    script = write(tmp_path, "import marey\nprint('goes on')")
    variables = environment(XDG_RUNTIME_DIR=str(runtime), MAREY="control=on")
    ran = subprocess.run([sys.executable, script], cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert ran.stdout == "goes on\n" and ran.stderr == f"marey: not recording: MAREY=control=on: {error}\n"


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv")
def test_another_user_can_ask_nothing(tmp_path, runtime):
    with Program(tmp_path, runtime) as program:
        page = runtime / "marey" / str(program.pid)
        as_nobody = ["setpriv", "--reuid=65534", "--clear-groups", "head", "-c1", str(page)]
        done = subprocess.run(as_nobody, capture_output=True, text=True)
        assert done.returncode != 0 and "Permission denied" in done.stderr
