"""The profilers and emitters that are running."""

from __future__ import annotations

from marey._enumerations import ActiveProfilerType

running: dict[object, ActiveProfilerType] = {}  # by the key object of a profiler or an emitter


def is_enabled() -> bool:
    """Return whether any profiler or emitter is running."""
    return bool(running)


def profiler_type() -> ActiveProfilerType:
    """Return the type of the running profiler or emitter; if there are several, of the first one."""
    return next(iter(running.values()), ActiveProfilerType.NONE)
