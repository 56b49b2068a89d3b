"""Marey as an NVTX tool: NVTX ranges of libraries are recorded under ``marey run --nvtx``."""

import collections
import os
import re
import subprocess
import sys

import pytest
from collectors import BIN, needs_nvtx
from running import captures, environment, report

from marey import nvtx

LIBRARY = BIN / "nvtx_library.so"
PRELUDE = f"""
import ctypes, subprocess, sys, threading, marey
from marey import nvtx
library = ctypes.CDLL({str(LIBRARY)!r})
"""
pytestmark = needs_nvtx


def record(folder, program, *options, **variables):
    """Run the program; return its output and Marey's messages."""
    path = folder / "program.py"
    path.write_text(PRELUDE + program)
    assert LIBRARY.exists(), f"{LIBRARY} has not been built"
    done = subprocess.run(
        [sys.executable, "-m", "marey", "run", *options, path.name],
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def counted(path):
    """How often each name occurs."""
    counts = collections.Counter()
    for name, count in report(path, "--csv", "--columns", "name,count"):
        counts[name] += int(count)
    return counts


def said(*words):
    """Return the output of a marey command."""
    command = [sys.executable, "-m", "marey", *map(str, words)]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=True).stdout


@pytest.fixture(autouse=True)
def no_listener(monkeypatch):
    monkeypatch.delenv("NVTX_INJECTION64_PATH", raising=False)


def test_library_ranges_are_inside_python_calls(tmp_path):
    out, _ = record(
        tmp_path,
        """
def caller():
    print(library.library_work(3), nvtx.is_listening())
thread = threading.Thread(target=caller)
thread.start()
thread.join()
""",
        "--nvtx",
        "-q",
    )
    assert out == "0 True\n"
    (capture,) = captures(tmp_path)
    assert counted(capture)["library work"] == 3
    (caller,) = [name for name in counted(capture) if name.endswith(": caller")]
    tree = said("tree", "--min-share", "0", "--inside", caller, capture)
    assert re.search(r" 3 +library work$", tree, re.MULTILINE)


def test_nvtx_is_not_recorded_without_the_option(tmp_path):
    out, _ = record(tmp_path, "print(library.library_work(3), nvtx.is_listening())\n", "-q")
    assert out == "-2 False\n"
    (capture,) = captures(tmp_path)
    assert counted(capture)["library work"] == 0


def test_emit_nvtx_is_not_recorded_again(tmp_path):
    record(
        tmp_path,
        """
with marey.emit_nvtx():
    with marey.record_function("once"), nvtx.range("by hand"):
        library.library_work(2)
        marey.instant("mark")
""",
        "--nvtx",
        "--no-calls",
        "-q",
    )
    (capture,) = captures(tmp_path)
    assert counted(capture) == {"once": 1, "by hand": 1, "library work": 2}
    assert "1 instant" in said("info", capture)


def test_child_processes_are_recorded_too(tmp_path):
    record(
        tmp_path,
        """
if len(sys.argv) == 1:
    library.library_work(1)
    subprocess.run([sys.executable, __file__, "child"], check=True)
else:
    library.library_work(5)
""",
        "--nvtx",
        "-q",
        "--keep-captures",
    )
    assert sorted(counted(path)["library work"] for path in captures(tmp_path)) == [1, 5]


def test_a_session_that_cannot_receive_nvtx_reports_it(tmp_path):
    _, errors = record(tmp_path, "library.library_work(1)\n", "--nvtx", NVTX_INJECTION64_PATH="/opt/other/libother.so")
    assert "marey: --nvtx: NVTX ranges go to another tool" in errors
    (capture,) = captures(tmp_path)
    assert "is set to another tool's library, /opt/other/libother.so" in said("info", capture)


def test_this_process_does_not_listen():
    assert "NVTX_INJECTION64_PATH" not in os.environ
    assert nvtx.is_listening() is False
