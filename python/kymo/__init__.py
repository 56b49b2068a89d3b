"""Kymo: a profiler for C++ and Python programs.

with kymo.profile() as prof:
    with kymo.record_function("work"):
        ...
print(prof.key_averages().table(sort_by="self_cpu_time_total"))
"""

from kymo._activities import (
    DeviceType,
    ProfilerActivity,
    ProfilerConfig,
    ProfilerState,
    RecordScope,
    _ExperimentalConfig,
    kineto_available,
    supported_activities,
)
from kymo._handlers import tensorboard_trace_handler
from kymo._kymo import (
    Error,
    Session,
    Trace,
    begin,
    counter,
    end,
    instant,
    is_recording,
    join_traces,
    memory_wanted,
    node_id,
    record_function,
    record_function_fast,
    report_allocation,
    report_out_of_memory,
    set_node_id,
    thread_name,
)
from kymo._live import is_profiler_enabled as is_enabled
from kymo._profile import profile
from kymo._schedule import ProfilerAction, schedule
from kymo._steps import KinetoStepTracker
from kymo._trace import TraceTable, load

# What is seldom used is imported when it is asked for.
_LATER = {
    "EventList": "_event_list",
    "FunctionEvent": "_events",
    "FunctionEventAvg": "_averages",
    "ExecutionTraceObserver": "_execution_trace",
    "emit_itt": "_emitters",
    "emit_nvtx": "_emitters",
    "itt": None,
    "nvtx": None,
    "profiler": None,
}

__all__ = [
    "DeviceType",
    "Error",
    "EventList",
    "ExecutionTraceObserver",
    "FunctionEvent",
    "FunctionEventAvg",
    "KinetoStepTracker",
    "ProfilerAction",
    "ProfilerActivity",
    "ProfilerConfig",
    "ProfilerState",
    "RecordScope",
    "Session",
    "Trace",
    "TraceTable",
    "begin",
    "counter",
    "emit_itt",
    "emit_nvtx",
    "end",
    "instant",
    "is_enabled",
    "is_recording",
    "itt",
    "join_traces",
    "kineto_available",
    "load",
    "memory_wanted",
    "node_id",
    "nvtx",
    "profile",
    "profiler",
    "record_function",
    "record_function_fast",
    "report_allocation",
    "report_out_of_memory",
    "schedule",
    "set_node_id",
    "supported_activities",
    "tensorboard_trace_handler",
    "thread_name",
]


def __getattr__(name):
    if name not in _LATER:
        raise AttributeError(f"module 'kymo' has no attribute {name!r}")
    import importlib

    home = _LATER[name]
    module = importlib.import_module(f"kymo.{home or name}")
    value = module if home is None else getattr(module, name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_LATER})
