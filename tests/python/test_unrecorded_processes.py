"""Processes of a run that could not create their captures: the summary and ``marey info`` name them."""

import re
import subprocess
import sys

import pytest
from running import environment, recorded, write

import marey

PROGRAM = """
    import os, subprocess, sys
    def f(): pass
    f()
    if len(sys.argv) == 1:
        {before}
        for _ in range(3):
            child = subprocess.Popen([sys.executable, __file__, "child"])
            print(child.pid, flush=True)
            child.wait()
        {after}
"""


def check(errors, pids, reason, capture):
    first, second, third = pids
    sentence = f"Processes {first}, {second} and {third} (program.py) could not be recorded: "
    (line,) = re.findall(rf"problem: {re.escape(sentence)}(.*)", errors)
    assert line.endswith(f"cannot create the capture: {reason}.")
    assert "not recorded: at least" not in errors  # the line for processes without Marey
    trace = marey.load(capture)
    ((text, count),) = [(text, count) for code, text, count in trace.problems if code == "not_recorded"]
    assert text == sentence + line and count == 3
    command = [sys.executable, "-m", "marey", "info", str(capture)]
    assert sentence in subprocess.run(command, env=environment(), capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("options", [(), ("--keep-captures",)], ids=["packed", "kept"])
def test_processes_that_could_not_be_recorded_are_named(tmp_path, options):
    """The folder of the captures is moved away while the children start."""
    (tmp_path / "captures").mkdir()
    move = "os.rename('{}', '{}')".format
    script = write(tmp_path, PROGRAM.format(before=move("captures", "away"), after=move("away", "captures")))
    out, errors, code = recorded([script], tmp_path, run_options=["-o", "captures/x.marey", *options])
    assert code == 0
    check(errors, out.split(), "No such file or directory", tmp_path / "captures" / "x.marey")


def test_processes_that_found_a_full_disk_are_named(tmp_path):
    (tmp_path / "small").mkdir()
    mount = ["unshare", "--mount", "sh", "-c"]
    small = "mount -t tmpfs -o size=1500k small small"
    if subprocess.run([*mount, small], cwd=tmp_path, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting is not allowed here")
    write(tmp_path, PROGRAM.format(before="", after=""))
    command = [sys.executable, "-m", "marey", "run", "-o", "small/x.marey", "program.py"]
    done = subprocess.run(
        [*mount, small + ' && "$@" && cp small/x.marey .', "sh", *command],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    check(done.stderr, done.stdout.split(), "No space left on device", tmp_path / "x.marey")
