"""Programs whose framework makes the profiler have the same results with both; `make parity-torch` shows all of them.

Frameworks that are not installed are skipped (tests/torch/parity/frameworks.txt).
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "parity"))
import compare
import frameworks

# (framework, what is compared) -> why Marey differs.
_OPEN = "In PyTorch, a range that is running when the recording ends is async, and not the parent of those in it."
ACCEPTED = {
    ("Lightning", "parents of operators"): _OPEN,
    ("Lightning", "input values, where PyTorch reports any"): "They are compared in order, which differs in some runs.",
    ("Lightning", "total memory by operator, within 1 %"): _OPEN,
    ("Lightning", "program functions in stacks"): "The function that calls step() ends before the step does.",
    ("Lightning", "rows of the table"): "Allocations outside of operators: others in each run.",
    ("HF Trainer", "program functions in stacks"): "The function that calls step() ends before the step does.",
}


@pytest.mark.parametrize("name", frameworks.FRAMEWORKS)
def test_a_framework_that_makes_the_profiler_has_the_results_of_pytorchs(name):
    if not frameworks.is_installed(name):
        pytest.skip(f"{frameworks.FRAMEWORKS[name][1]} is not installed")
    upstream, marey = (compare.record(which, name, "cpu") for which in ("torch", "marey"))
    results = {what: (found, count) for what, found, count in compare.comparisons(upstream, marey, "cpu")}
    assert results["operators, by name and count"][1] > 100
    different = {what: cell for what, cell in results.items() if cell[0] != cell[1]}
    assert {what: cell for what, cell in different.items() if (name, what) not in ACCEPTED} == {}
