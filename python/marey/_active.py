"""Which profilers and emitters run."""

from marey._activities import ActiveProfilerType

running = {}  # what stands for a profiler or an emitter -> its ActiveProfilerType


def is_enabled():
    """Whether any profiler or emitter runs."""
    return bool(running)


def profiler_type():
    """The kind of what runs; of several, the one that was started first."""
    return next(iter(running.values()), ActiveProfilerType.NONE)
