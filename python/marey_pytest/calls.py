"""Records the calls of a test and counts them."""

from __future__ import annotations

from fnmatch import fnmatchcase
from importlib.util import find_spec

import marey
from marey._text import dotted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def matches(name: str, pattern: str) -> bool:
    """Return whether a range is meant by a pattern: its dotted name, or the last parts of it."""
    full = dotted(name)
    return fnmatchcase(full, pattern) or fnmatchcase(full, f"*.{pattern}") or name == pattern


class RecordedCalls:
    """The calls of a test, and of the threads, tasks and processes that it starts, while it runs and afterwards."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        """`names`: those that will be asked for. PyTorch's operators ("aten::copy_") are recorded if one is."""
        profile: type[marey.profile] = marey.profile
        if any("::" in name for name in names) and find_spec("torch") is not None:
            from marey.torch import profile
        self._profile = profile(threads="tasks", with_stack=True, c_calls="all", config=True)

    def __enter__(self) -> RecordedCalls:
        self._profile.start()
        return self

    def __exit__(self, *_error: Any) -> None:
        self._profile.stop()

    @property
    def trace(self) -> marey.Trace:
        """The trace so far, as a ``marey.Trace``."""
        session = self._profile._session
        return session.snapshot() if session is not None else self._profile.trace

    def calls(self, pattern: str) -> int:
        """Return how often a function was called, or a marked range was entered, so far.

        `pattern` is a dotted name ("shop.cart.load", "sqlite3.Cursor.execute") or its last parts ("load"), and may
        contain the wildcards of ``fnmatch``. A generator or coroutine counts once, however often it is resumed.
        """
        if not isinstance(pattern, str):
            raise TypeError(f"calls: expected a name, got {pattern!r}")
        return sum(count for name, count in self.counts().items() if matches(name, pattern))

    def counts(self) -> dict[str, int]:
        """Return how often each function was called so far, by the names that reports show."""
        totals: dict[str, int] = {}
        for average in self.trace.key_averages():
            totals[average.key] = totals.get(average.key, 0) + average.count
        return totals
