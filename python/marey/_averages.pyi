"""``FunctionEventAvg``: totals of all events with the same key."""

from collections.abc import Callable
from typing import Any

from marey._activities import DeviceType
from marey._event_parts import FormattedTimesMixin
from marey._events import FunctionEvent

class FunctionEventAvg(FormattedTimesMixin):
    key: str | None
    count: int
    node_id: int
    is_async: bool
    is_remote: bool
    use_device: str | None
    cpu_time_total: float
    device_time_total: float
    self_cpu_time_total: float
    self_device_time_total: float
    input_shapes: Any
    overload_name: str | None
    stack: list[str] | None
    scope: int | None
    cpu_memory_usage: int
    device_memory_usage: int
    self_cpu_memory_usage: int
    self_device_memory_usage: int
    cpu_children: list[FunctionEvent] | None
    cpu_parent: FunctionEvent | None
    device_type: DeviceType
    is_legacy: bool
    flops: float | None
    is_user_annotation: bool
    def __init__(self) -> None: ...
    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg: ...
    def __iadd__(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg: ...
    def __getattr__(self, name: str) -> Any: ...
    def __getstate__(self) -> dict[str, Any]: ...

class Descriptions:
    def __init__(self) -> None: ...
    def times(self, event: FunctionEvent) -> tuple[Any, ...]: ...
    def whole(self, event: FunctionEvent) -> tuple[Any, ...]: ...

def device_number(name: str | None) -> int: ...
def device_type(number: int) -> DeviceType: ...
def average_of(
    fields: dict[str, Any], use_device: str | None, first_event: Callable[[int], Any], by_input_shape: bool
) -> FunctionEventAvg: ...
def row_of(event: Any) -> tuple[Any, ...]: ...
def set_shares(event: Any, averages: Any) -> None: ...
