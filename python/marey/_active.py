"""The profilers and emitters that are running."""

from marey._activities import ActiveProfilerType

running = {}  # key object of a profiler or an emitter -> its ActiveProfilerType


def is_enabled():
    """Return whether any profiler or emitter is running."""
    return bool(running)


def profiler_type():
    """Return the type of the running profiler or emitter; if there are several, of the first one."""
    return next(iter(running.values()), ActiveProfilerType.NONE)
