"""``FunctionEvent``: one event, made by hand or read lazily from a trace."""

from collections.abc import Mapping
from typing import Any

from marey._activities import DeviceType
from marey._event_parts import EventMetadata, FormattedTimesMixin, Interval, Kernel

class FunctionEvent(FormattedTimesMixin):
    id: int
    node_id: int
    name: str
    overload_name: str | None
    trace_name: str | None
    time_range: Interval
    thread: int
    fwd_thread: int | None
    kernels: list[Kernel]
    count: int
    cpu_children: list[FunctionEvent]
    cpu_parent: FunctionEvent | None
    input_shapes: Any
    concrete_inputs: list[Any] | None
    kwinputs: dict[str, Any] | None
    stack: list[str] | None
    scope: int
    use_device: str | None
    cpu_memory_usage: int
    device_memory_usage: int
    is_async: bool
    is_remote: bool
    sequence_nr: int
    device_type: DeviceType
    device_index: int
    device_resource_id: int
    is_legacy: bool
    flops: float | None
    is_user_annotation: bool
    is_python_function: bool
    activity_type: str | None
    self_cpu_percent: Any
    total_cpu_percent: Any
    total_device_percent: Any
    flow_id: int | None
    flow_type: int | None
    flow_start: bool | None
    external_id: int
    linked_correlation_id: int
    event_metadata: EventMetadata | None
    structured_input_shapes: list[Any] | None
    structured_input_strides: list[Any] | None
    input_dtypes: list[str] | None
    python_id: int
    python_call_id: int
    module_hierarchy: str
    python_parent_id: int
    python_module_id: int
    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        overload_name: str | None = None,
        fwd_thread: int | None = None,
        input_shapes: Any = None,
        stack: list[str] | None = None,
        scope: int = 0,
        use_device: str | None = None,
        cpu_memory_usage: int = 0,
        device_memory_usage: int = 0,
        is_async: bool = False,
        is_remote: bool = False,
        sequence_nr: int = -1,
        node_id: int = -1,
        device_type: DeviceType = ...,
        device_index: int = 0,
        device_resource_id: int | None = None,
        is_legacy: bool = False,
        flops: float | None = None,
        trace_name: str | None = None,
        concrete_inputs: list[Any] | None = None,
        kwinputs: dict[str, Any] | None = None,
        is_user_annotation: bool = False,
        is_python_function: bool = False,
        activity_type: str | None = None,
        metadata_json: str | None = None,
        flow_id: int | None = None,
        flow_type: int | None = None,
        flow_start: bool | None = None,
        external_id: int = 0,
        linked_correlation_id: int = 0,
        extra_meta: Mapping[str, Any] | None = None,
        structured_input_shapes: list[Any] | None = None,
        structured_input_strides: list[Any] | None = None,
        input_dtypes: list[str] | None = None,
        python_id: int = -1,
        python_parent_id: int = -1,
        python_module_id: int = -1,
    ) -> None: ...
    def append_kernel(self, name: str, device: int, duration: float) -> None: ...
    def append_cpu_child(self, child: FunctionEvent) -> None: ...
    def set_cpu_parent(self, parent: FunctionEvent) -> None: ...
    @property
    def key(self) -> str: ...
    @property
    def cpu_time_total(self) -> float: ...
    @property
    def self_cpu_time_total(self) -> float: ...
    @property
    def device_time_total(self) -> float: ...
    @property
    def self_device_time_total(self) -> float: ...
    @property
    def self_cpu_memory_usage(self) -> int: ...
    @property
    def self_device_memory_usage(self) -> int: ...
    @property
    def metadata_json(self) -> str | None: ...
    @property
    def cuda_time_total(self) -> float: ...
    @property
    def self_cuda_time_total(self) -> float: ...
    @property
    def self_cuda_memory_usage(self) -> int: ...
