"""``marey explain`` and ``Trace.explain()``: planted causes come first, and even programs give no findings."""

import functools
import json
import re
import subprocess
import sys

import pytest
from conftest import SOURCE
from even_programs import EVEN
from planted_causes import PLANTED
from running import environment, plain, recorded, write

import marey

# Takes long to import.
BIG_LIBRARY = """
for i in range(8_000_000):
    i * i
"""

# Importing the standard library is not part of the recording: on a busy machine, it would be a finding.
RECORD = """
import asyncio, concurrent.futures.thread, encodings.idna, gc, json, selectors, socket, subprocess, sys, threading, time
import marey, marey.recording.step_loop

options = json.loads(sys.argv[1])
code = compile(open("program.py").read(), "program.py", "exec")
with marey.profile(with_stack=True, **{"c_calls": False, **options}) as prof:
    exec(code, {"__name__": "__main__"})
prof.trace.save("it.marey")
"""


@pytest.fixture(scope="module")
def findings_of(tmp_path_factory):
    """Record a program, once, and return its findings, each with its evidence."""

    @functools.cache
    def findings(name, text, options="{}"):
        folder = tmp_path_factory.mktemp(name)
        for file, content in (("big_library.py", BIG_LIBRARY), ("program.py", text), ("record.py", RECORD)):
            write(folder, content, file)
        errors, code = plain(["record.py", options], folder)[1:]
        assert code == 0, errors
        found = marey.load(folder / "it.marey").explain()
        rows = {row["finding"]: [] for row in found["findings"]}
        for row in found["finding_evidence"]:
            rows[row["finding"]].append(row)
        return [(row, rows[row["finding"]]) for row in found["findings"]]

    return findings


def findings_of_planted(findings_of, name):
    _, options, text = PLANTED[name]
    return findings_of(name, text, json.dumps(options))


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_cause_is_found_with_evidence(findings_of, name):
    wanted = PLANTED[name][0]
    found = {row["id"]: (row, evidence) for row, evidence in findings_of_planted(findings_of, name)}
    assert wanted in found
    row, evidence = found[wanted]
    assert evidence and row["advice"] and row["command"]
    assert any(value for value in (row["gain_ns"], row["gain_bytes"]))
    numbers = [each[key] for each in evidence for key in ("count", "time_ns", "bytes")]
    assert any(number is not None for number in numbers)


def test_nearly_every_planted_cause_comes_first(findings_of):
    first = {name: findings_of_planted(findings_of, name)[0][0]["id"] for name in PLANTED}
    right = [name for name, (wanted, _, _) in PLANTED.items() if first[name] == wanted]
    assert len(PLANTED) == 14
    assert len(right) >= 12, first


@pytest.mark.parametrize("name", EVEN)
def test_an_even_program_has_no_findings(findings_of, name):
    found = findings_of(name, EVEN[name])
    assert [(row["id"], row["claim"]) for row, _ in found] == []


def explain(folder, *arguments):
    command = [sys.executable, "-m", "marey", "explain", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def steps_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("steps")
    program = write(folder, PLANTED["first_step"][2])
    errors, code = recorded([program], folder, run_options=("-q", "-o", "it's.marey"))[1:]
    assert code == 0, errors
    return folder / "it's.marey"


def test_the_command_names_the_claim_the_evidence_the_advice_and_a_command_that_works(steps_file):
    code, out, _ = explain(steps_file.parent, steps_file.name)
    assert code == 0
    assert re.search(r"^1\. step\.first, up to [\d.]+ ms \(\d+\.\d%\), certain: the first step takes", out)
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
    program = write(tmp_path, PLANTED["tiny_calls"][2])
    errors, code = recorded([program], tmp_path, run_options=("-o", "it.marey"))[1:]
    assert code == 0
    assert re.search(r"^finding   calls\.tiny, up to .*: scale \(.*program\.py:\d+\) is called", errors, re.MULTILINE)


def test_the_guide_lists_every_rule():
    listed = re.findall(r"^\| `([a-z_.]+)` \|", (SOURCE / "docs" / "guide" / "explain.md").read_text(), re.MULTILINE)
    header = (SOURCE / "src" / "analyze" / "findings" / "findings.cpp").read_text()
    rules = re.findall(r'^    \{"([a-z]+\.[a-z_]+)", "', header, re.MULTILINE)
    assert len(rules) > 20 and listed == rules
