"""The Python members of ``marey.Trace``, and ``load``."""

# No `from __future__ import annotations` here: `import marey` would load that module for it alone.

from marey import _marey
from marey._marey import Error, Trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike
    from typing import Any

    from marey.results.event_list import EventList
    from marey.results.suspended_calls import SuspendedCall, Task
    from marey.results.tree import _ProfilerEvent
    from marey.results.view import Viewer
    from marey.sql.database import Result

    _Base = Trace
else:
    _Base = object

STACK_METRICS = (
    "self_cpu_time_total",
    "self_cuda_time_total",
    "self_xpu_time_total",
    "self_privateuse1_time_total",
    "self_device_time_total",
)


def load(
    path: "str | PathLike[str] | list[Any] | tuple[Any, ...]", format: "str | None" = None, session: "Any" = None
) -> Trace:
    """Read a Marey capture, or another tool's trace (Chrome JSON, Perfetto, nvprof, Nsight Systems).

    Args:
        path: The file; or a list of captures of one run, which become one trace on one clock.
        format: The name of a format; None to detect it from the first bytes of the file.
        session: The number of a session in a capture that has several (see ``marey info``).
    """
    if isinstance(path, (list, tuple)):
        if format is not None or session is not None:
            raise Error("load: format and session apply to a single file")
        return _marey.load_merged(list(path))
    return _marey.load(path, format or "", session or 0)


def ranks(
    traces: "Iterable[Trace] | Iterable[str | PathLike[str]]", step: str = "", input: str = "dataloader"
) -> "dict[str, Any]":
    """Compare the ranks of a distributed program, like the output of ``marey ranks --json``.

    Args:
        traces: Traces, or files and folders, which are read one by one. Files that cannot be read are in
            ``left_out`` of the result.
        step: The names of the ranges that are steps, with ``*`` for any text; by default those of PyTorch.
        input: Ranges whose name contains this text wait for input data.
    """
    items: list[Any] = list(traces)
    if all(isinstance(item, Trace) for item in items):
        tables, left_out = _marey.rank_result(items, step, input), []
    else:
        tables, left_out = _marey.read_ranks(items, step, input)
    return {**{table.name: table.value() for table in tables}, "left_out": left_out}


class TraceTable:
    """One table of a trace.

    pyarrow, Polars, DuckDB and pandas read it without a copy (``__arrow_c_stream__``).
    """

    name: str

    __slots__ = ("_trace", "name")

    def __init__(self, trace: Trace, name: str) -> None:
        if name not in _marey.table_names():
            raise Error(f"unknown table {name!r}; known tables: {', '.join(_marey.table_names())}")
        self._trace = trace
        self.name = name

    def __arrow_c_schema__(self) -> "Any":
        return _marey.arrow_schema(self._trace, self.name)

    def __arrow_c_stream__(self, requested_schema: "Any" = None) -> "Any":
        return _marey.arrow_stream(self._trace, self.name)

    def to_arrow(self) -> "Any":
        """Return a ``pyarrow.Table``."""
        try:
            import pyarrow
        except ImportError:
            raise Error("to_arrow() needs pyarrow, which is not installed") from None
        return pyarrow.RecordBatchReader.from_stream(self).read_all()

    def to_pandas(self) -> "Any":
        """Return a ``pandas.DataFrame``, made with pyarrow if it is installed."""
        try:
            import pandas
        except ImportError:
            raise Error("to_pandas() needs pandas, which is not installed") from None
        try:
            return self.to_arrow().to_pandas()
        except Error:
            import io

            frame = pandas.read_csv(io.StringIO(self.to_csv()))
            for column in frame.select_dtypes(exclude=["number", "bool"]):  # undo the protection from formulas
                frame[column] = frame[column].replace(r"^'('*[=+\-@\t\r])", r"\1", regex=True)
            return frame

    def to_csv(self) -> str:
        """Return the table as CSV: the column names, then one line for each row.

        A text that a spreadsheet would run as a formula has an apostrophe in front.
        """
        return _marey.table_csv(self._trace, self.name)

    def __repr__(self) -> str:
        return f"<marey.TraceTable {self.name!r} of {self._trace!r}>"


