"""Kymo: a profiler for C++ and Python programs."""

from kymo._kymo import (
    Error,
    Session,
    Trace,
    begin,
    counter,
    end,
    instant,
    is_recording,
    load,
    record_function,
    record_function_fast,
    thread_name,
)
from kymo._schedule import ProfilerAction, schedule

__all__ = [
    "Error",
    "ProfilerAction",
    "Session",
    "Trace",
    "begin",
    "counter",
    "end",
    "instant",
    "is_recording",
    "load",
    "record_function",
    "record_function_fast",
    "schedule",
    "thread_name",
]
