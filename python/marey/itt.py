"""Marks and ranges for ITT (VTune and related tools).

The collector is the library named by ``INTEL_LIBITTNOTIFY64``, which tools set for the programs that they start.
Without a collector, calls have no effect. If that library cannot be used, ``is_available()`` returns False and
everything else here raises ``marey.Error``.
"""

from __future__ import annotations

from contextlib import contextmanager

from marey import _marey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["is_available", "mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def is_available() -> bool:
    """Return whether ITT can be used."""
    return _marey.itt.is_available()


def mark(msg: str) -> None:
    """Mark a point in time: a task that ends immediately."""
    _marey.itt.mark(msg)


def range_push(msg: str) -> int:
    """Begin a task on this thread and return its depth, from 0."""
    return _marey.itt.range_push(msg)


def range_pop() -> int:
    """End the innermost task of range_push() on this thread and return its depth; -1 if there is none."""
    return _marey.itt.range_pop()


def range_start(msg: str) -> int:
    """Begin a task that any thread may end, and return the id for range_end()."""
    return _marey.itt.range_start(msg)


def range_end(range_id: int) -> None:
    """End a task that range_start() began."""
    _marey.itt.range_end(range_id)


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Mark a block, or the calls of a function, as a task named ``msg.format(*args, **kwargs)``."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
