"""``marey.check``: whether recordings keep rules."""

# No `from __future__ import annotations` here: `import marey` would load that module for it alone.

from marey import _marey
from marey.results.compare import runs_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike
    from typing import Any

    from marey._marey import Trace


def check(
    runs: "Trace | str | PathLike[str] | Iterable[Trace | str | PathLike[str]]",
    budgets: "str | PathLike[str]" = "marey.budgets",
    rules: str = "",
    baseline: "str | PathLike[str] | None" = None,
    step: str = "",
    trust_machine: bool = False,
) -> "dict[str, Any]":
    """Check recordings of a program, like the output of ``marey check --json``.

    Raises ``marey.Error`` for wrong rules, and for a rule that matches nothing.

    Args:
        runs: A trace or a file; or several runs, which tell more about times.
        budgets: A file with rules.
        rules: The rules themselves, one on each line; then there is no file.
        baseline: Values of earlier runs, which ``marey check --write-baseline`` wrote.
        step: The names of the ranges that are steps, with ``*`` for any text; by default those of PyTorch.
        trust_machine: Whether to compare times with a baseline of another machine.
    """
    checked = _marey.BudgetCheck(rules or _text_of(budgets), "rules" if rules else str(budgets), step)
    for trace, name in runs_of(runs):
        checked.add(trace, name)
    values = None if baseline is None else _text_of(baseline)
    return {table.name: table.value() for table in checked.tables(values, str(baseline), trust_machine)}


def _text_of(path: "str | PathLike[str]") -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
