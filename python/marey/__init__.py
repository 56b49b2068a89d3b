"""Marey: a tracing profiler for C++, Python and PyTorch programs.

with marey.profile() as prof:
    with marey.record_function("work"):
        ...
print(prof.key_averages().table(sort_by="self_cpu_time_total"))

PYTEST_DONT_REWRITE: `marey run -m pytest` imports the package before pytest could change its assertions.
"""

import sys

if getattr(sys.flags, "gil", None) == 0:  # otherwise a free-threaded Python enables it for the extension
    raise ImportError("Marey needs the GIL: remove PYTHON_GIL=0 or -X gil=0")
try:
    from marey import _marey
except ImportError as error:
    from marey._other_python import explained

    raise explained(error) from None
from marey.results import trace as _trace
from marey.results import traceback as _traceback  # noqa: F401

# Every public name, by the module that defines it; "": the name is a module itself. Importing the package loads only
# the first two modules and tracebacks, which programs need to mark ranges. The others are imported on first use.
_HOMES = {
    "_marey": "CapturedTraceback DeviceEvent Error RegisteredDevice Session Trace allow_control begin counter "
    "device_error end find_device instant is_recording is_recording_memory join_traces merge_traces node_id "
    "receive_token record_function record_function_fast registered_devices report_allocation report_out_of_memory "
    "send_token set_node_id thread_name time_on_device __version__",
    "results.trace": "TraceTable load ranks",
    "results.averages": "FunctionEventAvg",
    "results.check": "check",
    "results.compare": "diff",
    "results.event_list": "EventList",
    "results.events": "FunctionEvent",
    "recording.emitters": "emit_itt emit_nvtx",
    "recording.execution_trace": "ExecutionTraceObserver",
    "recording.flight_recorder": "flight_recorder snapshot",
    "recording.logs": "LogHandler",
    "recording.modules": "register_module_type unregister_module_type",
    "recording.profile": "profile",
    "recording.schedule": "schedule",
    "recording.step_loop": "steps",
    "sql.lake": "Lake lake",
    "compat.handlers": "tensorboard_trace_handler",
    "_enumerations": "DeviceActivity ProfilerActivity RecordScope",
    "notebook": "load_ipython_extension unload_ipython_extension",
    "": "itt nvtx profiler web",
}
_home_of = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ = [name for name in _home_of if name != "__version__" and not name.endswith("_extension")]
globals().update((name, getattr(_marey, name)) for name in _HOMES["_marey"].split())
globals().update((name, getattr(_trace, name)) for name in _HOMES["results.trace"].split())


def __getattr__(name: str) -> object:
    import importlib

    if name not in _home_of:
        text = f"module 'marey' has no attribute {name!r}"
        if not name.startswith("_") and hasattr(importlib.import_module("marey.profiler"), name):
            text += ": as a name of PyTorch's profiler it is in marey.profiler"
        raise AttributeError(text)
    home = _home_of[name]
    module = importlib.import_module(f"marey.{home or name}")
    value = module if home == "" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> "list[str]":
    return sorted({*globals(), *_home_of})
