"""``FunctionEventAvg``: totals of all events with the same key."""

from __future__ import annotations

from marey._enumerations import DeviceType
from marey._marey import Error
from marey.results.event_parts import FormattedTimesMixin
from marey.results.events import FunctionEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_NO_DEVICE = 255  # marey::DeviceType::None
_OTHER_DEVICE = 20
_DEVICES = {"cpu": 0, "cuda": 1, "hip": 6, "xpu": 12, "mps": 13, "meta": 14, "hpu": 15, "mtia": 19, "privateuse1": 20}
# Attributes that an average copies from the first event added to it.
_FROM_FIRST = (
    "key node_id is_async is_remote cpu_parent cpu_children overload_name input_shapes stack scope device_type "
    "is_legacy use_device is_user_annotation"
).split()
_SUMS = (
    "cpu_time_total device_time_total self_cpu_time_total self_device_time_total cpu_memory_usage device_memory_usage "
    "self_cpu_memory_usage self_device_memory_usage count"
).split()
_OF_FIRST_EVENT = frozenset(("cpu_parent", "cpu_children", "input_shapes"))


def device_number(name: str | None) -> int:
    """Return the C++ number of the device with that name."""
    return _NO_DEVICE if not name else _DEVICES.get(name.lower(), _OTHER_DEVICE)


class FunctionEventAvg(FormattedTimesMixin):
    """The totals of all events with the same key. Times are in microseconds.

    Attributes that are not numbers are those of the first event. Averages of a trace also have ``min``, ``max``,
    ``unfinished`` and ``threads``, and ``p50``, ``p90`` and ``p99`` if percentiles were requested.
    """

    _first: tuple[int | None, Callable[[int], Any] | None]  # the row of the first range, and what returns its event

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.node_id = 0
        self.is_async = False
        self.is_remote = False
        self.use_device: str | None = None
        self.cpu_time_total: float = 0
        self.device_time_total: float = 0
        self.self_cpu_time_total: float = 0
        self.self_device_time_total: float = 0
        self.input_shapes: Any = None
        self.overload_name: str | None = None
        self.stack: list[str] | None = None
        self.scope: int | None = None
        self.cpu_memory_usage = 0
        self.device_memory_usage = 0
        self.self_cpu_memory_usage = 0
        self.self_device_memory_usage = 0
        self.cpu_children: list[FunctionEvent] | None = None
        self.cpu_parent: FunctionEvent | None = None
        self.device_type = DeviceType.CPU
        self.is_legacy = False
        self.flops: float | None = 0
        self.is_user_annotation = False

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Add an event, or another average, with the same key."""
        if not isinstance(other, (FunctionEvent, FunctionEventAvg)):
            raise Error(f"expected a FunctionEvent or a FunctionEventAvg, got {other!r}")
        if self.key is None:
            for name in _FROM_FIRST:
                setattr(self, name, getattr(other, name))
        elif other.key != self.key:
            raise Error(f"cannot add {other.key!r} to {self.key!r}: they do not have the same key")
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if self.flops is None:
            self.flops = other.flops
        elif other.flops is not None:
            self.flops += other.flops
        return self

    def __iadd__(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        return self.add(other)

    def __getattr__(self, name: str) -> Any:
        if name not in _OF_FIRST_EVENT or "_first" not in self.__dict__:
            raise AttributeError(f"'FunctionEventAvg' object has no attribute {name!r}")
        row, event_of = self._first
        event = None if row is None or event_of is None else event_of(row)
        value = None if event is None else getattr(event, name)
        setattr(self, name, value)
        return value

    def __getstate__(self) -> dict[str, Any]:
        for name in _OF_FIRST_EVENT:
            getattr(self, name)
        return {name: value for name, value in self.__dict__.items() if name != "_first"}

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_{device}_time={self.self_device_time_total_str} "
            f"{device}_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage}>"
        )
