"""The Python members of ``marey.CapturedTraceback``: names and formatted text of its frames, and copies."""

# No `from __future__ import annotations` here: `import marey` would load that module for it alone.

import sys

from marey._marey import CapturedTraceback, symbolize_tracebacks
from marey.results.trace import add_members

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from traceback import StackSummary
    from typing import Any

    _Base = CapturedTraceback
else:
    _Base = object


def _caller_frames(frame: "dict[str, Any]") -> "Iterable[dict[str, Any]]":
    """Return the program frames, innermost first, for a line of code that PyTorch's compiler generated."""
    cache = getattr(sys.modules.get("torch._inductor.codecache"), "PyCodeCache", None)
    if cache is None or not frame["python"] or frame["filename"] not in cache.linemaps:
        return ()
    found = cache.stack_frames_for_code(frame["filename"], frame["line"]) or ()
    return [{**entry, "python": True, "inlined": True} for entry in found]


def _named(tbs: "Iterable[CapturedTraceback]") -> "list[list[dict[str, Any]]]":
    """Return the frames of each traceback, innermost first."""
    lists = symbolize_tracebacks(tbs)
    if "torch._inductor.codecache" not in sys.modules:
        return lists
    return [[entry for frame in frames for entry in (*_caller_frames(frame), frame)] for frames in lists]


def _summary_of(frames: "list[dict[str, Any]]") -> "StackSummary":
    from traceback import FrameSummary, StackSummary

    stack = StackSummary()
    for frame in reversed(frames):
        stack.append(FrameSummary(frame["filename"], frame["line"], frame["name"], lookup_line=False))
    return stack


class _Members(_Base):
    """Members that are added to ``marey.CapturedTraceback``, a type of the extension."""

    def summary(self) -> "StackSummary":
        """Return a traceback.StackSummary, outermost first; empty if the frames were released."""
        return _summary_of(_named([self])[0])

    def format(self) -> "list[str]":
        """Return lines like those of traceback.format_list."""
        return _summary_of(_named([self])[0]).format()

    @staticmethod
    def format_all(tbs: "Iterable[CapturedTraceback]", /) -> "list[list[str]]":
        """Return the result of format() for each, symbolized together."""
        return [_summary_of(frames).format() for frames in _named(tbs)]

    def symbolize(self) -> "list[dict[str, Any]]":
        """Return the frames, innermost first, as dicts: name, filename, line, python, inlined."""
        return [dict(frame) for frame in _named([self])[0]]

    def __copy__(self) -> "Any":
        """Return a copy with the same frames, and the attributes of a subclass."""
        twin = self._twin()
        getattr(twin, "__dict__", {}).update(getattr(self, "__dict__", {}))
        return twin

    def __deepcopy__(self, memo: "dict[int, Any]", /) -> "Any":
        """Return a copy with the same frames, which are immutable, and copied attributes."""
        from copy import deepcopy

        memo[id(self)] = twin = self._twin()
        getattr(twin, "__dict__", {}).update(deepcopy(getattr(self, "__dict__", {}), memo))
        return twin

    def __reduce__(self) -> "tuple[Any, ...]":
        """Pickle without the frames, which belong to this process."""
        return type(self), ()


add_members(CapturedTraceback, _Members)
