"""The names of ``torch.autograd.profiler``, over PyTorch's operators."""

from kymo import profiler as _own
from kymo.profiler import (
    MEMORY_EVENT_NAME,
    DeviceType,
    EnforceUnique,
    EventList,
    FunctionEvent,
    KinetoStepTracker,
    MemRecordsAcc,
    ProfilerActivity,
    ProfilerConfig,
    ProfilerState,
    _ExperimentalConfig,
    kineto_available,
    load_nvprof,
    parse_nvprof_trace,
    record_function,
)
from kymo.torch._emitters import emit_itt, emit_nvtx
from kymo.torch._profile import profile

_KinetoProfile = profile

__all__ = _own.__all__


def __getattr__(name):
    return getattr(_own, name)
