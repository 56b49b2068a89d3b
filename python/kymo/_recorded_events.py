"""Events of a trace: each reads what it is asked for, and keeps what it is told."""

from kymo._event_parts import Kernel, event_metadata
from kymo._events import FunctionEvent

_CORE = (
    "id name trace_name overload_name node_id thread time_range scope is_async is_remote device_type device_index "
    "device_resource_id is_user_annotation is_python_function"
).split()
_DETAIL = ("sequence_nr", "fwd_thread")
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
_BYTES = ("cpu_memory_usage", "device_memory_usage")


class RecordedEvent(FunctionEvent):
    """A FunctionEvent that stands for a row of a trace. What it does not know it reads; what is set on it stays with
    it, and with the list that it came from.
    """

    count = 1
    is_legacy = False
    self_cpu_percent = -1
    total_cpu_percent = -1
    total_device_percent = -1
    python_module_id = -1

    def __init__(self, events, index):
        fields = self.__dict__
        fields["_events"] = events
        fields["_index"] = index

    def __getattr__(self, name):
        load = _LOADERS.get(name)
        if load is None:
            raise AttributeError(f"'FunctionEvent' object has no attribute {name!r}")
        fields = self.__dict__
        load(fields["_events"], fields["_index"], fields)
        return fields[name]

    def __setattr__(self, name, value):
        if isinstance(getattr(FunctionEvent, name, None), property):
            raise AttributeError(f"{name} of a FunctionEvent cannot be set")
        self._keep()
        self.__dict__[name] = value

    def _keep(self):
        """Makes the list hold on to this event, since it differs from what the trace says."""
        fields = self.__dict__
        if "_changed" not in fields:
            fields["_changed"] = True
            fields["_events"].keep_event(fields["_index"], self)

    def append_kernel(self, name, device, duration):
        super().append_kernel(name, device, duration)
        self._keep()

    def append_cpu_child(self, child):
        super().append_cpu_child(child)
        self._keep()

    @property
    def cpu_parent(self):
        fields = self.__dict__
        if "cpu_parent" in fields:
            return fields["cpu_parent"]
        events = fields["_events"]
        parent = events.rows.parent(fields["_index"])
        return None if parent is None else events.event(parent)

    @property
    def use_device(self):
        fields = self.__dict__
        return fields["use_device"] if "use_device" in fields else fields["_events"].use_device

    @property
    def self_cpu_time_total(self):
        if "_changed" in self.__dict__:
            return FunctionEvent.self_cpu_time_total.fget(self)
        return self._events.rows.self_ns(self._index) / 1000

    @property
    def device_time_total(self):
        if "_changed" in self.__dict__:
            return FunctionEvent.device_time_total.fget(self)
        return self._events.rows.device_total_ns(self._index) / 1000 if self.use_device else 0

    @property
    def self_cpu_memory_usage(self):
        if "_changed" in self.__dict__ or not self._has_self_values():
            return FunctionEvent.self_cpu_memory_usage.fget(self)
        return self._events.rows.bytes(self._index)[2]

    @property
    def self_device_memory_usage(self):
        if "_changed" in self.__dict__ or not self._has_self_values():
            return FunctionEvent.self_device_memory_usage.fget(self)
        return self._events.rows.bytes(self._index)[3]

    @property
    def event_metadata(self):
        fields = self.__dict__
        return fields["event_metadata"] if "event_metadata" in fields else event_metadata(self.kwinputs)

    @property
    def _metadata_json(self):
        fields = self.__dict__
        if "_metadata_json" in fields:
            return fields["_metadata_json"]
        import json

        members = dict(self.kwinputs)
        if self.external_id:
            members["External id"] = self.external_id
        if self.external_id == self.id:
            members["Ev Idx"] = self.id - 1
        return json.dumps(members)[1:-1]

    def __reduce__(self):
        return (FunctionEvent.__new__, (FunctionEvent,), self._whole())

    def _whole(self):
        """All its fields, without the list that it came from."""
        fields = {name: getattr(self, name) for name in _ALL_FIELDS}
        fields.update((name, value) for name, value in self.__dict__.items() if name not in _NOT_COPIED)
        return fields


RecordedEvent.__name__ = RecordedEvent.__qualname__ = "FunctionEvent"
_NOT_COPIED = frozenset(("_events", "_index", "_changed"))


def _load_core(events, index, fields):
    given = dict(fields) if "_changed" in fields else ()
    events.rows.fill_core(index, fields)
    fields.update(given)  # what was set stays


def _loader(names, read):
    def load(events, index, fields):
        for name, value in zip(names, read(events.rows, index)):
            fields.setdefault(name, value)

    return load


def _load_stack(events, index, fields):
    fields["stack"] = events.rows.stack(index)


def _load_kernels(events, index, fields):
    fields["kernels"] = [Kernel._make(kernel) for kernel in events.rows.kernels(index)]


def _load_children(events, index, fields):
    fields["cpu_children"] = [events.event(child) for child in events.rows.children(index)]


def _load_flops(events, index, fields):
    flops = events.rows.flops(index) if events.with_flops else None
    fields["flops"] = 0 if flops is None else int(flops) if flops.is_integer() else flops


def _load_category(events, index, fields):
    fields["activity_type"] = events.rows.category(index)


_LOADERS = {
    **dict.fromkeys(_CORE, _load_core),
    **dict.fromkeys(_DETAIL, _loader(_DETAIL, lambda rows, index: rows.detail(index))),
    **dict.fromkeys(_INPUTS, _loader(_INPUTS, lambda rows, index: rows.inputs(index))),
    **dict.fromkeys(_IDS, _loader(_IDS, lambda rows, index: rows.ids(index))),
    **dict.fromkeys(_BYTES, _loader(_BYTES, lambda rows, index: rows.bytes(index))),
    "stack": _load_stack,
    "kernels": _load_kernels,
    "cpu_children": _load_children,
    "flops": _load_flops,
    "activity_type": _load_category,
}
_ALL_FIELDS = (
    *_LOADERS,
    "cpu_parent",
    "use_device",
    "event_metadata",
    "count",
    "is_legacy",
    "self_cpu_percent",
    "total_cpu_percent",
    "total_device_percent",
    "python_module_id",
    "_metadata_json",
)
