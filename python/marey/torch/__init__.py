"""Marey for PyTorch programs: the names of ``torch.profiler``.

    from marey.torch import profile, record_function, schedule, ProfilerActivity, tensorboard_trace_handler

The names of ``torch.autograd.profiler`` are in ``marey.torch.profiler``. ``patch()`` makes ``torch.profiler`` itself
use Marey. The first recording compiles a small observer for the installed PyTorch; ``python -m marey.torch`` compiles
it in advance.
"""

from __future__ import annotations

import torch.profiler as _torch_profiler
from torch.autograd import DeviceType
from torch.profiler import ProfilerAction, ProfilerActivity, schedule

from marey import itt
from marey._enumerations import RecordScope
from marey._marey import record_function
from marey.compat.config import _ExperimentalConfig, kineto_available
from marey.compat.handlers import tensorboard_trace_handler
from marey.compat.steps import KinetoStepTracker
from marey.torch import _hooks, _ranks, profiler
from marey.torch._activities import supported_activities
from marey.torch._emitters import ExecutionTraceObserver, emit_itt, emit_nvtx
from marey.torch._observer import build, load
from marey.torch._patch import patch, unpatch
from marey.torch._profile import profile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_KinetoProfile = profile
_hooks.trace_compiled_ranges()


def __getattr__(name: str) -> Any:
    # PyTorch's own classes for the configuration of activities, where it has them (2.15).
    if name in ("CuspyConfig", "PerformanceMetricsConfig", "ProfilerActivityConfig"):
        return getattr(_torch_profiler, name)
    raise AttributeError(f"module 'marey.torch' has no attribute {name!r}")


def record_program() -> None:
    """Record operators until the program ends. Called by ``marey run --torch`` once PyTorch is imported."""
    _ranks.take_node_id()
    load()
    _hooks.hold_flag()  # never released


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
