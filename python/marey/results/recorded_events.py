"""Events of a trace that read their fields lazily and keep changes made to them."""

from __future__ import annotations

from marey._marey import EventRow
from marey.results.event_parts import Kernel, event_metadata
from marey.results.events import FunctionEvent
from marey.results.types import is_on_cpu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from marey._marey import EventRows
    from marey.results.event_parts import EventMetadata

_CORE = (
    "id name trace_name overload_name node_id thread scope is_async is_remote device_type device_index "
    "device_resource_id is_user_annotation is_python_function"
).split()
_DETAIL = ("sequence_nr", "fwd_thread", "python_call_id")
_INPUTS = (
    "input_shapes",
    "structured_input_shapes",
    "structured_input_strides",
    "input_dtypes",
    "concrete_inputs",
    "kwinputs",
)
_IDS = (
    "flow_id",
    "flow_type",
    "flow_start",
    "external_id",
    "linked_correlation_id",
    "python_id",
    "python_parent_id",
)
_MODULE = ("python_module_id", "module_hierarchy")
_SHARES = ("self_cpu_percent", "total_cpu_percent", "total_device_percent")  # set by tables: not a change
_BYTES = ("cpu_memory_usage", "device_memory_usage")


class RecordedEvent(FunctionEvent, EventRow):
    """A FunctionEvent for a row of a trace.

    Fields are read from the trace on first use. Values set on the event are kept by it and by its list.
    """

    count = 1
    self_cpu_percent = -1
    total_cpu_percent = -1
    total_device_percent = -1

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(getattr(FunctionEvent, name, None), property):
            raise AttributeError(f"cannot set {name} of a FunctionEvent")
        if name not in _SHARES:
            self._keep()
        self.__dict__[name] = value

    def _keep(self) -> None:
        """Make the list keep this event, since it now differs from the trace."""
        if not self._is_changed:
            object.__setattr__(self, "_is_changed", True)
            self._rows.keep_event(self._index, self)

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        super().append_kernel(name, device, duration)
        self._keep()

    def append_cpu_child(self, child: FunctionEvent) -> None:
        super().append_cpu_child(child)
        self._keep()

    @property
    def cpu_parent(self) -> FunctionEvent | None:  # type: ignore[override]
        fields = self.__dict__
        if "cpu_parent" in fields:
            kept: FunctionEvent | None = fields["cpu_parent"]
            return kept
        parent = self._rows.parent(self._index)
        event: FunctionEvent | None = None if parent is None else self._rows.event(parent)
        return event

    @property
    def use_device(self) -> str | None:  # type: ignore[override]
        fields = self.__dict__
        return fields["use_device"] if "use_device" in fields else self._rows.use_device

    @property
    def cpu_time_total(self) -> float:
        if self._is_changed:
            return super().cpu_time_total
        return self._rows.cpu_total_us(self._index)

    @property
    def self_cpu_time_total(self) -> float:
        if self._is_changed:
            return super().self_cpu_time_total
        return self._rows.self_ns(self._index) / 1000

    @property
    def device_time_total(self) -> float:
        if self._is_changed:
            return super().device_time_total
        return self._rows.device_total_ns(self._index) / 1000 if self.use_device else 0

    @property
    def self_cpu_memory_usage(self) -> int:
        if self._is_changed or not self._has_self_values():
            return super().self_cpu_memory_usage
        return self._rows.bytes(self._index)[2]

    @property
    def self_device_memory_usage(self) -> int:
        if self._is_changed or not self._has_self_values():
            return super().self_device_memory_usage
        return self._rows.bytes(self._index)[3]

    @property
    def event_metadata(self) -> EventMetadata | None:  # type: ignore[override]
        fields = self.__dict__
        return fields["event_metadata"] if "event_metadata" in fields else event_metadata(self.kwinputs)

    @property
    def metadata(self) -> dict[str, Any] | None:  # type: ignore[override]
        fields = self.__dict__
        if "metadata" in fields:
            kept: dict[str, Any] | None = fields["metadata"]
            return kept
        return None if is_on_cpu(self) else dict(self.kwinputs or {}) or None

    @property
    def _metadata_json(self) -> str:  # type: ignore[override]
        fields = self.__dict__
        if "_metadata_json" in fields:
            return str(fields["_metadata_json"])
        import json

        members = dict(self.kwinputs or {})
        if self.external_id:
            members["External id"] = self.external_id
        if self.external_id == self.id:
            members["Ev Idx"] = self.id - self._rows.first_id - 1
        return json.dumps(members)[1:-1]

    def __reduce__(self) -> tuple[Any, ...]:
        return (FunctionEvent.__new__, (FunctionEvent,), self._whole())

    def _whole(self) -> dict[str, Any]:
        """Return all its fields, without the list that it came from."""
        fields = {name: getattr(self, name) for name in _ALL_FIELDS}
        fields["event_metadata"] = event_metadata(self.kwinputs)
        fields.update(self.__dict__)
        return fields


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


_READERS = {
    _DETAIL: lambda rows, index: rows.detail(index),
    _INPUTS: lambda rows, index: rows.inputs(index),
    _IDS: lambda rows, index: rows.ids(index),
    _MODULE: lambda rows, index: rows.module(index),
    _BYTES: lambda rows, index: rows.bytes(index),
    ("time_range",): lambda rows, index: (rows.time_range(index),),
    ("stack",): lambda rows, index: (rows.stack(index),),
    ("kernels",): lambda rows, index: ([Kernel._make(kernel) for kernel in rows.kernels(index)],),
    ("cpu_children",): lambda rows, index: ([rows.event(child) for child in rows.children(index)],),
    ("is_legacy",): lambda rows, index: (rows.is_timed(index),),
    ("flops",): lambda rows, index: (_flops(rows, index),),
    ("activity_type",): lambda rows, index: (rows.category(index),),
}
for _names, _read in _READERS.items():
    for _name in _names:
        setattr(RecordedEvent, _name, _Field(_name, _names, _read))
del _names, _read, _name

_ALL_FIELDS = (
    *_CORE,
    *(name for names in _READERS for name in names),
    "cpu_parent",
    "use_device",
    "metadata",
    "count",
    "self_cpu_percent",
    "total_cpu_percent",
    "total_device_percent",
    "_metadata_json",
)
