"""Programs under `marey run` that start other processes, or that are ended from outside."""

import fcntl
import os
import signal
import subprocess
import sys
import termios

import pytest
from running import captures, environment, functions, plain, recorded, write

import marey

# ---- processes


def test_child_processes_have_their_own_captures(tmp_path):
    script = write(
        tmp_path,
        """
        import multiprocessing, os, subprocess, sys
        def work(n): return n
        def by_fork(): work(1)
        if __name__ == '__main__':
            pid = os.fork()
            if pid == 0:
                by_fork()
                sys.exit()
            os.waitpid(pid, 0)
            process = multiprocessing.get_context('spawn').Process(target=work, args=(1,))
            process.start(); process.join()
            subprocess.run([sys.executable, '-c', 'def by_command(): pass\\nby_command()'])
        """,
    )
    _, errors, code = recorded([script], tmp_path, run_options=["--keep-captures", "-o", "app.marey"])
    assert code == 0
    found = captures(tmp_path)
    assert found[0].name == "app.marey"
    counts = [functions(path) for path in found]
    for name in ("by_fork", "by_command", "spawn_main"):
        assert sum(count[name] for count in counts[1:]) == 1, name
        assert counts[0][name] == 0
    assert "app.marey" in errors and f"{len(found) - 1} other processes" in errors


def test_the_ranks_of_a_job_are_one_trace(tmp_path):
    script = write(tmp_path, "def work(): pass\nwork()\n")
    for rank in range(2):
        recorded([script], tmp_path, run_options=["-q", "-o", "app.marey"], RANK=str(rank), WORLD_SIZE="2")
    trace = marey.load([tmp_path / f"app.rank{rank}.marey" for rank in range(2)])
    assert list(trace.tables["processes"].to_pandas()["node"]) == [0, 1]


def test_a_process_that_multiprocessing_forked_completes_its_capture(tmp_path):
    script = write(
        tmp_path,
        """
        import multiprocessing
        def work(): pass
        process = multiprocessing.get_context('fork').Process(target=work)
        process.start(); process.join()
        """,
    )
    recorded([script], tmp_path, run_options=["-q", "--keep-captures", "-o", "app.marey"])
    _, child = captures(tmp_path)
    assert functions(child)["work"] == 1
    info = subprocess.run(
        [sys.executable, "-m", "marey", "info", str(child)], env=environment(), capture_output=True, text=True
    )
    assert info.returncode == 0 and "without closing" not in info.stdout + info.stderr


def test_child_processes_are_left_alone_on_request(tmp_path):
    script = write(
        tmp_path,
        """
        import os, subprocess, sys
        print(sorted(name for name in os.environ if 'MAREY' in name), os.environ.get('PYTHONPATH'), flush=True)
        subprocess.run([sys.executable, '-c', 'import os; print("MAREY" in os.environ)'])
        if os.fork() == 0: sys.exit()
        os.wait()
        """,
    )
    assert recorded([script], tmp_path, run_options=["-q", "--no-children"]) == plain([script], tmp_path)
    assert len(captures(tmp_path)) == 1


def test_a_program_that_is_not_python_may_start_python(tmp_path):
    script = write(tmp_path, "def f(): pass\nf()\n")
    command = f"{sys.executable} {script}; exit 4"
    done = subprocess.run(
        [sys.executable, "-m", "marey", "run", "-q", "-o", "x.marey", "--", "sh", "-c", command],
        cwd=tmp_path,
        env=environment(),
    )
    assert done.returncode == 4
    assert functions(tmp_path / "x.marey")["f"] == 1


# ---- ends


LOOP = """
    import sys
    def turn(): pass
    def main():
        for _ in range(1000): turn()
        print('ready', flush=True)
        while True: turn()
    main()
"""


def start(folder, *options, **settings):
    script = write(folder, LOOP)
    process = subprocess.Popen(
        [sys.executable, "-m", "marey", "run", "-o", "x.marey", *options, script],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        **settings,
    )
    assert process.stdout.readline() == b"ready\n"
    return process


def child_of(process):
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as children:
        return int(children.read().split()[0])


def test_a_killed_program_leaves_its_calls_and_a_summary(tmp_path):
    process = start(tmp_path)
    os.kill(child_of(process), signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert "turn" in errors.decode() and "marey report x.marey" in errors.decode()
    counts = functions(tmp_path / "x.marey")
    assert counts["turn"] > 100


def test_killing_everything_leaves_the_capture(tmp_path):
    process = start(tmp_path)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert functions(tmp_path / "x.marey")["turn"] >= 1


def own_terminal():
    """Makes standard input the terminal of this session."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.mark.parametrize("by_key", [True, False], ids=["by the terminal", "by another process"])
def test_ctrl_c_ends_it_like_python(tmp_path, by_key):
    ours, theirs = os.openpty()
    try:
        if by_key:
            process = start(tmp_path, "-q", stdin=theirs, preexec_fn=own_terminal)
            os.write(ours, b"\x03")
        else:
            process = start(tmp_path, "-q")
            process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        os.close(ours)
        os.close(theirs)
    assert process.returncode == -signal.SIGINT
    lines = errors.decode().splitlines()
    assert lines[0] == "Traceback (most recent call last):" and lines[-1] == "KeyboardInterrupt"
    assert "marey" not in errors.decode().replace(str(tmp_path), "")
    assert functions(tmp_path / "x.marey")["turn"] >= 1
    assert marey.load(tmp_path / "x.marey").problems == []  # it was completed


def test_a_crash_in_c_keeps_the_calls(tmp_path):
    script = write(tmp_path, "import ctypes\ndef before(): pass\nbefore()\nctypes.string_at(0)\n")
    code = recorded([script], tmp_path, run_options=["-q", "-o", "x.marey"])[2]
    assert code == -signal.SIGSEGV
    assert functions(tmp_path / "x.marey")["before"] == 1
