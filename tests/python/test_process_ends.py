"""How the processes of a run ended, and in which range: signals, exit codes, daemons."""

import os
import re
import signal
import subprocess
import sys

import pytest
from running import captures, environment, plain, recorded, write

import marey

MERGED = ["-o", "x.marey"]
# Earlier kernels tell only the parent of a process how it ended.
KERNEL_TELLS = tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2]) >= (6, 15)


def ends(trace):
    """Return {pid: (exit code, signal)}, where -1 is unknown."""
    table = trace.tables["processes"].to_pandas()
    known = table[["exit_code", "exit_signal"]].fillna(-1).astype(int)
    return dict(zip(table["pid"], zip(known["exit_code"], known["exit_signal"], strict=True), strict=True))


DYING = """
    import ctypes, os, signal, subprocess, sys
    def crash(): ctypes.string_at(0)
    def wait():
        os.kill(os.getpid(), signal.SIGKILL)
    def leave(): os._exit(7)
    def finish(): sys.exit(3)
    def well(): os._exit(0)
    for work in (crash, wait, leave, finish, well):
        child = os.fork()
        if child == 0: work()
        print(work.__name__, child, flush=True)
        os.waitpid(child, 0)
"""


def test_each_child_is_named_with_its_end_and_its_innermost_range(tmp_path):
    script = write(tmp_path, DYING)
    out, errors, code = recorded([script], tmp_path, run_options=[*MERGED, "--no-c-calls"])
    assert code == 0
    pids = {name: int(pid) for name, pid in (line.split() for line in out.splitlines())}
    trace = marey.load(tmp_path / "x.marey")
    known = ends(trace)
    assert {name: known[pid] for name, pid in pids.items()} == {
        "crash": (-1, signal.SIGSEGV),
        "wait": (-1, signal.SIGKILL),
        "leave": (7, -1),
        "finish": (3, -1),
        "well": (0, -1),
    }
    said = {code: text for code, text, _ in trace.problems if "leave" in text or code == "process_killed"}
    texts = [text for _, text, _ in trace.problems]
    assert len(texts) == 3, texts  # a process that ends as it wants to is not a problem
    assert said["process_exited"].startswith(f"Process {pids['leave']} (program.py) exited with code 7 ")
    assert any(
        re.fullmatch(rf"Process {pids['crash']} \(program.py\) died of SIGSEGV in .*: string_at\.", text)
        for text in texts
    )
    assert any(
        re.fullmatch(rf"Process {pids['wait']} \(program.py\) died of SIGKILL in .*: wait\.", text) for text in texts
    )
    for text in texts:
        assert f"problem: {text}" in errors
    command = [sys.executable, "-m", "marey", "info", "x.marey"]
    info = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True).stdout
    assert re.search(rf"^ *{pids['crash']} +fork +[\d,]+ +SIGSEGV ", info, re.M)
    assert re.search(rf"^ *{pids['leave']} +fork +[\d,]+ +code 7 ", info, re.M)


def test_processes_that_ended_the_same_way_share_a_line(tmp_path):
    script = write(
        tmp_path,
        """
        import os, signal
        def wait(begin):
            os.write(begin, b'x')
            while True: signal.pause()
        def start():
            ready, begin = os.pipe()
            child = os.fork()
            if child == 0: wait(begin)
            os.read(ready, 1)
            while open(f'/proc/{child}/stat').read().split()[2] != 'S': pass  # until it is in pause()
            return child
        children = [start() for _ in range(10)]
        for child in children: os.kill(child, signal.SIGTERM)
        for child in children: os.waitpid(child, 0)
        print(*children)
        """,
    )
    out, _, _ = recorded([script], tmp_path, run_options=MERGED)
    trace = marey.load(tmp_path / "x.marey")
    pids = sorted(int(pid) for pid in out.split())
    assert {ends(trace)[pid] for pid in pids} == {(-1, signal.SIGTERM)}
    (problem,) = [problem for problem in trace.problems if problem[0] == "process_killed" and problem[2] > 5]
    assert problem[1].startswith(
        "Processes " + ", ".join(map(str, pids[:8])) + " and 2 more (program.py) died of SIGTERM"
    )


