"""``EventList``: a list of events or averages that can be printed, grouped and exported."""

from __future__ import annotations

from operator import attrgetter

from marey import _marey
from marey._marey import Error
from marey.results.averages import FunctionEventAvg, device_number
from marey.results.types import Types, is_on_cpu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike
    from typing import Any

    from marey._marey import Averages, Trace

_CALL_SCOPES = (10, 11)  # marey::Scope::PythonFunction, CFunction
_DEVICE_NAMES = ("cuda", "xpu", "privateuse1", "hpu", "mtia", "hip", "mps")


def _device_key(name: str) -> str:
    """Return a sort key or metric with the device's name replaced by "device"."""
    for word in _DEVICE_NAMES:
        name = name.replace(word, "device")
    return name


class EventList(list["Any"]):
    """A list of FunctionEvent or FunctionEventAvg with totals, tables and exports.

    Args:
        use_device: The device named in column titles.
        profile_memory: Whether tables show memory columns.
        with_flops: Whether tables show FLOP columns.
    """

    _types = Types  # of the values in it
    _computed: Averages | None = None  # if these are averages: what C++ computed

    def __init__(
        self, *args: Any, use_device: str | None = None, profile_memory: bool = False, with_flops: bool = False
    ) -> None:
        super().__init__(*args)
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._tree_built = False

    # ---- numbers

    def _averages(self) -> Averages:
        """Return the events as C++ averages.

        They are read from the attributes, not from ``_trace()``: a program may set any attribute, and an event keeps
        its self time when the events inside it are not in the list.
        """
        if self._computed is not None and self._computed.has(self):
            return self._computed
        return self._averages_of(self)

    def _averages_of(self, events: Sequence[Any]) -> Averages:
        name = (events[0].use_device if len(events) > 0 else None) or self._use_device
        if not name and any(event.self_device_time_total > 0 for event in events):
            raise Error("use_device is not set, but there are device times")
        return _marey.averages_of_events(list(events), device_number(name), bool(self._profile_memory))

    def _is_unchanged(self) -> bool:
        """Return whether the list and its elements are as they came from a trace."""
        return False

    def _device_name(self) -> str:
        return (self[0].use_device if len(self) > 0 else None) or self._use_device or ""

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of all self times in microseconds."""
        return self._averages().self_cpu_time_total

    def total_average(self) -> FunctionEventAvg:
        """Return the total of all events, with the key "Total"."""
        averages = self._averages()
        total: FunctionEventAvg = averages.total_object(
            FunctionEventAvg, self._use_device, self._types.DeviceType, None
        )
        return total

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool | None = None,
        *,
        percentiles: bool = False,
    ) -> EventList:
        """Group the events by name (and node, device, ...) and return an EventList of FunctionEventAvg.

        Calls are left out if `include_python_functions` is False; None: as usual for the profiler that made the list.
        """
        if self._computed is not None:
            raise Error("cannot group averages again: call key_averages() on the events")
        if not self._tree_built:
            raise Error("the events are not nested yet: call _build_tree() before key_averages()")
        events = list(self)
        if not self._includes_calls(include_python_functions):
            events = [event for event in events if not event.is_python_function]
        averages = self._averages_of(events).group(
            bool(group_by_input_shapes), max(int(group_by_stack_n), 0), bool(group_by_overload_name), bool(percentiles)
        )
        return list_of_averages(averages, events.__getitem__, bool(group_by_input_shapes), self._types, self._options())

    def _includes_calls(self, given: bool | None) -> bool:
        return self._types.AVERAGES_INCLUDE_CALLS if given is None else bool(given)

    def _options(self) -> dict[str, Any]:
        return {
            "use_device": self._use_device,
            "profile_memory": self._profile_memory,
            "with_flops": self._with_flops,
        }

    # ---- text

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int | None = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        ascending: bool = False,
    ) -> str:
        """Format the events as a table.

        Args:
            sort_by: A column or any attribute; the largest value comes first, or the smallest with ``ascending``.
            row_limit: The number of rows to print; -1 for all. Sums and percentages always include all rows.
            max_src_column_width: The width of the column with source locations; None for no limit.
            max_name_column_width: The width of the column with names; None for no limit.
            max_shapes_column_width: The width of the column with input shapes; None for no limit.
            header: A line to print above the table.
            top_level_events_only: Whether to leave out events nested in other events.
            time_unit: "s", "ms" or "us" for all times.
            columns: The columns to print, by the names in ``marey._marey.table_columns()``.
        """
        options = {
            "row_limit": -1 if row_limit is None else row_limit,
            "max_src_column_width": max_src_column_width,
            "max_name_column_width": max_name_column_width,
            "max_shapes_column_width": max_shapes_column_width,
            "header": header,
            "top_level_events_only": bool(top_level_events_only),
            "ascending": bool(ascending),
            "device_name": self._device_name(),
        }
        for name in ("max_src_column_width", "max_name_column_width", "max_shapes_column_width"):
            if (width := options[name]) is not None:
                options[name] = max(0, int(width))
        if time_unit is not None:
            options["time_unit"] = str(time_unit)
        return self._text("table", sort_by, columns, options)

    def to_csv(
        self,
        sort_by: str | None = None,
        row_limit: int = -1,
        *,
        columns: Sequence[str] | None = None,
        ascending: bool = False,
    ) -> str:
        """Format the events as CSV with plain numbers in nanoseconds and bytes."""
        return self._text("csv", sort_by, columns, {"row_limit": row_limit, "ascending": bool(ascending)})

    def to_markdown(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        *,
        columns: Sequence[str] | None = None,
        ascending: bool = False,
    ) -> str:
        """Format the events as a Markdown table."""
        options = {"row_limit": row_limit, "ascending": bool(ascending), "device_name": self._device_name()}
        return self._text("markdown", sort_by, columns, options)

    def _text(self, form: str, sort_by: str | None, columns: Sequence[str] | None, options: dict[str, Any]) -> str:
        if columns is not None:
            known = _marey.table_columns()
            options["columns"] = [_device_key(column) for column in columns]
            unknown = [column for column in options["columns"] if column not in known]
            if unknown:
                raise ValueError(f"unknown column {', '.join(unknown)}; known columns: {', '.join(known)}")
        events: list[Any] = self
        if sort_by is None or _marey.is_table_key(sort_by):
            averages = self._averages()
            options["sort_by"] = sort_by or ""
        else:
            events = sorted(self, key=attrgetter(_device_key(sort_by)), reverse=not options["ascending"])
            averages = self._averages_of(events)
        if averages is not self._computed and not self._is_unchanged():  # else they have them, or no use for them
            averages.set_shares(events)
        if averages.has_flops and not self._with_flops:
            averages = averages.without_flops()
        return averages.text(form, options)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_computed"}

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        if len(self) <= 100:
            return list.__repr__(list(self))
        return f"<EventList of {len(self)}: {self[0]!r}, ...>"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.table())}</pre>"

    # ---- files

    def _trace(self) -> Trace:
        """Return the events as a trace."""
        if self._computed is not None:
            raise Error("cannot export averages: they have no timestamps; export the events instead")
        events = [event for event in self if event.trace_name is not None or event.name[:1] != "["]
        return _marey.assemble(events, device_number(self._device_name() or "cuda"))

    def export_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Write a trace for Perfetto and chrome://tracing."""
        from os import fspath

        _marey.write_chrome_json(self._trace(), fspath(path))

    def supported_export_stacks_metrics(self) -> list[str]:
        """Return the metrics that export_stacks() accepts."""
        return _marey.stack_metrics()

    def export_stacks(self, path: str | PathLike[str], metric: str, *, append_name: bool = False) -> None:
        """Write the stacks of the events with the value of the metric for each, as input for flame graphs."""
        from os import fspath

        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        _marey.export_stacks(self._trace(), fspath(path), self._metric(metric), append_name=bool(append_name))

    def _metric(self, metric: str) -> str:
        return _device_key(metric)

    # ---- nesting

    def _build_tree(self) -> None:
        """Find the parent of each event. Needed once for events made by hand."""
        if self._tree_built:
            return
        self._populate_cpu_children()
        self._remove_dup_nodes()
        self._set_backward_stacktraces()
        self._tree_built = True

    def _populate_cpu_children(self) -> None:
        """Make each event the child of the event that encloses it on the same thread."""
        events = [event for event in self if not event.is_async and is_on_cpu(event)]
        order = sorted(range(len(events)), key=lambda i: (events[i].time_range.start, -events[i].time_range.end))
        parents = _marey.nesting([events[i] for i in order])
        for place, parent in zip(order, parents):
            if parent is None:
                continue
            event, above = events[place], events[order[parent]]
            if event.cpu_parent is above:
                continue
            if event.cpu_parent is not None:
                raise Error(f"event {event.key!r} already has a parent: {event.cpu_parent.key!r}")
            above.append_cpu_child(event)
            event.set_cpu_parent(above)

    def _remove_dup_nodes(self) -> None:
        """Remove each event that is the only child of a parent with the same name.

        The parent takes over its children and kernels. Calls of Python and C functions stay: a function that calls
        itself is called twice.
        """
        while True:
            kept = []
            for event in self:
                parent = event.cpu_parent
                if not _is_repetition(event, parent):
                    kept.append(event)
                    continue
                parent.cpu_children = event.cpu_children
                parent.kernels = parent.kernels + event.kernels
                for child in event.cpu_children:
                    child.cpu_parent = parent
            if len(kept) == len(self):
                return
            self[:] = kept

    def _set_backward_stacktraces(self) -> None:
        """Give events below a backward event the stack of the corresponding forward event."""
        around: dict[int, Any] = {}  # id(event) -> the nearest enclosing backward event, which may be itself

        def backward_around(event: Any) -> Any:
            path = []
            while event is not None and id(event) not in around and event.scope != 1:
                path.append(event)
                event = event.cpu_parent
            found = None if event is None else event if event.scope == 1 else around[id(event)]
            for passed in path:
                around[id(passed)] = found
            return found

        stacks: dict[tuple[int, int], list[str]] = {}
        for event in self:
            if event.stack is not None and backward_around(event) is None:
                stacks.setdefault((event.sequence_nr, event.thread), event.stack)
        for event in self:
            backward = backward_around(event)
            if backward is not None:
                if backward.fwd_thread is None:
                    raise Error(f"the backward event {backward.name!r} has no forward thread")
                event.stack = stacks.get((backward.sequence_nr, backward.fwd_thread), [])


def list_of_averages(
    averages: Averages,
    first_event: Callable[[int], Any],
    by_input_shape: bool,
    types: type[Types],
    options: dict[str, Any],
) -> EventList:
    """Return averages that C++ computed. `first_event` returns the event of a row."""
    input_shapes = None if by_input_shape else ""
    device = options["use_device"]
    made = EventList(averages.objects(FunctionEventAvg, device, types.DeviceType, input_shapes, first_event), **options)
    made._types = types
    made._computed = averages
    return made


def _is_repetition(event: Any, parent: Any) -> bool:
    """Return whether an event only repeats its parent, as with operators that are dispatched again."""
    return (
        parent is not None
        and parent.name == event.name
        and len(parent.cpu_children) == 1
        and not _is_call(event)
        and not _is_call(parent)
    )


def _is_call(event: Any) -> bool:
    """Return whether the event is a call of a Python or C function."""
    return event.is_python_function or event.scope in _CALL_SCOPES
