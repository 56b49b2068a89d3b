"""The names of ``torch.autograd.profiler``: those of ``marey.profiler``, with PyTorch operators."""

from __future__ import annotations

from marey import profiler as _own
from marey.torch._emitters import emit_itt, emit_nvtx
from marey.torch._profile import profile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_KinetoProfile = profile

__all__ = _own.__all__


def __getattr__(name: str) -> Any:
    return getattr(_own, name)
