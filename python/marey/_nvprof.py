"""Reads nvprof files as lists of events."""

from marey._trace import load
from marey._trace_events import events_of


def parse_nvprof_trace(path):
    """Return the ranges of an nvprof file as a list of FunctionEvent, in order of start time."""
    from os import fspath

    return [event for event in events_of(load(fspath(path))) if event.device_type == 0]


def load_nvprof(path):
    """Return the ranges of an nvprof file as an EventList."""
    from os import fspath

    return events_of(load(fspath(path)))
