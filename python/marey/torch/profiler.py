"""The names of ``torch.autograd.profiler``: those of ``marey.profiler``, with PyTorch operators."""

from __future__ import annotations

from marey import profiler as _own
from marey.torch import _versions
from marey.torch._autograd_profile import profile
from marey.torch._emitters import emit_itt, emit_nvtx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike
    from typing import Any

    from marey.results.event_list import EventList
    from marey.results.events import FunctionEvent

_KinetoProfile = profile

__all__ = _own.__all__


def load_nvprof(path: str | PathLike[str]) -> EventList:
    """Return the ranges of an nvprof file as an EventList."""
    _versions.warn_deprecated_name("load_nvprof")
    return _own.load_nvprof(path)


def parse_nvprof_trace(path: str | PathLike[str]) -> list[FunctionEvent]:
    """Return the ranges of an nvprof file as a list of FunctionEvent, in order of start time."""
    _versions.warn_deprecated_name("parse_nvprof_trace")
    return _own.parse_nvprof_trace(path)


class EnforceUnique(_own.EnforceUnique):
    """Raises an error if a key is seen twice."""

    def __init__(self) -> None:
        _versions.warn_deprecated_name("EnforceUnique")
        super().__init__()


def __getattr__(name: str) -> Any:
    return getattr(_own, name)
