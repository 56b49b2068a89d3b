"""The names of ``torch.profiler`` and ``torch.autograd.profiler``: switch to Marey by changing the import."""

from __future__ import annotations

from marey._enumerations import DeviceType, ProfilerActivity, ProfilerState, RecordScope
from marey._marey import record_function
from marey.compat.config import ProfilerConfig, _ExperimentalConfig, kineto_available
from marey.compat.handlers import tensorboard_trace_handler
from marey.compat.name_tables import EnforceUnique, MemRecordsAcc
from marey.compat.nvprof import load_nvprof, parse_nvprof_trace
from marey.compat.steps import KinetoStepTracker
from marey.recording.active import is_enabled, profiler_type
from marey.recording.activities import supported_activities
from marey.recording.emitters import emit_itt, emit_nvtx
from marey.recording.execution_trace import ExecutionTraceObserver
from marey.recording.profile import profile
from marey.recording.schedule import ProfilerAction, schedule
from marey.results.averages import FunctionEventAvg
from marey.results.event_list import EventList
from marey.results.events import FunctionEvent

MEMORY_EVENT_NAME = "[memory]"
_KinetoProfile = profile
_profiler_type = profiler_type

__all__ = [
    "DeviceType",
    "EnforceUnique",
    "EventList",
    "ExecutionTraceObserver",
    "FunctionEvent",
    "FunctionEventAvg",
    "KinetoStepTracker",
    "MemRecordsAcc",
    "ProfilerAction",
    "ProfilerActivity",
    "ProfilerConfig",
    "ProfilerState",
    "RecordScope",
    "_ExperimentalConfig",
    "emit_itt",
    "emit_nvtx",
    "is_enabled",
    "kineto_available",
    "load_nvprof",
    "parse_nvprof_trace",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


def __getattr__(name: str) -> bool:
    if name == "_is_profiler_enabled":
        return is_enabled()
    raise AttributeError(f"module 'marey.profiler' has no attribute {name!r}")
