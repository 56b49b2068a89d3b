"""``EventList``: a list of events or averages that can be printed, grouped and exported."""

from operator import attrgetter

from marey import _marey
from marey._averages import Descriptions, average_of, device_number, row_of, set_shares
from marey._marey import Error
from marey._types import Types, is_on_cpu

_CALL_SCOPES = (10, 11)  # marey::Scope::PythonFunction, CFunction
_DEVICE_NAMES = ("cuda", "xpu", "privateuse1", "hpu", "mtia", "hip", "mps")


def _device_key(name):
    """Return a sort key or metric with the device's name replaced by "device"."""
    for word in _DEVICE_NAMES:
        name = name.replace(word, "device")
    return name


class EventList(list):
    """A list of FunctionEvent or FunctionEventAvg with totals, tables and exports.

    Args:
        use_device: The device named in column titles.
        profile_memory: Whether tables show memory columns.
        with_flops: Whether tables show FLOP columns.
    """

    _types = Types  # of the values in it

    def __init__(self, *args, use_device=None, profile_memory=False, with_flops=False):
        super().__init__(*args)
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._tree_built = False

    # ---- numbers

    def _averages(self):
        """Return the events as C++ averages."""
        return self._averages_of(self)

    def _averages_of(self, events):
        rows = [row_of(event) for event in events]
        name = (events[0].use_device if len(events) > 0 else None) or self._use_device
        if not name and any(row[8] > 0 for row in rows):
            raise Error("use_device is not set, but there are device times")
        return _marey.averages_of_rows(rows, True, device_number(name), bool(self._profile_memory))

    def _device_name(self):
        return (self[0].use_device if len(self) > 0 else None) or self._use_device or ""

    @property
    def self_cpu_time_total(self):
        """The sum of all self times in microseconds."""
        return self._averages().self_cpu_time_total

    def total_average(self):
        """Return the total of all events, with the key "Total"."""
        return average_of(self._averages().total(), self._use_device, lambda first: None, False, self._types)

    def key_averages(
        self, group_by_input_shapes=False, group_by_stack_n=0, group_by_overload_name=False, *, percentiles=False
    ):
        """Group the events by name (and node, device, ...) and return an EventList of FunctionEventAvg."""
        if not self._tree_built:
            raise Error("the events are not nested yet: call _build_tree() before key_averages()")
        from marey._views import AverageList

        events = list(self)
        averages = self._averages().group(
            bool(group_by_input_shapes), max(int(group_by_stack_n), 0), bool(group_by_overload_name), bool(percentiles)
        )
        return AverageList(
            averages,
            self._options(),
            by_input_shape=bool(group_by_input_shapes),
            first_event=events.__getitem__,
            types=self._types,
        )

    def _options(self):
        return {
            "use_device": self._use_device,
            "profile_memory": self._profile_memory,
            "with_flops": self._with_flops,
        }

    # ---- text

    def table(
        self,
        sort_by=None,
        row_limit=100,
        max_src_column_width=75,
        max_name_column_width=55,
        max_shapes_column_width=80,
        header=None,
        top_level_events_only=False,
        time_unit=None,
        *,
        columns=None,
        ascending=False,
    ):
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
            "max_src_column_width": _width(max_src_column_width),
            "max_name_column_width": _width(max_name_column_width),
            "max_shapes_column_width": _width(max_shapes_column_width),
            "header": header,
            "top_level_events_only": bool(top_level_events_only),
            "ascending": bool(ascending),
            "device_name": self._device_name(),
        }
        if time_unit is not None:
            options["time_unit"] = str(time_unit)
        return self._text("table", sort_by, columns, options)

    def to_csv(self, sort_by=None, row_limit=-1, *, columns=None, ascending=False):
        """Format the events as CSV with plain numbers in nanoseconds and bytes."""
        return self._text("csv", sort_by, columns, {"row_limit": row_limit, "ascending": bool(ascending)})

    def to_markdown(self, sort_by=None, row_limit=100, *, columns=None, ascending=False):
        """Format the events as a Markdown table."""
        options = {"row_limit": row_limit, "ascending": bool(ascending), "device_name": self._device_name()}
        return self._text("markdown", sort_by, columns, options)

    def _text(self, form, sort_by, columns, options):
        if columns is not None:
            known = _marey.table_columns()
            options["columns"] = [_device_key(column) for column in columns]
            unknown = [column for column in options["columns"] if column not in known]
            if unknown:
                raise ValueError(f"unknown column {', '.join(unknown)}; known columns: {', '.join(known)}")
        if sort_by is None or _marey.is_table_key(sort_by):
            averages = self._averages()
            options["sort_by"] = sort_by or ""
        else:
            events = sorted(self, key=attrgetter(_device_key(sort_by)), reverse=not options["ascending"])
            averages = self._averages_of(events)
        self._set_shares(averages)
        return self._shown(averages).text(form, options)

    def _set_shares(self, averages):
        """Set the events' percentages, as text."""
        for event in self:
            set_shares(event, averages)

    def _shown(self, averages):
        """Return the averages that a table shows: without FLOPs unless with_flops is set."""
        return averages if self._with_flops or not averages.has_flops else averages.without_flops()

    def __str__(self):
        return self.table()

    def __repr__(self):
        if len(self) <= 100:
            return list.__repr__(list(self))
        return f"<EventList of {len(self)}: {self[0]!r}, ...>"

    def _repr_html_(self):
        from html import escape

        return f"<pre>{escape(self.table())}</pre>"

    # ---- files

    def _trace(self):
        """Return the events as a trace."""
        made = Descriptions()
        events = [made.whole(event) for event in self if event.trace_name is not None or event.name[:1] != "["]
        return _marey.assemble(events, device_number(self._device_name() or "cuda"))

    def export_chrome_trace(self, path):
        """Write a trace for Perfetto and chrome://tracing."""
        from os import fspath

        _marey.write_chrome_json(self._trace(), fspath(path))

    def supported_export_stacks_metrics(self):
        """Return the metrics that export_stacks() accepts."""
        return _marey.stack_metrics()

    def export_stacks(self, path, metric, *, append_name=False):
        """Write the stacks of the events with the value of the metric for each, as input for flame graphs."""
        from os import fspath

        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        _marey.export_stacks(self._trace(), fspath(path), self._metric(metric), append_name=bool(append_name))

    def _metric(self, metric):
        return _device_key(metric)

    # ---- nesting

    def _build_tree(self):
        """Find the parent of each event. Needed once for events made by hand."""
        if self._tree_built:
            return
        self._populate_cpu_children()
        self._remove_dup_nodes()
        self._set_backward_stacktraces()
        self._tree_built = True

    def _populate_cpu_children(self):
        """Make each event the child of the event that encloses it on the same thread."""
        events = [event for event in self if not event.is_async and is_on_cpu(event)]
        made = Descriptions()
        order = sorted(range(len(events)), key=lambda i: (events[i].time_range.start, -events[i].time_range.end))
        parents = _marey.nesting([made.times(events[i]) for i in order])
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

    def _remove_dup_nodes(self):
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

    def _set_backward_stacktraces(self):
        """Give events below a backward event the stack of the corresponding forward event."""
        around = {}  # id(event) -> the nearest enclosing backward event, which may be itself

        def backward_around(event):
            path = []
            while event is not None and id(event) not in around and event.scope != 1:
                path.append(event)
                event = event.cpu_parent
            found = None if event is None else event if event.scope == 1 else around[id(event)]
            for passed in path:
                around[id(passed)] = found
            return found

        stacks = {}
        for event in self:
            if event.stack is not None and backward_around(event) is None:
                stacks.setdefault((event.sequence_nr, event.thread), event.stack)
        for event in self:
            backward = backward_around(event)
            if backward is not None:
                if backward.fwd_thread is None:
                    raise Error(f"the backward event {backward.name!r} has no forward thread")
                event.stack = stacks.get((backward.sequence_nr, backward.fwd_thread), [])


def _is_repetition(event, parent):
    """Return whether an event only repeats its parent, as with operators that are dispatched again."""
    return (
        parent is not None
        and parent.name == event.name
        and len(parent.cpu_children) == 1
        and not _is_call(event)
        and not _is_call(parent)
    )


def _is_call(event):
    """Return whether the event is a call of a Python or C function."""
    return event.is_python_function or event.scope in _CALL_SCOPES


def _width(width):
    return None if width is None else max(0, int(width))
