"""The names of ``torch.autograd.profiler``: switch to Marey by changing the import."""

from marey import _active
from marey._activities import (
    DeviceType,
    ProfilerActivity,
    ProfilerConfig,
    ProfilerState,
    _ExperimentalConfig,
    kineto_available,
)
from marey._emitters import emit_itt, emit_nvtx
from marey._event_list import EventList
from marey._event_parts import EnforceUnique, MemRecordsAcc
from marey._events import FunctionEvent
from marey._marey import record_function
from marey._nvprof import load_nvprof, parse_nvprof_trace
from marey._profile import profile
from marey._steps import KinetoStepTracker

MEMORY_EVENT_NAME = "[memory]"
_KinetoProfile = profile
_profiler_type = _active.profiler_type

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
        return _active.is_enabled()
    raise AttributeError(f"module 'marey.profiler' has no attribute {name!r}")
