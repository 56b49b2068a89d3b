"""Profiles that Marey writes for other tools, read by the readers of those tools and compared with the trace."""

import collections
import gzip
import json
import pstats
import re
import shutil
import subprocess
import sys

import pytest
from conftest import SOURCE
from running import environment, recorded

import marey

PROGRAM = """
import math

def inner(n):
    return [math.sqrt(i) for i in range(n)]

def recursive(n):
    return 0 if n == 0 else 1 + recursive(n - 1)

def main():
    for n in (10, 20, 30):
        inner(n)
    recursive(5)

main()
"""

# Traces that use everything in the model, which Marey made from random numbers.
RANDOM = sorted((SOURCE / "tests/data/corpus/saved_trace").glob("random*.trace"))


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    folder = tmp_path_factory.mktemp("profiles")
    (folder / "app.py").write_text(PROGRAM)
    _, _, code = recorded(["app.py"], folder, run_options=["-q", "-o", "app.marey"])
    assert code == 0
    return marey.load(folder / "app.marey")


@pytest.fixture(scope="module", params=["app", *[file.name for file in RANDOM]])
def trace(request, app):
    return app if request.param == "app" else marey.load(RANDOM[0].parent / request.param)


def function_of(row, sites):
    """Name, file and line of a range as profiles show them."""
    site = sites[row["site"]]
    name, file = site["name"], site["file"] or ""
    if site["scope"] == "python_function" and (found := re.match(r"(.*?)\((\d+)\): (.+)", name, re.DOTALL)):
        name, file = found[3], file or found[1]
    return name, file, site["line"] or 0


def host_ranges(trace):
    """The ranges of threads, each with its function."""
    ranges, sites, tracks = (trace.to_arrow(name).to_pylist() for name in ("ranges", "sites", "tracks"))
    is_host = []
    for row in ranges:
        kind, device = (tracks[row["track"]][key] for key in ("kind", "device"))
        crosses = kind == "overlap"  # then it is where its parent is
        is_host.append(
            is_host[row["parent"]]
            if crosses and row["parent"] is not None
            else kind == "thread" or (crosses and device == "cpu")
        )
        if is_host[-1]:
            yield row, function_of(row, sites)


def self_times(trace):
    times = collections.Counter()
    for row, function in host_ranges(trace):
        times[function] += row["self_ns"]
    return times


def read_pprof(path):
    from pprof_messages import Profile

    profile = Profile.FromString(gzip.decompress(path.read_bytes()))
    texts = profile.string_table
    functions = {its.id: (texts[its.name], texts[its.filename], its.start_line) for its in profile.function}
    locations = {its.id: functions[its.line[0].function_id] for its in profile.location}
    types = [(texts[its.type], texts[its.unit]) for its in profile.sample_type]
    samples = []
    for sample in profile.sample:
        labels = {texts[its.key]: texts[its.str] if its.str else its.num for its in sample.label}
        values = dict(zip([name for name, _ in types], sample.value, strict=True))
        samples.append(([locations[each] for each in sample.location_id], values, labels))
    return types, samples, profile


def test_self_times_in_pprof_are_those_of_the_trace(trace, tmp_path):
    pytest.importorskip("google.protobuf")
    trace.export(tmp_path / "x.pb.gz")
    types, samples, profile = read_pprof(tmp_path / "x.pb.gz")
    assert types[:2] == [("time", "nanoseconds"), ("calls", "count")]
    assert profile.string_table[0] == "" and profile.string_table[profile.default_sample_type] == "time"
    times = collections.Counter()
    for stack, values, labels in samples:
        times[stack[0]] += values["time"]
        assert labels["thread"]
    assert +times == +self_times(trace)
    assert len({(tuple(stack), *sorted(labels.items())) for stack, _, labels in samples}) <= len(samples)


def test_pprof_stacks_are_those_of_the_calls(app, tmp_path):
    pytest.importorskip("google.protobuf")
    app.export(tmp_path / "x.pb.gz")
    _, samples, _ = read_pprof(tmp_path / "x.pb.gz")
    calls = {tuple(name for name, _, _ in reversed(stack)): values["calls"] for stack, values, _ in samples}
    assert calls["<module>", "main", "inner"] == 3
    assert calls["<module>", "main", *["recursive"] * 6] == 1
    lines = {line for stack, _, _ in samples for name, file, line in stack if name == "inner"}
    assert lines == {4}


def test_pstats_reads_the_times_and_callers_of_the_trace(trace, tmp_path):
    trace.export(tmp_path / "x.prof")
    expected = self_times(trace)
    if not expected:
        return
    stats = pstats.Stats(str(tmp_path / "x.prof")).stats
    for (file, line, name), (primitive, calls, self_time, total, callers) in stats.items():
        assert round(self_time * 1e9) == expected.pop((name, "" if file == "~" else file, line))
        assert primitive <= calls and total >= 0
        if callers:
            assert sum(each[1] for each in callers.values()) <= calls
    assert not expected


def test_pstats_counts_recursive_calls_as_cprofile_does(app, tmp_path):
    app.export(tmp_path / "x.prof")
    stats = pstats.Stats(str(tmp_path / "x.prof"))
    stats.sort_stats("cumulative").print_callers()
    by_name = {name: row for (_, _, name), row in stats.stats.items()}
    primitive, calls, _, total, callers = by_name["recursive"]
    assert (primitive, calls) == (1, 6)
    assert {name: each[:2] for (_, _, name), each in callers.items()} == {"main": (1, 1), "recursive": (1, 5)}
    assert by_name["recursive"][2] <= total <= by_name["main"][3] <= app.window_ns / 1e9


