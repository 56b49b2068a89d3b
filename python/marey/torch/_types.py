"""PyTorch's own types for results, so that programs and PyTorch's modules can use them as PyTorch's."""

from __future__ import annotations

import functools
import sys

import torch
from torch._C import _profiler as native

from marey._warnings import warn
from marey.results import types
from marey.results.recorded_events import RecordedEvent
from marey.torch import _versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from marey._enumerations import ProfilerActivity

_TAGS = {tag.name: native._EventType(tag.value) for tag in types._EventType}
_LAYOUTS = "strided sparse_coo sparse_csr _mkldnn sparse_csc sparse_bsr sparse_bsc jagged".split()  # as c10::Layout


class _OlderEvent(RecordedEvent):
    """An event with the attributes of PyTorch 2.11."""

    @property
    def metadata_json(self) -> Any:
        return self._metadata_json


class _NewerEvent(RecordedEvent):
    """An event with the attributes of PyTorch 2.15, which removed one and deprecated another."""

    @property
    def metadata_json(self) -> str | None:
        raise AttributeError("'FunctionEvent' object has no attribute 'metadata_json'")

    @property
    def event_metadata(self) -> Any:  # type: ignore[override]
        warn("`event_metadata` is deprecated. Use `metadata` instead.", FutureWarning)
        return super().event_metadata


_OlderEvent.__name__ = _OlderEvent.__qualname__ = "FunctionEvent"
_NewerEvent.__name__ = _NewerEvent.__qualname__ = "FunctionEvent"


class Types(types.Types):
    """Makes PyTorch's enumerations, devices, dtypes and layouts."""

    DeviceType = torch.autograd.DeviceType
    HAS_VALUE_LISTS = False
    AVERAGES_INCLUDE_CALLS = _versions.AVERAGES_INCLUDE_CALLS
    Event = (
        _NewerEvent
        if _versions.DEPRECATES_EVENT_METADATA
        else RecordedEvent
        if _versions.DEPRECATES_METADATA_JSON
        else _OlderEvent
    )

    @staticmethod
    @functools.lru_cache
    def device(number: int, index: int) -> Any:
        name = types.Types.device_type(number).name.lower()
        if name == "privateuse1":
            name = torch._C._get_privateuse1_backend_name()
        return torch.device(name, index) if index >= 0 else torch.device(name)

    @staticmethod
    def activity(own: ProfilerActivity) -> Any:
        return getattr(torch.profiler.ProfilerActivity, own.name, own)

    @staticmethod
    def action(own: Any) -> Any:
        return torch.profiler.ProfilerAction[own.name]

    @staticmethod
    def node_tag(name: str) -> Any:
        return _TAGS[name]

    @staticmethod
    def scope(number: int) -> Any:
        return native.RecordScope(
            number if number < len(native.RecordScope.__members__) else 7
        )  # Marey's own: user scope

    @staticmethod
    @functools.lru_cache(maxsize=1024)
    def file_name(path: str) -> str:
        """Return a path as PyTorch shows it: without the folder of ``sys.path`` that contains it."""
        folders = (folder.rstrip("/") + "/" for folder in sys.path if folder)
        return path[max((len(folder) for folder in folders if path.startswith(folder)), default=0) :]

    @staticmethod
    def dtype(name: str) -> Any:
        return getattr(torch, "float8_e4m3fn" if name == "float8_e4m3" else name or "", None)

    @staticmethod
    def layout(number: int) -> Any:
        return getattr(torch, _LAYOUTS[number], None) if number < len(_LAYOUTS) else None

    @staticmethod
    @functools.lru_cache
    def node_class(own: type) -> type:
        """Return a class whose objects are instances of PyTorch's class of that name too.

        PyTorch's classes cannot be created from Python, but ``isinstance`` believes ``__class__``. So PyTorch's own
        modules, which test types (``_memory_profiler``, ``_pattern_matcher``), work on Marey's nodes.
        """
        theirs = getattr(native, own.__name__, None)
        if theirs is None:
            return own
        return type(own.__name__, (own,), {"__slots__": (), "__class__": property(lambda self: theirs)})
