"""Marks and ranges for NVTX, by hand.

``is_available()`` says whether Marey was built with NVTX's header; without it marks and ranges raise ``marey.Error``.
NVTX itself finds the tool that listens, when it is first used; without one nothing happens. ``is_listening()`` says
whether that tool is Marey.
"""

from contextlib import contextmanager

from marey import _marey

__all__ = ["is_available", "is_listening", "mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def is_available():
    """Whether NVTX can be used."""
    return _marey.nvtx.is_available()


def is_listening():
    """Whether Marey hears what is pushed through NVTX in this process, as under ``marey run --nvtx``.

    Ranges and marks of libraries are then recorded by whatever session runs. It cannot be switched on later: a library
    looks for its listener once, at its first call of NVTX.
    """
    return _marey.nvtx.is_listening()


def mark(msg):
    """Marks a point in time."""
    _marey.nvtx.mark(msg)


def range_push(msg):
    """Begins a range on this thread and gives its depth, from 0."""
    return _marey.nvtx.range_push(msg)


def range_pop():
    """Ends the innermost range that range_push() began on this thread and gives its depth; -1 when there is none.

    What an emitter has pushed is left alone.
    """
    return _marey.nvtx.range_pop()


def range_start(msg):
    """Begins a range that any thread may end, and gives what range_end() takes."""
    return _marey.nvtx.range_start(msg)


def range_end(range_id):
    """Ends a range that range_start() began."""
    _marey.nvtx.range_end(range_id)


@contextmanager
def range(msg, *args, **kwargs):
    """A range around a block, or around the calls of a function; its name is ``msg.format(*args, **kwargs)``."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
