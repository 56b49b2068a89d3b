"""Summaries and formatted text of captured tracebacks."""

from __future__ import annotations

import sys
import traceback

from marey._marey import symbolize_tracebacks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from marey._marey import CapturedTraceback

    _Frame = dict[str, Any]


def _caller_frames(frame: _Frame) -> Iterable[_Frame]:
    """Return the program frames, innermost first, for a line of code that PyTorch's compiler generated."""
    cache = getattr(sys.modules.get("torch._inductor.codecache"), "PyCodeCache", None)
    if cache is None or not frame["python"] or frame["filename"] not in cache.linemaps:
        return ()
    found = cache.stack_frames_for_code(frame["filename"], frame["line"]) or ()
    return [{**entry, "python": True, "inlined": True} for entry in found]


def _named(tbs: Iterable[CapturedTraceback]) -> list[list[_Frame]]:
    """Return the frames of each traceback, innermost first."""
    lists = symbolize_tracebacks(tbs)
    if "torch._inductor.codecache" not in sys.modules:
        return lists
    return [[entry for frame in frames for entry in (*_caller_frames(frame), frame)] for frames in lists]


def _summary_of(frames: list[_Frame]) -> traceback.StackSummary:
    stack = traceback.StackSummary()
    for frame in reversed(frames):
        stack.append(traceback.FrameSummary(frame["filename"], frame["line"], frame["name"], lookup_line=False))
    return stack


def symbolize_one(tb: CapturedTraceback) -> list[_Frame]:
    """Return the frames of one traceback, innermost first, as dicts that the caller may change."""
    return [dict(frame) for frame in _named([tb])[0]]


def summary(tb: CapturedTraceback) -> traceback.StackSummary:
    """Return a StackSummary, outermost first; empty if the frames were released."""
    return _summary_of(_named([tb])[0])


def format_one(tb: CapturedTraceback) -> list[str]:
    """Return lines like those of traceback.format_list."""
    return summary(tb).format()


def format_all(tbs: Iterable[CapturedTraceback]) -> list[list[str]]:
    """Return the result of format_one for each, looking up every frame only once."""
    return [_summary_of(frames).format() for frames in _named(tbs)]
