"""The names of ``torch.autograd.profiler``: those of ``kymo.profiler``, over PyTorch's operators."""

from kymo import profiler as _own
from kymo.torch._emitters import emit_itt, emit_nvtx
from kymo.torch._profile import profile

_KinetoProfile = profile

__all__ = _own.__all__


def __getattr__(name):
    return getattr(_own, name)
