"""Summaries and texts of captured tracebacks."""

import sys
import traceback

from marey._marey import symbolize_tracebacks


def _caller_frames(frame):
    """Of code that PyTorch's compiler wrote: the frames of the program that its line stands for, innermost first."""
    cache = getattr(sys.modules.get("torch._inductor.codecache"), "PyCodeCache", None)
    if cache is None or not frame["python"] or frame["filename"] not in cache.linemaps:
        return ()
    found = cache.stack_frames_for_code(frame["filename"], frame["line"]) or ()
    return [{**entry, "python": True, "inlined": True} for entry in found]


def _named(tbs):
    """The frames of each, innermost first."""
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
    """The frames of one, innermost first, as dicts that the caller may change."""
    return [dict(frame) for frame in _named([tb])[0]]


def summary(tb):
    """A StackSummary, outermost first; empty where the frames were let go."""
    return _summary_of(_named([tb])[0])


def format_one(tb):
    """Lines as traceback.format_list gives them."""
    return summary(tb).format()


def format_all(tbs):
    """What format_one gives for each, with every frame named once."""
    return [_summary_of(frames).format() for frames in _named(tbs)]
