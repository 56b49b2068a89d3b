"""Kymo for programs of PyTorch: the names of ``torch.profiler``.

    from kymo.torch import profile, record_function, schedule, ProfilerActivity, tensorboard_trace_handler

Every name of ``torch.autograd.profiler`` is in ``kymo.torch.profiler``. ``patch()`` has ``torch.profiler`` itself
resolve to Kymo. The first recording compiles a small observer against the PyTorch that is installed;
``python -m kymo.torch`` does it beforehand.
"""

from kymo import itt
from kymo._activities import DeviceType, ProfilerActivity, RecordScope, _ExperimentalConfig, kineto_available
from kymo._handlers import tensorboard_trace_handler
from kymo._kymo import record_function
from kymo._schedule import ProfilerAction, schedule
from kymo._steps import KinetoStepTracker
from kymo.torch import _compiler, profiler
from kymo.torch._activities import supported_activities
from kymo.torch._emitters import ExecutionTraceObserver, emit_itt, emit_nvtx
from kymo.torch._observer import build, load
from kymo.torch._patch import patch, unpatch
from kymo.torch._profile import profile

_KinetoProfile = profile
_compiler.register()

__all__ = [
    "DeviceType",
    "ExecutionTraceObserver",
    "KinetoStepTracker",
    "ProfilerAction",
    "ProfilerActivity",
    "RecordScope",
    "_ExperimentalConfig",
    "_KinetoProfile",
    "build",
    "emit_itt",
    "emit_nvtx",
    "itt",
    "kineto_available",
    "load",
    "patch",
    "profile",
    "profiler",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
    "unpatch",
]
