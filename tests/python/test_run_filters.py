"""`marey run` with options that select the recorded calls."""

import pytest
from running import captures, functions, recorded

PROGRAM = """import json

def leaf():
    pass

def outer(n):
    leaf()
    if n:
        outer(n - 1)

outer(5)
json.dumps({"a": [1, 2]}, indent=1)
"""


def counts(folder, *options):
    (folder / "program.py").write_text(PROGRAM)
    out, errors, code = recorded(["program.py"], folder, run_options=("-q", *options))
    assert (out, code) == ("", 0)
    assert errors == (
        "marey: the call budget is used up: later calls are not recorded\n" if "--budget" in options else ""
    )
    return functions(captures(folder)[0])


def test_only_included_calls_are_recorded(tmp_path):
    found = counts(tmp_path, "--include", "program.py")
    assert (found["outer"], found["leaf"]) == (6, 6)
    assert not any("JSONEncoder" in name for name in found)


def test_excluded_calls_are_not_recorded_and_the_option_can_be_repeated(tmp_path):
    found = counts(tmp_path, "--exclude", "json", "--exclude", "json.encoder")
    assert found["outer"] == 6
    assert not any("JSONEncoder" in name for name in found)


def test_calls_within_libraries_are_folded(tmp_path):
    found = counts(tmp_path, "--fold-libraries")
    assert (found["outer"], found["dumps"]) == (6, 1)
    assert not any("JSONEncoder" in name for name in found)


@pytest.mark.parametrize(("option", "value"), [("--max-depth", "4"), ("--budget", "5")])
def test_depth_and_number_of_calls_have_limits(tmp_path, option, value):
    found = counts(tmp_path, option, value, "--include", "program.py")
    assert 0 < found["outer"] + found["leaf"] <= 7


def test_short_calls_are_left_out(tmp_path):
    found = counts(tmp_path, "--min-duration", "10s")
    assert found["leaf"] == 0


GARBAGE = """import gc

def numbers():
    yield from range(1000)

def collect():
    for _ in range(20):
        gc.collect()

sum(numbers())
collect()
"""


def test_the_summary_counts_calls_but_not_parts_or_collections(tmp_path):
    (tmp_path / "program.py").write_text(GARBAGE)
    _, errors, code = recorded(["program.py"], tmp_path, run_options=("--no-c-calls", "--include", "__main__"))
    assert code == 0
    assert ": 3 calls in " in errors  # the module, numbers, collect
    assert "gc        2" in errors and "): numbers" in errors


def test_a_capture_with_only_collections_counts_as_empty(tmp_path):
    (tmp_path / "program.py").write_text(GARBAGE)
    _, errors, code = recorded(["program.py"], tmp_path, run_options=("--include", "no_such_module"))
    assert code == 0
    assert "empty: no call matched the options" in errors
