"""Marey: a tracing profiler for C++, Python and PyTorch programs.

with marey.profile() as prof:
    with marey.record_function("work"):
        ...
print(prof.key_averages().table(sort_by="self_cpu_time_total"))
"""

from marey._marey import (
    CapturedTraceback,
    DeviceEvent,
    Error,
    RegisteredDevice,
    Session,
    Trace,
    begin,
    counter,
    device_error,
    end,
    find_device,
    instant,
    is_recording,
    is_recording_memory,
    join_traces,
    node_id,
    record_function,
    record_function_fast,
    registered_devices,
    report_allocation,
    report_out_of_memory,
    set_node_id,
    thread_name,
    time_on_device,
)
from marey._trace import TraceTable, load

# Keeps importing the package fast: only the names that mark ranges are loaded at once, the others on first use.
# Values are the modules that define the names; None: the name is a module itself.
_LATER = {
    "__version__": "_marey",
    "DeviceActivity": "_activities",
    "DeviceType": "_activities",
    "EventList": "_event_list",
    "ExecutionTraceObserver": "_execution_trace",
    "FunctionEvent": "_events",
    "FunctionEventAvg": "_averages",
    "KinetoStepTracker": "_steps",
    "ProfilerAction": "_schedule",
    "ProfilerActivity": "_activities",
    "ProfilerConfig": "_activities",
    "ProfilerState": "_activities",
    "RecordScope": "_activities",
    "_ExperimentalConfig": "_activities",
    "emit_itt": "_emitters",
    "emit_nvtx": "_emitters",
    "is_enabled": "_active",
    "itt": None,
    "kineto_available": "_activities",
    "nvtx": None,
    "profile": "_profile",
    "profiler": None,
    "register_module_type": "_modules",
    "schedule": "_schedule",
    "supported_activities": "_activities",
    "tensorboard_trace_handler": "_handlers",
    "unregister_module_type": "_modules",
}

__all__ = [
    "CapturedTraceback",
    "DeviceActivity",
    "DeviceEvent",
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
    "RegisteredDevice",
    "Session",
    "Trace",
    "TraceTable",
    "begin",
    "counter",
    "device_error",
    "emit_itt",
    "emit_nvtx",
    "end",
    "find_device",
    "instant",
    "is_enabled",
    "is_recording",
    "itt",
    "join_traces",
    "kineto_available",
    "load",
    "is_recording_memory",
    "node_id",
    "nvtx",
    "profile",
    "profiler",
    "record_function",
    "record_function_fast",
    "register_module_type",
    "registered_devices",
    "report_allocation",
    "report_out_of_memory",
    "schedule",
    "set_node_id",
    "supported_activities",
    "tensorboard_trace_handler",
    "thread_name",
    "time_on_device",
    "unregister_module_type",
]


def __getattr__(name):
    if name not in _LATER:
        raise AttributeError(f"module 'marey' has no attribute {name!r}")
    import importlib

    home = _LATER[name]
    module = importlib.import_module(f"marey.{home or name}")
    value = module if home is None else getattr(module, name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_LATER})
