"""The names of ``torch.autograd.profiler``: a program moves by changing an import."""

from kymo._activities import DeviceType as DeviceType
from kymo._activities import ProfilerActivity as ProfilerActivity
from kymo._activities import ProfilerConfig as ProfilerConfig
from kymo._activities import ProfilerState as ProfilerState
from kymo._activities import kineto_available as kineto_available
from kymo._emitters import emit_itt, emit_nvtx
from kymo._event_list import EventList
from kymo._event_parts import EnforceUnique, MemRecordsAcc
from kymo._events import FunctionEvent
from kymo._kymo import record_function
from kymo._nvprof import load_nvprof, parse_nvprof_trace
from kymo._profile import profile
from kymo._steps import KinetoStepTracker

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

MEMORY_EVENT_NAME: str
_KinetoProfile = profile
_is_profiler_enabled: bool