def callgrind_self_times(path):
    """Self times by function, in a reader written from the format's description in Valgrind's manual."""
    names, files, times = {}, {}, collections.Counter()
    current, skip = None, False
    for text in path.read_text("utf-8").splitlines():
        if found := re.match(r"(fl|fn|cfi|cfn)=\((\d+)\)(?: (.*))?$", text):
            kind, number, name = found.groups()
            known = files if kind in ("fl", "cfi") else names
            if name is not None:
                known[number] = name
            if kind == "fl":
                file = known[number]
            elif kind == "fn":
                current = (known[number], file)
        elif text.startswith("calls="):
            skip = True
        elif found := re.match(r"(\d+) (\d+)$", text):
            if not skip:
                times[current] += int(found[2])
            skip = False
    return times


def test_self_times_in_callgrind_are_those_of_the_trace(trace, tmp_path):
    trace.export(tmp_path / "x.callgrind")
    expected = collections.Counter()
    for (name, file, _), time in self_times(trace).items():
        clean = [re.sub(r"[\x00-\x1f]", " ", text) or "???" for text in (name, file)]
        expected[tuple(clean)] += time
    assert +callgrind_self_times(tmp_path / "x.callgrind") == +expected
    total = re.search(r"^summary: (\d+)$", (tmp_path / "x.callgrind").read_text("utf-8"), re.MULTILINE)
    assert int(total[1]) == sum(expected.values())


@pytest.mark.skipif(shutil.which("callgrind_annotate") is None, reason="callgrind_annotate (valgrind) is not installed")
def test_callgrind_annotate_reads_the_profile(app, tmp_path):
    app.export(tmp_path / "x.callgrind")
    command = ["callgrind_annotate", "--threshold=100", "--inclusive=yes", "x.callgrind"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "inner" in done.stdout and "recursive" in done.stdout
    totals = {name: row["total"] for name, row in inclusive_times(app).items()}
    shown = re.search(r"^\s*([\d,]+) \([^)]*\)\s+\S*app\.py:main", done.stdout, re.MULTILINE)
    assert int(shown[1].replace(",", "")) == totals["main"]


def inclusive_times(trace):
    rows = collections.defaultdict(lambda: {"total": 0})
    for row, (name, _, _) in host_ranges(trace):
        rows[name]["total"] += row["duration_ns"]
    return rows


def test_a_trace_without_ranges_can_be_written(tmp_path):
    with marey.profile() as profiler:
        pass
    for suffix in (".prof", ".callgrind", ".pb.gz"):
        profiler.trace.export(tmp_path / f"empty{suffix}")
        assert (tmp_path / f"empty{suffix}").stat().st_size > 0


def chrome_trace(path, ranges):
    """Write a Chrome trace of (name, start, duration), in microseconds."""
    events = [{"ph": "X", "pid": 1, "tid": 1, "name": n, "ts": start, "dur": time} for n, start, time in ranges]
    path.write_text(json.dumps(events))


def test_the_stacks_of_a_large_pprof_file_are_cut_and_the_command_says_so(tmp_path):
    deep = [(f"level{i}", 0, 10_000) for i in range(900)]
    leaves = [(f"leaf{i}", i + 1, 1) for i in range(6000)]
    chrome_trace(tmp_path / "deep.json", deep + leaves)  # 5.4 million entries of stacks
    command = [sys.executable, "-m", "marey", "export", "deep.json", "-o", "deep.pb"]
    done = subprocess.run([*command, "--to", "pprof"], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0 and "marey: stacks are cut after 900 levels: " in done.stderr
    assert (tmp_path / "deep.pb").stat().st_size < 1_000_000
    assert sum(marey.load(tmp_path / "deep.pb").to_arrow()["self_ns"].to_pylist()) == 10_000_000
    chrome_trace(tmp_path / "deep.json", deep + leaves[:100])
    done = subprocess.run(
        [*command, "--to", "pprof", "--force"], cwd=tmp_path, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0 and "cut" not in done.stderr


def test_the_otlp_export_counts_spans_and_says_why_there_is_none(tmp_path):
    (tmp_path / "calls.folded").write_text("main;parse 30\nmain;load 20\n")
    chrome_trace(tmp_path / "marked.json", [("outer", 0, 100), ("inner", 10, 5)])
    for name, options, expected in (
        ("calls.folded", [], ["0 spans", "no spans: OTLP has the ranges that the program marks"]),
        ("marked.json", [], ["2 spans"]),
        ("marked.json", ["--min-duration", "50us"], ["1 span,"]),
        ("marked.json", ["--min-duration", "50ms"], ["0 spans", "--min-duration leaves out short ones"]),
    ):
        command = [sys.executable, "-m", "marey", "export", name, "-o", "x.otlp.json", "--force", *options]
        done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True)
        assert done.returncode == 0 and all(text in done.stderr for text in expected), done.stderr
        spans = json.loads((tmp_path / "x.otlp.json").read_text())["resourceSpans"][0]["scopeSpans"][0]["spans"]
        assert f"{len(spans)} span" in done.stderr
