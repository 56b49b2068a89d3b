"""Summaries and formatted text of captured tracebacks."""

import sys
import traceback

from marey._marey import symbolize_tracebacks


def _caller_frames(frame):
    """Return the program frames, innermost first, for a line of code that PyTorch's compiler generated."""
    cache = getattr(sys.modules.get("torch._inductor.codecache"), "PyCodeCache", None)
    if cache is None or not frame["python"] or frame["filename"] not in cache.linemaps:
        return ()
    found = cache.stack_frames_for_code(frame["filename"], frame["line"]) or ()
    return [{**entry, "python": True, "inlined": True} for entry in found]


def _named(tbs):
    """Return the frames of each traceback, innermost first."""
    lists = symbolize_tracebacks(tbs)
    if "torch._inductor.codecache" not in sys.modules:
        return lists
    return [[entry for frame in frames for entry in (*_caller_frames(frame), frame)] for frames in lists]


def _summary_of(frames):
    stack = traceback.StackSummary()
    for frame in reversed(frames):
        stack.append(traceback.FrameSummary(frame["filename"], frame["line"], frame["name"], lookup_line=False))
    return stack


def symbolize_one(tb):
    """Return the frames of one traceback, innermost first, as dicts that the caller may change."""
    return [dict(frame) for frame in _named([tb])[0]]


def summary(tb):
    """Return a StackSummary, outermost first; empty if the frames were released."""
    return _summary_of(_named([tb])[0])


def format_one(tb):
    """Return lines like those of traceback.format_list."""
    return summary(tb).format()


def format_all(tbs):
    """Return the result of format_one for each, looking up every frame only once."""
    return [_summary_of(frames).format() for frames in _named(tbs)]
