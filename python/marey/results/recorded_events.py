"""Events of a trace that read their fields lazily and keep changes made to them."""

from __future__ import annotations

from dataclasses import fields

from marey._marey import EventRow
from marey.results.event_parts import Kernel, event_metadata
from marey.results.events import FunctionEvent
from marey.results.types import is_on_cpu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from marey._marey import EventRows

_SHARES = ("self_cpu_percent", "total_cpu_percent", "total_device_percent")  # set by tables: not a change


class _Read:
    """A field that is read from the trace each time, unless it was set."""

    def __init__(self, read: Callable[[Any], Any]) -> None:
        self._read = read

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, event: Any, owner: Any = None) -> Any:
        if event is None:
            return self
        fields = event.__dict__
        return fields[self._name] if self._name in fields else self._read(event)


def _parent(event: Any) -> Any:
    parent = event._rows.parent(event._index)
    return None if parent is None else event._rows.event(parent)


def _metadata_json(event: Any) -> str:
    import json

    members = dict(event.kwinputs or {})
    if event.external_id:
        members["External id"] = event.external_id
    if event.external_id == event.id:
        members["Ev Idx"] = event.id - event._rows.first_id - 1
    return json.dumps(members)[1:-1]


def _unless_changed(name: str, read: Callable[[Any], Any]) -> property:
    """A value that the trace has, unless an event was changed: then FunctionEvent computes it."""
    compute: Any = vars(FunctionEvent)[name].fget
    return property(lambda event: compute(event) if event._rows.is_changed else read(event))


class RecordedEvent(EventRow, FunctionEvent):
    """A FunctionEvent for a row of a trace.

    Fields are read from the trace on first use.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(getattr(FunctionEvent, name, None), property):
            raise AttributeError(f"cannot set {name} of a FunctionEvent")
        if name not in _SHARES:
            self._rows.is_changed = True
        self.__dict__[name] = value

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        super().append_kernel(name, device, duration)
        self._rows.is_changed = True

    def append_cpu_child(self, child: FunctionEvent) -> None:
        super().append_cpu_child(child)
        self._rows.is_changed = True

    cpu_parent = _Read(_parent)
    use_device = _Read(lambda event: event._rows.use_device)
    event_metadata = _Read(lambda event: event_metadata(event.kwinputs))
    metadata = _Read(lambda event: None if is_on_cpu(event) else dict(event.kwinputs or {}) or None)
    _metadata_json = _Read(_metadata_json)
    cpu_time_total = _unless_changed("cpu_time_total", lambda event: event._rows.cpu_total_us(event._index))
    self_cpu_time_total = _unless_changed("self_cpu_time_total", lambda event: event._rows.self_ns(event._index) / 1000)
    device_time_total = _unless_changed(
        "device_time_total",
        lambda event: event._rows.device_total_ns(event._index) / 1000 if event.use_device else 0,
    )
    self_cpu_memory_usage = _unless_changed(
        "self_cpu_memory_usage", lambda event: event._rows.bytes(event._index)[2] if event._has_self_values() else 0
    )
    self_device_memory_usage = _unless_changed(
        "self_device_memory_usage", lambda event: event._rows.bytes(event._index)[3] if event._has_self_values() else 0
    )

    def __reduce__(self) -> tuple[Any, ...]:
        return (FunctionEvent.__new__, (FunctionEvent,), self._whole())

    def _whole(self) -> dict[str, Any]:
        """Return all its fields, without the list that it came from."""
        return {field.name: getattr(self, field.name) for field in fields(FunctionEvent)} | self.__dict__


RecordedEvent.__name__ = RecordedEvent.__qualname__ = "FunctionEvent"


class _Field:
    """A field that is read with others on first use, and kept."""

    def __init__(self, name: str, names: Sequence[str], read: Callable[[EventRows, int], Iterable[Any]]) -> None:
        self._name = name
        self._names = names
        self._read = read

    def __get__(self, event: Any, owner: Any = None) -> Any:
        if event is None:
            return self
        fields = event.__dict__
        for name, value in zip(self._names, self._read(event._rows, event._index)):
            fields.setdefault(name, value)
        return fields[self._name]


def _flops(rows: EventRows, index: int) -> float:
    flops = rows.flops(index) if rows.with_flops else None
    return 0 if flops is None else int(flops) if flops.is_integer() else flops


# Fields that are read together, and how.
_READERS: dict[str, Callable[[EventRows, int], Iterable[Any]]] = {
    "sequence_nr fwd_thread python_call_id": lambda rows, index: rows.detail(index),
    "input_shapes structured_input_shapes structured_input_strides input_dtypes concrete_inputs kwinputs": (
        lambda rows, index: rows.inputs(index)
    ),
    "flow_id flow_type flow_start external_id linked_correlation_id python_id python_parent_id": (
        lambda rows, index: rows.ids(index)
    ),
    "python_module_id module_hierarchy": lambda rows, index: rows.module(index),
    "cpu_memory_usage device_memory_usage": lambda rows, index: rows.bytes(index),
    "time_range": lambda rows, index: (rows.time_range(index),),
    "stack": lambda rows, index: (rows.stack(index),),
    "kernels": lambda rows, index: ([Kernel._make(kernel) for kernel in rows.kernels(index)],),
    "cpu_children": lambda rows, index: ([rows.event(child) for child in rows.children(index)],),
    "is_legacy": lambda rows, index: (rows.is_timed(index),),
    "flops": lambda rows, index: (_flops(rows, index),),
    "activity_type": lambda rows, index: (rows.category(index),),
}
for _names, _read in _READERS.items():
    for _name in _names.split():
        setattr(RecordedEvent, _name, _Field(_name, _names.split(), _read))
del _names, _read, _name
