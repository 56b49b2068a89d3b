"""Commands show samples: by function and line, in trees, in stacks and in exported files."""

import json
import subprocess
import sys

import pytest

PROGRAM = """
import time

def burn_most(until):
    while time.thread_time() < until:
        sum(range(200))

def burn_some(until):
    while time.thread_time() < until:
        sum(range(200))

def handle():
    burn_most(time.thread_time() + 0.3)
    burn_some(time.thread_time() + 0.1)
"""
RECORD = """
import marey, program
with marey.profile(sample=1000) as profile:
    with marey.record_function("request"):
        program.handle()
    program.burn_some(program.time.thread_time() + 0.1)
profile.trace.save("ranges.marey")
with marey.profile(sample=1000) as profile:
    program.handle()
profile.trace.save("samples.marey")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sampled")
    (folder / "program.py").write_text(PROGRAM)
    subprocess.run([sys.executable, "-c", RECORD], cwd=folder, check=True)
    return folder


def marey(folder, *arguments):
    command = [sys.executable, "-m", "marey", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def rows(folder, *arguments):
    return json.loads(marey(folder, *arguments, "--json"))["sampled"]


def named(rows, end):
    found = [row for row in rows if row["name"].endswith(end)]
    assert len(found) == 1, rows
    return found[0]


def test_a_capture_with_only_samples_has_a_report_of_functions(folder):
    found = rows(folder, "report", "samples.marey")
    most, some, handle = (named(found, f"): {name}") for name in ("burn_most", "burn_some", "handle"))
    assert most["total_ns"] / (most["total_ns"] + some["total_ns"]) == pytest.approx(0.75, abs=0.06)
    assert handle["total_ns"] >= most["total_ns"] + some["total_ns"] > 0.3e9
    assert handle["self_ns"] < 0.1 * handle["total_ns"]
    text = marey(folder, "report", "samples.marey")
    assert "burn_most" in text and "a second of CPU time, by " in text and "estimated from samples" in text


def test_a_capture_with_ranges_shows_its_samples_below_them(folder):
    text = marey(folder, "report", "ranges.marey")
    assert text.index("request") < text.index("sampled functions") < text.index("burn_most")
    ranges = {row["name"]: row for row in rows(folder, "report", "ranges.marey", "--samples", "--by", "range")}
    assert ranges["request"]["total_ns"] / ranges["(no range)"]["total_ns"] == pytest.approx(4, rel=0.25)


def test_trees_have_the_functions_below_the_range(folder):
    nodes = json.loads(marey(folder, "tree", "ranges.marey", "--inside", "request", "--json"))["tree"]
    assert nodes[0]["name"] == "request" and nodes[0]["count"] == 1
    below = [node for node in nodes if node["parent"] == nodes[0]["node"]]
    assert sum(node["total_ns"] for node in below) + nodes[0]["self_ns"] == pytest.approx(
        nodes[0]["total_ns"], rel=0.05
    )
    most, some = (
        next(node for node in nodes if node["name"].endswith(f"): {name}")) for name in ("burn_most", "burn_some")
    )
    assert most["total_ns"] / some["total_ns"] == pytest.approx(3, rel=0.4)


def test_stacks_add_up_to_the_cpu_time(folder):
    values = [int(line.rpartition(" ")[2]) for line in marey(folder, "stacks", "samples.marey").splitlines()]
    totals = json.loads(marey(folder, "report", "samples.marey", "--json"))["sampled_totals"]
    assert sum(values) == totals["running_ns"]


def test_lines_show_the_source_with_the_time_of_each_line(folder):
    found = rows(folder, "lines", "samples.marey", "program.py")
    lines = {row["line"]: row for row in found}
    assert {row["file"] for row in found} == {str(folder / "program.py")}
    hot = PROGRAM.splitlines().index("        sum(range(200))") + 1
    assert lines[hot]["total_ns"] > 0.5 * max(row["total_ns"] for row in found)
    text = marey(folder, "lines", "samples.marey", "program.py").splitlines()
    assert [line for line in text if line.endswith("        sum(range(200))") and "ms" in line]
    assert [line.split() for line in text if line.endswith("import time")] == [["2", "import", "time"]]


@pytest.mark.parametrize("suffix", [".json", ".pftrace", ".speedscope.json", ".pb.gz", ".folded", ".callgrind", ".svg"])
def test_every_kind_of_export_has_the_functions(folder, suffix):
    marey(folder, "export", "samples.marey", "-o", f"out{suffix}", "--force")
    data = (folder / f"out{suffix}").read_bytes()
    if suffix.endswith(".gz"):
        data = __import__("gzip").decompress(data)
    assert b"burn_most" in data


def test_a_capture_without_samples_says_how_to_get_them(folder):
    with pytest.raises(subprocess.CalledProcessError) as error:
        (folder / "x.folded").write_text("a;b 1\n")
        marey(folder, "lines", "x.folded")
    assert "marey run --sample" in error.value.stderr
