"""Processes of one run in other process and time namespaces."""

import os
import subprocess
import sys

import pytest
from running import captures, environment, move_to_host, recorded, write

import marey

CHILDREN = """
    import subprocess, sys
    code = "def inside(): pass\\ninside()"
    def start(): return subprocess.Popen(["unshare", *sys.argv[2:], sys.executable, "-c", code])
    def run():
        for child in [start() for _ in range(int(sys.argv[1]))]: child.wait()
    run()
"""


def run_apart(folder, count, *options):
    """Record a program whose children are in other namespaces, and return the trace."""
    try:
        allowed = subprocess.run(["unshare", *options, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        allowed = False
    if not allowed:
        pytest.skip("namespaces are not allowed here")
    script = write(folder, CHILDREN)
    done = recorded([script, str(count), *options], folder, run_options=["-q", "-o", "x.marey"])
    assert done == ("", "", 0)
    return marey.load(folder / "x.marey")


@pytest.mark.parametrize("options", [[], ["--mount-proc"]], ids=["its proc", "own proc"])
def test_processes_with_the_same_number_are_kept_apart_and_have_their_parent(tmp_path, options):
    trace = run_apart(tmp_path, 6, "--pid", "--fork", *options)
    table = trace.tables["processes"].to_pandas()
    (main,) = table.index[table.pid != 1]
    children = table[table.pid == 1]
    assert len(children) == 6 and set(children.parent) == {main}
    names = list(trace.to_pandas()["name"])
    assert sum(name.endswith("): inside") for name in names) == 6
    assert trace.problems == []


def test_a_time_namespace_is_on_the_clock_of_its_machine(tmp_path):
    trace = run_apart(tmp_path, 1, "--time", "--monotonic=5000")
    # 3.15 has other modules in C than 3.11, so a C call may be missing while the program imports.
    assert [problem for problem in trace.problems if problem[0] != "python_c_calls_missing"] == []
    assert len(trace.tables["clocks"].to_pandas()) == 0
    ranges = trace.to_pandas()
    (run,) = (row for _, row in ranges.iterrows() if row["name"].endswith("): run"))
    (inside,) = (row for _, row in ranges.iterrows() if row["name"].endswith("): inside"))
    assert run["start_ns"] < inside["start_ns"] < run["start_ns"] + run["duration_ns"]
    command = [sys.executable, "-m", "marey", "info", "x.marey"]
    info = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True).stdout
    assert "hosts" not in info and os.uname().nodename in info


def test_an_unknown_error_of_a_clock_is_null(tmp_path):
    script = write(tmp_path, "def f(): pass\nf()\n")
    for name in ("here", "there"):
        recorded([script], tmp_path, run_options=["-q", "-o", f"{name}.marey"])
    move_to_host(tmp_path / "there.marey", "elsewhere")
    trace = marey.merge_traces([marey.load(path) for path in captures(tmp_path)])
    clocks = trace.tables["clocks"].to_pandas()
    assert set(clocks["method"]) == {"reference", "none"}
    assert clocks.set_index("method")["error_ns"].isna().to_dict() == {"reference": False, "none": True}
    pytest.importorskip("duckdb")
    rows = trace.sql("select method, error_ns from clocks order by method").to_pylist()
    assert rows == [{"method": "none", "error_ns": None}, {"method": "reference", "error_ns": 0}]
    trace.export_chrome_trace(str(tmp_path / "x.json"))
    assert '"error_ns":null' in (tmp_path / "x.json").read_text()
    assert str(2**63 - 1) not in (tmp_path / "x.json").read_text()
