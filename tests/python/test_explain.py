"""``marey explain``: its output for people and programs, and the line at the end of ``marey run``."""

import json
import re
import subprocess
import sys

import pytest
from conftest import SOURCE
from running import environment, recorded, write

FIRST_STEP = """
import marey

def compile_model():
    for i in range(2_500_000):
        i * i

def forward():
    for i in range(40_000):
        i * i

def backward():
    for i in range(40_000):
        i * i

def update():
    for i in range(40_000):
        i * i

for step in marey.steps(range(40)):
    if step == 0:
        compile_model()
    forward()
    backward()
    update()
"""
TINY_CALLS = """
def scale(x):
    return x * 3

def total(items):
    sum = 0
    for item in items:
        sum += scale(item)
    return sum

for _ in range(20):
    total(range(20_000))
"""


def explain(folder, *arguments):
    command = [sys.executable, "-m", "marey", "explain", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def steps_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("steps")
    program = write(folder, FIRST_STEP)
    errors, code = recorded([program], folder, run_options=("-q", "-o", "it's.marey"))[1:]
    assert code == 0, errors
    return folder / "it's.marey"


def test_the_command_names_the_claim_the_evidence_the_advice_and_a_command_that_works(steps_file):
    code, out, _ = explain(steps_file.parent, steps_file.name)
    assert code == 0
    first = r"the first (step|of the slow first steps) takes"
    assert re.search(rf"^1\. step\.first, up to [\d.]+ ms \(\d+\.\d%\), certain: {first}", out)
    assert re.search(r"^     step 0: more time in compile_model", out, re.MULTILINE)
    assert "\n   do   " in out
    command = re.search(r"^   see  marey (.*)$", out, re.MULTILINE)[1]
    done = subprocess.run(
        f"{sys.executable} -m marey {command}",
        shell=True,
        cwd=steps_file.parent,
        env=environment(),
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr


def test_the_findings_are_data_too(steps_file):
    code, out, _ = explain(steps_file.parent, steps_file.name, "--json")
    result = json.loads(out)
    assert code == 0 and result["findings"][0]["id"] == "step.first"
    assert {row["finding"] for row in result["finding_evidence"]} == {row["finding"] for row in result["findings"]}
    code, out, _ = explain(steps_file.parent, steps_file.name, "--csv", "--columns", "id,gain_ns", "--limit", "1")
    assert out.splitlines()[0] == "id,gain_ns" and out.splitlines()[1].startswith("step.first,")


def test_findings_can_be_limited_to_a_name(steps_file):
    assert "step.first" in explain(steps_file.parent, steps_file.name, "--for", "STEP.first")[1]
    code, out, _ = explain(steps_file.parent, steps_file.name, "--for", "no such name")
    assert (code, out) == (0, "nothing about 'no such name' stands out\n")


def test_an_empty_trace_has_no_findings(tmp_path):
    (tmp_path / "empty.json").write_text('{"traceEvents": []}')
    assert explain(tmp_path, "empty.json") == (0, "nothing stands out\n", "")


def test_names_with_line_ends_and_quotes_stay_in_their_lines(tmp_path):
    name = "bad\n'name\x1b[31m"
    events = [{"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": i * 1.0, "dur": 0.9} for i in range(20_000)]
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}))
    code, out, _ = explain(tmp_path, "trace.json")
    assert code == 0 and out.startswith("1. calls.tiny") and "\x1b" not in out and "bad\n" not in out


def test_a_run_ends_with_its_first_finding(tmp_path):
    program = write(tmp_path, TINY_CALLS)
    errors, code = recorded([program], tmp_path, run_options=("-o", "it.marey"))[1:]
    assert code == 0
    assert re.search(r"^finding   calls\.tiny, up to .*: scale \(.*program\.py:\d+\) is called", errors, re.MULTILINE)


def test_the_guide_lists_every_rule():
    listed = re.findall(r"^\| `([a-z_.]+)` \|", (SOURCE / "docs" / "guide" / "explain.md").read_text(), re.MULTILINE)
    header = (SOURCE / "src" / "analyze" / "findings" / "finding_rules.cpp").read_text()
    rules = re.findall(r'^    \{"([a-z]+\.[a-z_]+)", ', header, re.MULTILINE)
    assert len(rules) > 20 and listed == rules
