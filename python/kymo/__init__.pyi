"""Kymo: a profiler for C++ and Python programs."""

from kymo._kymo import Error as Error
from kymo._kymo import Session as Session
from kymo._kymo import Trace as Trace
from kymo._kymo import begin as begin
from kymo._kymo import counter as counter
from kymo._kymo import end as end
from kymo._kymo import instant as instant
from kymo._kymo import is_recording as is_recording
from kymo._kymo import load as load
from kymo._kymo import record_function as record_function
from kymo._kymo import record_function_fast as record_function_fast
from kymo._kymo import thread_name as thread_name
from kymo._schedule import ProfilerAction as ProfilerAction
from kymo._schedule import schedule as schedule

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
