"""Summaries and texts of captured tracebacks."""

import traceback

from kymo._kymo import symbolize_tracebacks


def _summary_of(frames):
    stack = traceback.StackSummary()
    for frame in reversed(frames):
        stack.append(traceback.FrameSummary(frame["filename"], frame["line"], frame["name"], lookup_line=False))
    return stack


def symbolize_one(tb):
    """The frames of one, innermost first, as dicts that the caller may change."""
    return [dict(frame) for frame in symbolize_tracebacks([tb])[0]]


def summary(tb):
    """A StackSummary, outermost first; empty where the frames were let go."""
    return _summary_of(symbolize_tracebacks([tb])[0])


def format_one(tb):
    """Lines as traceback.format_list gives them."""
    return summary(tb).format()


def format_all(tbs):
    """What format_one gives for each, with every frame named once."""
    return [_summary_of(frames).format() for frames in symbolize_tracebacks(tbs)]
