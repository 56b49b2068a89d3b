"""The names of ``torch.autograd.profiler``: switch to Marey by changing the import."""

from marey._activities import DeviceType as DeviceType
from marey._activities import ProfilerActivity as ProfilerActivity
from marey._activities import ProfilerConfig as ProfilerConfig
from marey._activities import ProfilerState as ProfilerState
from marey._activities import kineto_available as kineto_available
from marey._emitters import emit_itt, emit_nvtx
from marey._event_list import EventList
from marey._event_parts import EnforceUnique, MemRecordsAcc
from marey._events import FunctionEvent
from marey._marey import record_function
from marey._nvprof import load_nvprof, parse_nvprof_trace
from marey._profile import profile
from marey._steps import KinetoStepTracker

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
