#!/usr/bin/env python3
"""python_row.py BUILD...: prints the row of docs/guide/install.md's table for the Python of each build folder.

The tests are those of the Python package in the folder's last run of tools/run_tests.sh, as pytest counts them. The
cost of a call is measured now, by benchmarks/python_calls.py.
"""

from __future__ import annotations

import collections
import platform
import re
import subprocess
import sys
from pathlib import Path

import bench


def tests(log: str) -> str:
    """How many of pytest's tests ended in which way, in the log of all tests that ctest writes."""
    counts: collections.Counter[str] = collections.Counter()
    for summary in re.findall(r"^((?:\d+ \w+(?:, )?)+) in [\d.]+s", log, re.MULTILINE):
        counts.update({kind: int(number) for number, kind in re.findall(r"(\d+) (passed|failed|skipped)", summary)})
    return ", ".join(f"{counts[kind]:,} {kind}" for kind in ("passed", "failed", "skipped") if counts[kind])


def row(folder: Path) -> str:
    python = bench.python_of(folder)
    if python is None:
        raise SystemExit(f"python_row.py: {folder} has no Python package (see tools/build.sh)")
    version = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.split()[1]
    compiler = subprocess.run(["c++", "-dumpversion"], capture_output=True, text=True, check=True).stdout.strip()
    system = platform.freedesktop_os_release()["PRETTY_NAME"]
    log = (folder / "Testing/Temporary/LastTest.log").read_text(errors="replace")
    figures, _ = bench.run(bench.SCRIPTS / "python_calls.py", folder)
    ratio = next(figure["ratio"] for figure in figures if figure["name"] in ("call_311", "call_312"))
    return f"| {version} | {system}, GCC {compiler} | {tests(log)} | {ratio:.2f}x |"


if __name__ == "__main__":
    print("\n".join(row(Path(folder)) for folder in sys.argv[1:]))
