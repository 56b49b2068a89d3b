"""``Trace.explain()``: planted causes come first, and even programs give no findings. Run by ``make test-explain``.

They depend on how much of the machine a program gets, so they are not among the tests of every change.
"""

import functools
import json

import pytest
from even_programs import EVEN
from planted_causes import PLANTED
from recorded_causes import record

import marey


@pytest.fixture(scope="module")
def findings_of(tmp_path_factory):
    """Record a program, once, and return its findings, each with its evidence."""

    @functools.cache
    def findings(name, text, options="{}"):
        folder = tmp_path_factory.mktemp(name)
        record(folder, text, options)
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
