"""Profiles of other tools, as commands and ``marey.load`` show them."""

import collections
import cProfile
import gzip
import os
import pstats
import subprocess
import sys

import pytest
from conftest import SOURCE
from running import environment

import marey

CORPUS = SOURCE / "tests/data/corpus"


def shown(*words):
    command = [sys.executable, "-m", "marey", *map(str, words)]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)


def leaf(number):
    return number + 1


def branch(count):
    return sum(map(leaf, range(count)))


def self_times(trace):
    times = collections.Counter()
    for row in trace.to_arrow().to_pylist():
        times[row["name"]] += row["self_ns"]
    return times


def test_the_self_times_of_cprofile_are_kept(tmp_path):
    profiler = cProfile.Profile()
    profiler.runcall(lambda: [branch(50) for _ in range(3)])
    profiler.dump_stats(tmp_path / "x.prof")
    stats = pstats.Stats(str(tmp_path / "x.prof")).stats
    expected = collections.Counter()
    for (_, _, name), row in stats.items():
        expected[name] += round(row[2] * 1e9)
    assert +self_times(marey.load(tmp_path / "x.prof")) == +expected


def test_the_calls_of_cprofile_are_kept(tmp_path):
    profiler = cProfile.Profile()
    profiler.runcall(lambda: [branch(50) for _ in range(3)] and leaf(1))
    profiler.dump_stats(tmp_path / "x.prof")
    expected = collections.Counter()
    for (_, _, name), row in pstats.Stats(str(tmp_path / "x.prof")).stats.items():
        if row[3] > 0:  # a range has a length
            expected[name] += row[1]
    trace = marey.load(tmp_path / "x.prof")
    counts = {row.key: row.count for row in trace.key_averages()}
    assert counts == expected and counts["leaf"] == 151
    trace.save(tmp_path / "x.marey")
    saved = marey.load(tmp_path / "x.marey")
    assert {row.key: row.count for row in saved.key_averages()} == expected
    title, *rows = shown("report", tmp_path / "x.prof").stdout.splitlines()
    row = next(row.split() for row in rows if row.endswith(" leaf"))
    assert title.split()[:4] == ["self", "share", "total", "calls"]
    assert not row[0].startswith("~") and row[3].startswith("~") and " 151 " in " ".join(row)
    assert " 151 " in next(
        line for line in shown("tree", "--bottom-up", tmp_path / "x.prof").stdout.splitlines() if line.endswith(" leaf")
    )


def test_the_paths_of_a_program_that_imports_modules_are_kept(tmp_path):
    """exec() runs the program, which calls it again for each import: it has callers, and is the root all the same."""
    (tmp_path / "part.py").write_text("def inner(n): return sum(range(n))\n")
    text = "import part\ndef main():\n    for _ in range(100): part.inner(2000)\nmain()\n"
    (tmp_path / "script.py").write_text(text)
    command = [sys.executable, "-m", "cProfile", "-o", "x.prof", "script.py"]
    subprocess.run(command, cwd=tmp_path, check=True, env={**os.environ, "PYTHONPATH": ""})
    trace = marey.load(tmp_path / "x.prof")
    rows = trace.to_arrow().to_pylist()
    paths = collections.Counter()
    for row in rows:
        path, above = [row["name"]], row["parent"]
        while above is not None and above >= 0:
            path.append(rows[above]["name"])
            above = rows[above]["parent"]
        paths[tuple(reversed(path))] += row["self_ns"]
    exec_, sum_ = (f"<built-in method builtins.{name}>" for name in ("exec", "sum"))
    expected = pstats.Stats(str(tmp_path / "x.prof")).stats[("~", 0, sum_)][2] * 1e9
    assert paths[(exec_, "<module>", "main", "inner", sum_)] == pytest.approx(expected, rel=0.01)


def test_what_marey_writes_for_pstats_reads_back(tmp_path):
    with marey.profile(with_stack=True) as profiler:
        branch(10)
    profiler.trace.export(tmp_path / "x.prof")
    times = self_times(marey.load(tmp_path / "x.prof"))
    assert times["leaf"] == sum(
        row["self_ns"] for row in profiler.trace.to_arrow().to_pylist() if row["name"].endswith(": leaf")
    )


@pytest.mark.parametrize(
    "file",
    [
        "collapsed/py_spy.folded",
        "speedscope/py_spy.speedscope.json",
        "speedscope/pyinstrument.speedscope.json",
        "chrome/py_spy.json",
        "pstats/pyinstrument.prof",
        "perf/cpu_clock.txt",
    ],
)
def test_times_of_samples_are_shown_as_estimates(file):
    done = shown("report", CORPUS / file, "--limit", "3")
    assert done.returncode == 0, done.stderr
    title, row = done.stdout.splitlines()[:2]
    assert row.split()[0].startswith("~") and "calls" not in title and "ranges" in title
    assert "samples" in done.stdout
    tree = shown("tree", CORPUS / file).stdout.splitlines()[1]
    assert tree.split()[0].startswith("~")
    assert all(marey.load(CORPUS / file).to_arrow()["sampled"].to_pylist())


def test_times_of_spans_are_exact():
    done = shown("report", CORPUS / "otlp/sdk.json")
    assert "~" not in done.stdout and "GET /cart" in done.stdout


def test_functions_of_py_spy_keep_their_shares():
    folded = (CORPUS / "collapsed/py_spy.folded").read_text()
    expected = collections.Counter()
    for line in folded.splitlines():
        stack, _, weight = line.rpartition(" ")
        if stack:  # py-spy counts samples without Python frames, too
            expected[stack.rpartition(";")[2]] += int(weight)
    assert +self_times(marey.load(CORPUS / "collapsed/py_spy.folded")) == expected


@pytest.mark.parametrize("name", ["collapsed", "speedscope", "pprof", "perf", "pstats", "firefox", "otlp"])
def test_a_file_of_another_format_is_one_line_of_error(name, tmp_path):
    (tmp_path / "x").write_text("nothing of the kind\n")
    done = shown("report", tmp_path / "x", "--from", name)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and str(tmp_path / "x") in done.stderr


@pytest.mark.parametrize("name", ["collapsed", "pprof", "perf", "pstats", "firefox", "otlp", "speedscope"])
def test_a_gzip_bomb_is_refused(name, tmp_path):
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(80 << 20), 9))
    done = shown("report", tmp_path / "bomb.gz", "--from", name)
    assert done.returncode == 2 and "64 MiB" in done.stderr
