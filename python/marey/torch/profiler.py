"""The names of ``torch.autograd.profiler``: those of ``marey.profiler``, with PyTorch operators."""

from marey import profiler as _own
from marey.torch._emitters import emit_itt, emit_nvtx
from marey.torch._profile import profile

_KinetoProfile = profile

__all__ = _own.__all__


def __getattr__(name):
    return getattr(_own, name)
