"""``marey.diff``: what changed between recordings."""

# No `from __future__ import annotations` here: `import marey` would load that module for it alone.

from marey import _marey
from marey._marey import Trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from os import PathLike
    from typing import Any


def runs_of(
    given: "Trace | str | PathLike[str] | Iterable[Trace | str | PathLike[str]]",
) -> "Iterator[tuple[Trace, str]]":
    """Yield each run with its name, and without the frames of imports."""
    runs: list[Any] = [given] if isinstance(given, (Trace, str)) or hasattr(given, "__fspath__") else list(given)
    for run in runs:
        trace = run if isinstance(run, Trace) else _marey.load(run, "", 0)
        yield trace._filtered([], True, False), "trace" if run is trace else str(run)


def diff(
    old: "Trace | str | PathLike[str] | Iterable[Trace | str | PathLike[str]]",
    new: "Trace | str | PathLike[str] | Iterable[Trace | str | PathLike[str]]",
    by: str = "path",
    metric: str = "self",
    rename: "Mapping[str, str] | None" = None,
    step: str = "",
    fold_numbers: bool = False,
    effect: float = 0.05,
    in_turns: bool = False,
    rows: "int | None" = None,
) -> "dict[str, Any]":
    """Compare recordings, like the output of ``marey diff --json``.

    Args:
        old: The old run: a trace or a file; or several runs, which tell what is more than chance.
        new: The new run, or runs.
        by: The rows: path, name, function, file, module or step.
        metric: The values: self, total, calls, bytes, peak or gpu.
        rename: New names of old names, functions or files.
        step: The names of the ranges that are steps, with ``*`` for any text; by default those of PyTorch.
        fold_numbers: Whether names that differ only in numbers are one.
        effect: The smallest change of interest; 0.05 is 5 %.
        in_turns: Whether the runs were recorded in turns: old, new, new, old, and so on.
        rows: How many rows to return; all by default.
    """
    comparison = _marey.RunComparison(by, metric, step, list((rename or {}).items()), fold_numbers, effect, in_turns)
    for is_new, side in enumerate((old, new)):
        for trace, name in runs_of(side):
            comparison.add(trace, bool(is_new), name)
    return {table.name: table.value() for table in comparison.tables(rows)}
