"""Captures and simulated runs for the tests of lakes and questions."""

import itertools
import subprocess
import sys

import pytest
from conftest import SOURCE
from running import environment

import marey

pytest.importorskip("duckdb")
sys.path.insert(0, str(SOURCE / "tools"))
import make_lake as make_lake


def marey_command(*words, code=0, **changes):
    done = subprocess.run(
        [sys.executable, "-m", "marey", *map(str, words)],
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def record(path, names=("load", "save"), steps=2):
    """Save a capture with some ranges, values and allocations."""
    session = marey.Session()
    session.start(profile_memory=True)
    for step, name in itertools.product(range(steps), names):
        with marey.record_function(f"ProfilerStep#{step}"):
            with marey.record_function_fast(name, keyword_values={"group": "dp", "sequence": step, "text": "a=b/c"}):
                marey.report_allocation(4096 + step, 64)
    trace = session.stop()
    trace.save(path)
    return trace