@pytest.mark.skipif(not KERNEL_TELLS, reason="needs Linux 6.15")
def test_a_child_of_a_shell_and_a_daemon_are_named(tmp_path):
    write(tmp_path, "import os, signal\ndef f(): os.kill(os.getpid(), signal.SIGABRT)\nf()\n", "child.py")
    write(
        tmp_path,
        """
        import os, signal
        def serve(): os.kill(os.getpid(), signal.SIGKILL)
        wait, done = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.close(wait)
                serve()
            os._exit(0)
        os.wait()
        os.close(done)
        os.read(wait, 1)
        """,
        "daemon.py",
    )
    shell = f"{sys.executable} child.py; {sys.executable} daemon.py; exit 4"
    _, errors, code = recorded(["--", "sh", "-c", shell], tmp_path, run_options=[*MERGED, "--no-c-calls"])
    assert code == 4
    texts = [text for _, text, _ in marey.load(tmp_path / "x.marey").problems]
    assert any(re.fullmatch(r"Process \d+ \(daemon.py\) died of SIGKILL in .*: serve\.", text) for text in texts), texts
    # Nothing recorded comes before it, so that it is the program.
    assert "the program died of SIGABRT in " in errors


WAITS = """
    import os, socket, struct, subprocess, sys
    tree = os.environ["MAREY"].rpartition(",tree=")[2].partition(":")[0]
    path = f"/dev/shm/marey-{tree}.ends"
    os.unlink(path)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.bind(path)
    server.listen(100)
    server.settimeout(60)
    def child(code):
        pid = os.fork()
        if pid == 0: os._exit(code)
        return pid
    pids = [child(1), child(2), child(3), child(4), child(5)]
    os.waitpid(pids[0], 0)
    os.wait4(pids[1], 0)
    os.waitid(os.P_PID, pids[2], os.WEXITED)
    os.wait3(0) and os.wait()
    pids.append(subprocess.Popen(["sh", "-c", "exit 6"]))
    pids[-1].wait()
    pids[-1] = pids[-1].pid
    found = {}
    while len(found) < 6:
        packet = server.accept()[0].recv(100)
        magic, kind, pid, _, _, _, status, _ = struct.unpack_from("=IIqQQQiI", packet)
        if kind == 2: found[pid] = status >> 8
    assert found == dict(zip(pids, [1, 2, 3, 4, 5, 6])), (found, pids)
    print("all")
"""


def test_python_programs_report_the_children_that_they_wait_for(tmp_path):
    assert recorded([write(tmp_path, WAITS)], tmp_path, run_options=["-q", *MERGED]) == ("all\n", "", 0)


def test_the_functions_that_wait_look_and_behave_as_without_marey(tmp_path):
    script = write(
        tmp_path,
        """
        import inspect, os, pickle, posix
        for name in ("wait", "waitpid", "wait3", "wait4", "waitid"):
            function = getattr(os, name)
            assert function is getattr(posix, name)
            print(function, function.__name__, function.__qualname__, function.__module__, function.__self__)
            print(function.__doc__, inspect.signature(function), pickle.loads(pickle.dumps(function)) is function)
        try: os.waitpid("x", 0)
        except TypeError as error: print(error)
        try: os.waitpid(1)
        except TypeError as error: print(error)
        try: os.wait()
        except ChildProcessError as error: print(error)
        print(os.waitid.__text_signature__)
        """,
    )
    assert recorded([script], tmp_path, run_options=["-q", *MERGED]) == plain([script], tmp_path)


def test_a_run_without_children_has_one_end(tmp_path):
    script = write(tmp_path, "import os\ndef f(): os._exit(9)\nf()\n")
    _, errors, code = recorded([script], tmp_path, run_options=MERGED)
    assert code == 9 and "the program exited with code 9 without closing its capture in " in errors
    assert ends(marey.load(captures(tmp_path)[0])).popitem()[1] == (9, -1)
