"""The names of ``torch.autograd.profiler``: a program moves by changing an import."""

from kymo import _live
from kymo._activities import (
    DeviceType,
    ProfilerActivity,
    ProfilerConfig,
    ProfilerState,
    _ExperimentalConfig,
    kineto_available,
)
from kymo._emitters import emit_itt, emit_nvtx
from kymo._event_list import EventList
from kymo._event_parts import EnforceUnique, MemRecordsAcc
from kymo._events import FunctionEvent
from kymo._kymo import record_function
from kymo._nvprof import load_nvprof, parse_nvprof_trace
from kymo._profile import profile
from kymo._steps import KinetoStepTracker

MEMORY_EVENT_NAME = "[memory]"
_KinetoProfile = profile
_profiler_type = _live.profiler_type

__all__ = [
    "EnforceUnique",
    "EventList",
    "FunctionEvent",
    "KinetoStepTracker",
    "MemRecordsAcc",
    "emit_itt",
    "emit_nvtx",
    "load_nvprof",
    "parse_nvprof_trace",
    "profile",
    "record_function",
]


def __getattr__(name):
    if name == "_is_profiler_enabled":
        return _live.is_enabled()
    raise AttributeError(f"module 'kymo.profiler' has no attribute {name!r}")
