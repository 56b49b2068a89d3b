"""Marks and ranges for NVTX.

``is_available()`` returns whether Marey was built with the NVTX header; without it, marks and ranges raise
``marey.Error``. NVTX looks for the tool that receives its calls when it is first used; without a tool, calls have no
effect. ``is_listening()`` returns whether that tool is Marey.
"""

from __future__ import annotations

from contextlib import contextmanager

from marey import _marey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["is_available", "is_listening", "mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def is_available() -> bool:
    """Return whether NVTX can be used."""
    return _marey.nvtx.is_available()


def is_listening() -> bool:
    """Return whether Marey receives NVTX calls in this process, as under ``marey run --nvtx``.

    If so, running sessions record the NVTX ranges and marks of libraries. It cannot be enabled later: a library looks
    for its tool once, at its first NVTX call.
    """
    return _marey.nvtx.is_listening()


def mark(msg: str) -> None:
    """Mark a point in time."""
    _marey.nvtx.mark(msg)


def range_push(msg: str) -> int:
    """Begin a range on this thread and return its depth, from 0."""
    return _marey.nvtx.range_push(msg)


def range_pop() -> int:
    """End the innermost range of range_push() on this thread and return its depth; -1 if there is none.

    Ranges pushed by an emitter are not affected.
    """
    return _marey.nvtx.range_pop()


def range_start(msg: str) -> int:
    """Begin a range that any thread may end, and return the id for range_end()."""
    return _marey.nvtx.range_start(msg)


def range_end(range_id: int) -> None:
    """End a range that range_start() began."""
    _marey.nvtx.range_end(range_id)


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Mark a block, or the calls of a function, as a range named ``msg.format(*args, **kwargs)``."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