class _Members(_Base):
    """Members that are added to ``marey.Trace``, a type of the C++ library."""

    @property
    def window_ns(self) -> int:
        """The length of the recording in nanoseconds."""
        return self.end_ns - self.start_ns

    @property
    def metadata(self) -> "dict[str, Any]":
        """The metadata of the recording as a dict."""
        import json

        return {key: json.loads(value) for key, value in self._metadata.items()}

    def with_metadata(self, key: str, value: "Any") -> Trace:
        """Return a trace with one more metadata entry; `value` is anything that JSON can represent."""
        import json

        return self._with_metadata(key, json.dumps(value))

    def filtered(
        self, exclude: "str | Iterable[str]" = (), fold_imports: bool = False, exclude_running: bool = False
    ) -> Trace:
        """Return a trace without some ranges; the ranges inside them stay.

        `exclude`: shell patterns for names, functions and files. `fold_imports`: show each import of a Python
        module as one range ``import NAME``, as the commands do. `exclude_running`: leave out the Python calls that
        were running when the session started.
        """
        names = [exclude] if isinstance(exclude, str) else list(exclude)
        return self._filtered(names, fold_imports, exclude_running)

    @property
    def problems(self) -> "list[tuple[str, str, int]]":
        """Losses, damage and limits of the trace: a list of (code, text, count)."""
        return self._problems

    def info(self) -> "dict[str, Any]":
        """Return everything except the events: processes, threads, window, clock, costs, problems."""
        tables = {table.name: table.value() for table in _marey.make_result(self, "info")}
        return {**tables.pop(""), **tables}

    # ---- results

    def events(self, **options: "Any") -> "EventList":
        """Return its events as an ``EventList`` in order of time."""
        from marey.results.trace_events import events_of

        return events_of(self, **options)

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        *,
        group_by_thread: bool = False,
        percentiles: bool = False,
        **options: "Any",
    ) -> "EventList":
        """Group its ranges by name and return an ``EventList`` of ``FunctionEventAvg``; `options` as in events()."""
        from marey.results.trace_events import averages_of

        return averages_of(
            self,
            group_by_input_shapes,
            group_by_stack_n,
            group_by_overload_name,
            group_by_thread=group_by_thread,
            percentiles=percentiles,
            **options,
        )

    def tree(self) -> "list[_ProfilerEvent]":
        """Return its outermost ranges as nodes with children."""
        from marey.results.tree import nodes

        return nodes(self)

    def suspended_calls(self) -> "list[SuspendedCall]":
        """Return its generator, coroutine and async generator calls, each with all of its parts."""
        from marey.results.suspended_calls import suspended_calls_of

        return suspended_calls_of(self)

    def tasks(self) -> "list[Task]":
        """Return its asyncio tasks, with the time that each ran and waited."""
        from marey.results.suspended_calls import tasks_of

        return tasks_of(self)

    def gpu_use(self, device: "int | None" = None, longest_gaps: int = 5) -> "dict[str, Any]":
        """Return the activity and idle gaps of devices as a dict, like the output of ``marey gpu --json``.

        Args:
            device: The number of the device; all by default.
            longest_gaps: How many idle gaps of each device to list.
        """
        tables = _marey.make_result(self, "gpu", device, longest_gaps)
        return {table.name: table.value() for table in tables}

    def explain(self) -> "dict[str, Any]":
        """Return what stands out, largest possible gain first, as a dict like the output of ``marey explain --json``.

        ``findings`` is empty if nothing does; the rows of ``finding_evidence`` refer to them by number.
        """
        return {table.name: table.value() for table in _marey.make_result(self, "explain")}

    def ranks(self, step: str = "", input: str = "dataloader") -> "dict[str, Any]":
        """Compare the ranks of this trace, if it has several; like ``marey.ranks``."""
        return ranks([self], step, input)

    @property
    def tables(self) -> "dict[str, TraceTable]":
        """Its tables by name, as described in docs/reference/tables.md."""
        return {name: TraceTable(self, name) for name in _marey.table_names()}

    def to_arrow(self, table: str = "ranges") -> "Any":
        """Return one of its tables as a ``pyarrow.Table``."""
        return TraceTable(self, table).to_arrow()

    def to_pandas(self, table: str = "ranges") -> "Any":
        """Return one of its tables as a ``pandas.DataFrame``."""
        return TraceTable(self, table).to_pandas()

    def __arrow_c_stream__(self, requested_schema: "Any" = None) -> "Any":
        return _marey.arrow_stream(self, "ranges")

    def __arrow_c_schema__(self) -> "Any":
        return _marey.arrow_schema(self, "ranges")

    def sql(self, query: str, timeout: "float | None" = None) -> "Result":
        """Run SQL over its tables on DuckDB and return an Arrow table, with df() for pandas and pl() for Polars.

        Args:
            query: One or more statements, separated by semicolons; the last one gives the rows.
            timeout: Seconds after which to stop.
        """
        from marey.sql.database import of_trace

        return of_trace(self).sql(query, timeout)

    def duckdb(self) -> "Any":
        """Return a new DuckDB connection with all its tables. It cannot read files or the network."""
        from marey.sql.database import of_trace

        return of_trace(self).connection

    # ---- files

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the whole trace; ``marey.load`` reads it back unchanged."""
        if str(path).endswith(tuple(_marey.export_suffixes())):
            raise ValueError(f"save() writes only Marey's own format; use export() for {path}")
        self._save(path)

    def symbolize(self, debug_dirs: "Iterable[str | PathLike[str]]" = ()) -> Trace:
        """Return the trace with names for the native frames of its stacks, like ``marey symbolize``.

        Args:
            debug_dirs: Folders with programs, libraries or debug files that have moved since the recording.
        """
        return self._symbolized(list(debug_dirs))

    def export(self, path: "str | PathLike[str]", format: "str | None" = None) -> None:
        """Write another tool's format, selected by name or by the suffix of the path."""
        self._export(path, format or "")

    def export_chrome_trace(self, path: "str | PathLike[str]") -> None:
        """Write a Chrome JSON trace for the Perfetto UI or chrome://tracing (compressed: ".gz")."""
        self._export(path, "chrome")

    def export_stacks(self, path: "str | PathLike[str]", metric: str = "self_cpu_time_total") -> None:
        """Write folded stacks for flame graphs.

        Each stack of Python calls is a line "outer;inner microseconds".
        """
        if metric not in STACK_METRICS:
            raise ValueError(f"metric should be one of {', '.join(STACK_METRICS)}, not {metric!r}")
        self._export_stacks(path, metric)

    def export_memory_timeline(self, path: "str | PathLike[str]", device: str = "cpu") -> None:
        """Write memory over time.

        The suffix of the path selects the form: ".html" is a page, "raw.json" or "raw.json.gz" has every change, and
        any other suffix has points of the timeline.
        """
        self._export_memory_timeline(path, device)

    # ---- display

    def view(self, port: int = 0, browser: bool = True, source: "str | PathLike[str] | Iterable[str]" = ()) -> "Viewer":
        """Show the trace in the browser, like ``marey view``. Returns at once.

        The result has the address (`url`) and `close()`; the viewer also stops when the program ends.

        Args:
            port: The port to listen on, on the loopback interface only; 0 for any free one.
            browser: Open the page in a browser.
            source: A folder, or folders, with source files that the page may show besides the working directory.
        """
        from marey.results.view import view_trace

        return view_trace(self, self.name or "trace", port, browser, source)

    def to_html(self) -> str:
        """Return the page of ``view()`` with the data inside: the text of one HTML file that needs no server."""
        return _marey.html_report(self, self.name or "trace")

    def __repr__(self) -> str:
        from marey.results.event_parts import format_time

        name = f" {self.name!r}" if self.name else ""
        problems = f", {len(self._problems)} problems" if self._problems else ""
        return f"<marey.Trace{name}: {len(self):,} ranges in {format_time(self.window_ns / 1000)}{problems}>"

    def _repr_html_(self) -> str:
        """Return a summary and a flame graph as HTML without scripts, for notebooks."""
        from marey.results.notebook_page import page_of

        return page_of(self)


def add_members(cls: type, members: type) -> None:
    """Add the members of a class to a type of the extension."""
    for name, member in vars(members).items():
        if name not in ("__module__", "__dict__", "__weakref__", "__doc__"):
            setattr(cls, name, member)


add_members(Trace, _Members)
