"""Jobs of several ranks that hang, crash or lack a rank: real processes that wait for each other over sockets."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from running import environment

import marey

RANKS = 4
PROGRAM = """
import ctypes, os, signal, socket, sys, time
import marey

rank = int(os.environ["RANK"])
link = socket.create_connection(("127.0.0.1", int(sys.argv[1])))

def all_reduce(number):
    with marey.record_function_fast("all_reduce", [], {"group": "world", "sequence": number}):
        link.sendall(b"x")
        link.recv(1)

def load_batch(number):
    if number == 3 and rank == 1:
        if sys.argv[2] == "hang":
            time.sleep(1000)
        if sys.argv[2] == "crash":
            ctypes.string_at(0)

print(os.getpid(), flush=True)
for number in range(6):
    with marey.record_function(f"ProfilerStep#{number}"):
        load_batch(number)
        all_reduce(number)
"""


class Meeting:
    """Lets the ranks of a job go on when all of them have sent a byte; ``waiting`` tells how many have."""

    def __init__(self):
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.rounds = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        links = [self._server.accept()[0] for _ in range(RANKS)]
        while all(link.recv(1) for link in links):
            self.rounds += 1
            for link in links:
                link.sendall(b"x")
        self._links = links  # the others wait for a rank that has gone


class Job:
    """The ranks of a program, each under its own ``marey run``."""

    def __init__(self, folder, kind):
        (folder / "train.py").write_text(PROGRAM)
        self.folder = folder
        self.meeting = Meeting()
        command = [sys.executable, "-m", "marey", "run", "-q", "-o", "job.marey", "train.py"]
        command += [str(self.meeting.port), kind]
        self.runs = [
            subprocess.Popen(
                command,
                cwd=folder,
                env=environment(RANK=str(rank), WORLD_SIZE=str(RANKS)),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            for rank in range(RANKS)
        ]
        self.pids = [int(run.stdout.readline()) for run in self.runs]

    def end(self, number, *ranks):
        for rank in ranks:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pids[rank], number)
        for rank in ranks:
            self.runs[rank].communicate(timeout=60)

    def wait_until(self, condition):
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def findings(self):
        """Return the faults of the job. Other findings depend on how busy this machine is."""
        findings = marey.ranks([self.folder])["rank_findings"]
        return [(each["rule"], each["text"]) for each in findings if each["share"] == 0]


@pytest.fixture
def job(tmp_path):
    jobs = []

    def start(kind):
        jobs.append(Job(tmp_path, kind))
        return jobs[-1]

    yield start
    for each in jobs:
        each.end(signal.SIGKILL, *range(RANKS))


HANG = r"all_reduce world #3: ranks 0, 2, 3 wait [0-9.]+ m?s; rank 1 is missing, in load_batch for [0-9.]+ m?s"


def test_the_rank_that_hangs_is_named_while_the_job_runs_and_after_it_was_killed(job):
    hung = job("hang")
    hung.wait_until(lambda: hung.meeting.rounds == 3)

    def found():
        findings = hung.findings()
        return findings and findings[0][0] == "hang" and re.fullmatch(HANG, findings[0][1]) and len(findings) == 1

    hung.wait_until(found)
    time.sleep(2)  # of a process that was killed, the last second is not known
    hung.end(signal.SIGKILL, *range(RANKS))
    ((rule, text),) = hung.findings()
    assert rule == "hang" and re.fullmatch(HANG, text), text


def test_the_rank_that_crashed_is_named(job):
    crashed = job("crash")
    crashed.runs[1].communicate(timeout=60)
    crashed.wait_until(lambda: crashed.meeting.rounds == 3)
    crashed.end(signal.SIGTERM, 0, 2, 3)
    findings = crashed.findings()
    assert findings[0] == ("died", "rank 1 died of SIGSEGV in string_at")
    assert {rule for rule, _ in findings[1:]} <= {"hang"}


def test_a_rank_without_a_capture_is_named(job):
    whole = job("none")
    for run in whole.runs:
        run.communicate(timeout=60)
    assert whole.findings() == []
    (whole.folder / "job.rank1.marey").unlink()
    assert whole.findings() == [("absent", "rank 1 of 4 not given")]
    assert marey.ranks([whole.folder])["rank_totals"]["world_size"] == 4


@pytest.mark.parametrize(
    "variables",
    [{"RANK": "1"}, {"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, {"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"}],
    ids=["rank-alone", "slurm-job", "slurm-step"],
)
def test_launchers_give_processes_their_ranks(tmp_path, variables):
    command = [sys.executable, "-m", "marey", "run", "-q", "-o", "app.marey", "-c", "len([])"]
    subprocess.run(command, cwd=tmp_path, env=environment(**variables), check=True, timeout=60)
    assert [path.name for path in tmp_path.glob("*.marey")] == ["app.rank1.marey"]
    assert {event.node_id for event in marey.load(tmp_path / "app.rank1.marey").events()} == {1}
