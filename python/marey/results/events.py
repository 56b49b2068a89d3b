"""``FunctionEvent``: one event, made by hand or read lazily from a trace."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field

from marey._enumerations import DeviceType
from marey._marey import Error
from marey._warnings import warn
from marey.results.event_parts import EventMetadata, FormattedTimesMixin, Interval, Kernel, event_metadata, old_name
from marey.results.types import is_on_cpu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def _check_cpu(event: Any, what: str) -> None:
    if not isinstance(event, FunctionEvent):
        raise Error(f"{what} must be a FunctionEvent, not {event!r}")
    if not is_on_cpu(event):
        raise Error(f"{what} must be a CPU event, not {event.device_type!r}")


@dataclass(eq=False, repr=False)
class FunctionEvent(FormattedTimesMixin):
    """One call: its name, place, time and cost. Times are in microseconds."""

    id: int
    name: str
    thread: int
    start_us: InitVar[float]
    end_us: InitVar[float]
    overload_name: str | None = None
    fwd_thread: int | None = None
    input_shapes: Any = None
    stack: list[str] | None = None
    scope: int = 0
    use_device: str | None = None
    cpu_memory_usage: int = 0
    device_memory_usage: int = 0
    is_async: bool = False
    is_remote: bool = False
    sequence_nr: int = -1
    node_id: int = -1
    device_type: DeviceType = DeviceType.CPU
    device_index: int = 0
    device_resource_id: int | None = None
    is_legacy: bool = False
    flops: float | None = None
    trace_name: str | None = None
    concrete_inputs: list[Any] | None = None
    kwinputs: dict[str, Any] | None = None
    is_user_annotation: bool = False
    is_python_function: bool = False
    activity_type: str | None = None
    metadata_json: InitVar[str | None] = None
    flow_id: int | None = None
    flow_type: int | None = None
    flow_start: bool | None = None
    external_id: int = 0
    linked_correlation_id: int = 0
    extra_meta: InitVar[Mapping[str, Any] | None] = None
    structured_input_shapes: list[Any] | None = None
    structured_input_strides: list[Any] | None = None
    input_dtypes: list[str] | None = None
    python_id: int = -1
    python_parent_id: int = -1
    python_module_id: int = -1
    typed_metadata: InitVar[dict[str, Any] | None] = None
    python_call_id: int = field(default=-1, init=False)  # SuspendedCall.number if it is a part of a suspended call
    module_hierarchy: str = field(default="", init=False)
    count: int = field(default=1, init=False)
    time_range: Interval = field(init=False)
    kernels: list[Kernel] = field(default_factory=list, init=False)
    cpu_children: list[FunctionEvent] = field(default_factory=list, init=False)
    cpu_parent: FunctionEvent | None = field(default=None, init=False)
    self_cpu_percent: Any = field(default=-1, init=False)
    total_cpu_percent: Any = field(default=-1, init=False)
    total_device_percent: Any = field(default=-1, init=False)
    event_metadata: EventMetadata | None = field(init=False)
    metadata: dict[str, Any] | None = field(init=False)  # of device work, with the keys of traces
    _metadata_json: str | None = field(init=False)

    def __post_init__(
        self,
        start_us: float,
        end_us: float,
        metadata_json: str | None,
        extra_meta: Mapping[str, Any] | None,
        typed_metadata: dict[str, Any] | None,
    ) -> None:
        self.time_range = Interval(start_us, end_us)
        if self.device_resource_id is None:
            self.device_resource_id = self.thread
        self._metadata_json = metadata_json
        self.event_metadata = event_metadata(extra_meta)
        self.metadata = typed_metadata

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Add device work launched by this call, with its duration in microseconds."""
        _check_cpu(self, "the launching event")
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Add an event that ran directly inside this one."""
        _check_cpu(self, "the parent")
        _check_cpu(child, "the child")
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Set the event that directly encloses this one."""
        _check_cpu(self, "the child")
        _check_cpu(parent, "the parent")
        self.cpu_parent = parent

    @property
    def key(self) -> str:
        return self.name

    def _has_self_values(self) -> bool:
        return not self.is_async and is_on_cpu(self)

    @property
    def cpu_time_total(self) -> float:
        """The CPU time; 0 for device work."""
        return self.time_range.elapsed_us() if is_on_cpu(self) else 0

    @property
    def self_cpu_time_total(self) -> float:
        """The CPU time without the events directly inside this one."""
        if not self._has_self_values():
            return 0
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        if not self._has_self_values():
            return 0
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def self_device_memory_usage(self) -> int:
        if not self._has_self_values():
            return 0
        return self.device_memory_usage - sum(child.device_memory_usage for child in self.cpu_children)

    @property
    def device_time_total(self) -> float:
        """The device time of this event and the events inside it, or the duration of device work."""
        if self.is_async or not self.use_device:
            return 0
        if not is_on_cpu(self):
            return self.time_range.elapsed_us()
        total: float = sum(kernel.duration for kernel in self.kernels)
        if self.is_legacy:
            return total
        inside = list(self.cpu_children)
        while inside:
            event = inside.pop()
            if event.is_async or not event.use_device:
                continue
            total += sum(kernel.duration for kernel in event.kernels)
            if not event.is_legacy:
                inside += event.cpu_children
        return total

    @property
    def self_device_time_total(self) -> float:
        """The device time without the work launched by events directly inside this one."""
        if self.is_async or not self.use_device:
            return 0
        if not is_on_cpu(self):
            return self.device_time_total
        own: float = sum(kernel.duration for kernel in self.kernels)
        if self.is_legacy:  # its only kernel includes those of its children
            own -= sum(child.device_time_total for child in self.cpu_children)
        return own

    cuda_time_total = old_name("cuda_time_total", "device_time_total")
    self_cuda_time_total = old_name("self_cuda_time_total", "self_device_time_total")
    self_cuda_memory_usage = old_name("self_cuda_memory_usage", "self_device_memory_usage")

    def __repr__(self) -> str:
        device = self.use_device
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} "
            f"device_type={_device_text(self.device_type)} node_id={self.node_id} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} {device}_time={self.device_time_str} "
            f"name={self.name} thread={self.thread} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage} "
            f"is_async={self.is_async} is_remote={self.is_remote} seq_nr={self.sequence_nr} "
            f"is_legacy={self.is_legacy}>"
        )


def _metadata_json(event: FunctionEvent) -> str | None:
    """The members of a JSON object, as text."""
    warn("`metadata_json` is deprecated. Use `event_metadata` instead.", FutureWarning)
    return event._metadata_json


# Outside of the class, in which an argument of the constructor has the name.
FunctionEvent.metadata_json = property(_metadata_json)  # type: ignore[attr-defined]


def _device_text(device: Any) -> str:
    name = getattr(device, "name", None)
    return f"DeviceType.{name}" if name is not None else str(device)
