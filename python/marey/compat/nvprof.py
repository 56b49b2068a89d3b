"""Reads nvprof files as lists of events."""

from __future__ import annotations

from marey.results.trace import load
from marey.results.trace_events import events_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

    from marey.results.event_list import EventList
    from marey.results.events import FunctionEvent


def parse_nvprof_trace(path: str | PathLike[str]) -> list[FunctionEvent]:
    """Return the ranges of an nvprof file as a list of FunctionEvent, in order of start time."""
    from os import fspath

    return [event for event in events_of(load(fspath(path))) if event.device_type == 0]


def load_nvprof(path: str | PathLike[str]) -> EventList:
    """Return the ranges of an nvprof file as an EventList."""
    from os import fspath

    return events_of(load(fspath(path)))
