"""Marks and ranges for ITT (VTune and its kin), by hand.

The collector is the library that ``INTEL_LIBITTNOTIFY64`` names, as tools set it for the programs that they start.
Without one nothing happens. ``is_available()`` is false, and everything else here raises ``marey.Error``, when that
library cannot be used.
"""

from contextlib import contextmanager

from marey import _marey

__all__ = ["is_available", "mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def is_available():
    """Whether ITT can be used."""
    return _marey.itt.is_available()


def mark(msg):
    """Marks a point in time: a task that ends at once."""
    _marey.itt.mark(msg)


def range_push(msg):
    """Begins a task on this thread and gives its depth, from 0."""
    return _marey.itt.range_push(msg)


def range_pop():
    """Ends the innermost task that range_push() began on this thread and gives its depth; -1 when there is none."""
    return _marey.itt.range_pop()


def range_start(msg):
    """Begins a task that any thread may end, and gives what range_end() takes."""
    return _marey.itt.range_start(msg)


def range_end(range_id):
    """Ends a task that range_start() began."""
    _marey.itt.range_end(range_id)


@contextmanager
def range(msg, *args, **kwargs):
    """A task around a block, or around the calls of a function; its name is ``msg.format(*args, **kwargs)``."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
