"""Runs programs with the collectors that emitters forward ranges to."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import BUILD

import marey
from marey import nvtx

BIN = BUILD / "tests"
VARIABLES = {
    "nvtx_collector": "NVTX_INJECTION64_PATH",
    "itt_collector": "INTEL_LIBITTNOTIFY64",
    "itt_collector_old": "INTEL_LIBITTNOTIFY64",
}
PRELUDE = """
import array, threading
import marey
from marey import itt, nvtx
from marey import emit_itt, emit_nvtx
from marey.profiler import is_enabled as _is_profiler_enabled
def on_a_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()
"""

needs_nvtx = pytest.mark.skipif(not nvtx.is_available(), reason="built without NVTX's header")


def run(program, collector=None, tmp_path=None, **environment):
    """Return the output of the program and the lines that the collector received."""
    collected = tmp_path / "collected" if tmp_path else None
    variables = {**os.environ, **environment}
    for name in ("NVTX_INJECTION64_PATH", "INTEL_LIBITTNOTIFY64", "MAREY"):
        variables.pop(name, None)
    variables.update(environment)
    if collector:
        library = BIN / f"{collector}.so"
        assert library.exists(), f"{library} has not been built"
        variables |= {VARIABLES[collector]: str(library), "MAREY_TEST_COLLECTED": str(collected)}
    variables["PYTHONPATH"] = str(Path(marey.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(program)], env=variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = collected.read_text().splitlines() if collected and collected.exists() else []
    return done.stdout, lines
