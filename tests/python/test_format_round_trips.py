"""Random traces written in the formats of other tools and read again; exported times against `marey report`."""

import collections
import csv
import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from running import environment, recorded

import marey

NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=20)
NS = st.integers(1, 2_000_000)


def trees(names):
    """A range: its name, its children, and the time before, between and after them."""
    leaf = st.tuples(names, st.just([]), st.lists(NS, min_size=1, max_size=1))

    def extend(children):
        return st.lists(children, min_size=1, max_size=3).flatmap(
            lambda inside: st.tuples(
                names, st.just(inside), st.lists(NS, min_size=len(inside) + 1, max_size=len(inside) + 1)
            )
        )

    return st.recursive(leaf, extend, max_leaves=8)


# Some threads, each with some ranges one after another.
PROGRAMS = NAMES.flatmap(
    lambda name: st.lists(
        st.lists(trees(st.sampled_from([f"n{name}", f"n{name}!", "a b;c", "<x>&\"'"])), min_size=1, max_size=4),
        min_size=1,
        max_size=3,
    )
)


def events(threads):
    """Chrome's events for a program, with exact nanoseconds."""

    def add(thread, tree, start):
        name, inside, times = tree
        now, row = start + times[0], len(found)
        found.append(None)  # ranges come before those inside them
        for child, after in zip(inside, times[1:], strict=True):
            now = add(thread, child, now) + after
        found[row] = (thread, name, start, now - start)
        return now

    found = []
    for thread, outermost in enumerate(threads):
        now = 1_000_000
        for tree in outermost:
            now = add(thread + 1, tree, now) + 1
    return [
        {"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": thread}
        | {"ts": start / 1000, "dur": duration / 1000}
        for thread, name, start, duration in found
    ]


def rows(trace):
    """Name, start, duration and name of the parent of each range."""
    ranges = trace.to_arrow().to_pylist()
    begin = min((row["start_ns"] for row in ranges), default=0)
    return sorted(
        (
            row["name"],
            row["start_ns"] - begin,
            row["duration_ns"],
            ranges[row["parent"]]["name"] if row["parent"] is not None else "",
        )
        for row in ranges
    )


def self_times(trace):
    """Nanoseconds by name, of ranges on threads; those of markers are elsewhere."""
    times = collections.Counter()
    for row in trace.to_arrow().to_pylist():
        times[row["name"]] += 0 if row["async"] else row["self_ns"]
    return +times


FORMATS = {".pb.gz": "pprof", ".profile.json.gz": "firefox", ".prof": "pstats", ".folded": "collapsed"}


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(PROGRAMS)
def test_random_traces_survive_the_formats_of_other_tools(threads):
    made = events(threads)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "in.json").write_text(json.dumps({"traceEvents": made}))
        trace = marey.load(path / "in.json")
        assert len(trace) == len(made)
        for suffix in (".otlp.json", ".speedscope.json", ".pftrace", ".json.gz"):
            trace.export(path / f"x{suffix}")
            assert rows(marey.load(path / f"x{suffix}")) == rows(trace), suffix
        for suffix, name in FORMATS.items():
            trace.export(path / f"x{suffix}")
            again, times = self_times(marey.load(path / f"x{suffix}", format=name)), self_times(trace)
            if suffix == ".folded":  # which has no way to write some characters in names
                again, times = again.total(), times.total()
            assert again == times, suffix


PROGRAM = """
import math, marey

def inner(n):
    return [math.sqrt(i) for i in range(n)]

def recursive(n):
    return 0 if n == 0 else 1 + recursive(n - 1)

with marey.record_function("outer"):
    for n in (10, 20, 30):
        inner(n)
    recursive(3)
"""


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    (folder / "app.py").write_text(PROGRAM)
    _, _, code = recorded(["app.py"], folder, run_options=["-q", "-o", "app.marey"])
    assert code == 0
    return folder / "app.marey"


def run(*words):
    command = [sys.executable, "-m", "marey", *map(str, words)]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=True).stdout


def reported(path):
    """Self and total nanoseconds by function, as `marey report` prints them."""
    times = collections.defaultdict(lambda: [0, 0])
    for row in csv.DictReader(io.StringIO(run("report", "--format", "csv", "--limit", 0, path))):
        if row["async_count"] == row["count"]:  # markers
            continue
        function = row["name"].replace("_", " ").rpartition("): ")[2]  # collapsed stacks have no spaces
        times[function][0] += int(row["self_cpu_time_total_ns"])
        times[function][1] += int(row["cpu_time_total_ns"])
    return dict(times)


@pytest.fixture(scope="module")
def of_capture(capture):
    return reported(capture)


@pytest.mark.parametrize("suffix", [".pftrace", ".json", ".speedscope.json", *FORMATS])
def test_exported_times_equal_those_of_the_report(suffix, capture, of_capture, tmp_path):
    run("export", capture, "-o", tmp_path / f"x{suffix}")
    expected, found = dict(of_capture), reported(tmp_path / f"x{suffix}")
    if suffix == ".prof":  # it counts recursive calls once
        assert found["recursive"][0] == expected["recursive"][0]
        del found["recursive"], expected["recursive"]
        for name, (_, total) in expected.items():  # divided among the callers and added up: a nanosecond for each
            assert abs(found[name][1] - total) <= 3, name
            found[name][1] = total
    assert found == expected


def test_exported_spans_have_the_times_of_the_report(capture, of_capture, tmp_path):
    run("export", capture, "-o", tmp_path / "x.otlp.json")
    assert reported(tmp_path / "x.otlp.json")["outer"][1] == of_capture["outer"][1]
