"""The Python members of ``marey.Trace``, and ``load``."""

from marey import _marey
from marey._marey import Error, Trace

_EXPORT_SUFFIXES = (".json", ".json.gz", ".pftrace", ".pftrace.gz", ".csv", ".csv.gz", ".folded", ".folded.gz")
STACK_METRICS = (
    "self_cpu_time_total",
    "self_cuda_time_total",
    "self_xpu_time_total",
    "self_privateuse1_time_total",
    "self_device_time_total",
)


def load(path, format=None, session=None):
    """Read a Marey capture, or another tool's trace (Chrome JSON, Perfetto, nvprof, Nsight Systems).

    Args:
        path: The file.
        format: The name of a format; None to detect it from the first bytes of the file.
        session: The number of a session in a capture that has several (see ``marey info``).
    """
    return _marey.load(_text(path), format or "", session or 0)


def _text(path):
    import os

    return os.fsdecode(path)


class TraceTable:
    """One table of a trace.

    pyarrow, Polars, DuckDB and pandas read it without a copy (``__arrow_c_stream__``).
    """

    __slots__ = ("_trace", "name")

    def __init__(self, trace, name):
        if name not in _marey.table_names():
            raise Error(f"unknown table {name!r}; known tables: {', '.join(_marey.table_names())}")
        self._trace = trace
        self.name = name

    def __arrow_c_schema__(self):
        return _marey.arrow_schema(self._trace, self.name)

    def __arrow_c_stream__(self, requested_schema=None):
        return _marey.arrow_stream(self._trace, self.name)

    def to_arrow(self):
        """Return a ``pyarrow.Table``."""
        try:
            import pyarrow
        except ImportError:
            raise Error("to_arrow() needs pyarrow, which is not installed") from None
        return pyarrow.RecordBatchReader.from_stream(self).read_all()

    def to_pandas(self):
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

    def to_csv(self):
        """Return the table as CSV: the column names, then one line for each row.

        A text that a spreadsheet would run as a formula has an apostrophe in front.
        """
        return _marey.table_csv(self._trace, self.name)

    def __repr__(self):
        return f"<marey.TraceTable {self.name!r} of {self._trace!r}>"


class _Members:
    """Members that are added to ``marey.Trace``, a type of the C++ library."""

    @property
    def window_ns(self):
        """The length of the recording in nanoseconds."""
        return self.end_ns - self.start_ns

    @property
    def metadata(self):
        """The metadata of the recording as a dict."""
        import json

        return {key: json.loads(value) for key, value in self._metadata.items()}

    def with_metadata(self, key, value):
        """Return a trace with one more metadata entry; `value` is anything that JSON can represent."""
        import json

        return self._with_metadata(key, json.dumps(value))

    def filtered(self, exclude=(), fold_imports=False):
        """Return a trace without some ranges; the ranges inside them stay.

        `exclude`: shell patterns for names, functions and files. `fold_imports`: show each import of a Python
        module as one range ``import NAME``, as the commands do.
        """
        return self._filtered([exclude] if isinstance(exclude, str) else list(exclude), fold_imports)

    @property
    def problems(self):
        """Losses, damage and limits of the trace: a list of (code, text, count)."""
        return self._problems

    def info(self):
        """Return everything except the events: processes, threads, window, clock, costs, problems."""
        import json

        return json.loads(self._info())

    # ---- results

    def events(self, **options):
        """Return its events as an ``EventList`` in order of time."""
        from marey._trace_events import events_of

        return events_of(self, **options)

    def key_averages(self, group_by_input_shapes=False, group_by_stack_n=0, group_by_overload_name=False, **options):
        """Group its ranges by name and return an ``EventList`` of ``FunctionEventAvg``."""
        from marey._trace_events import averages_of

        return averages_of(self, group_by_input_shapes, group_by_stack_n, group_by_overload_name, **options)

    def tree(self):
        """Return its outermost ranges as nodes with children."""
        from marey._tree import nodes

        return nodes(self)

    def suspended_calls(self):
        """Return its generator, coroutine and async generator calls, each with all of its parts."""
        from marey._suspended_calls import suspended_calls_of

        return suspended_calls_of(self)

    def tasks(self):
        """Return its asyncio tasks, with the time that each ran and waited."""
        from marey._suspended_calls import tasks_of

        return tasks_of(self)

    def gpu_use(self, device=None, longest_gaps=5):
        """Return the activity and idle gaps of devices as a dict, like the output of ``marey gpu --json``.

        Args:
            device: The number of the device; all by default.
            longest_gaps: How many idle gaps of each device to list.
        """
        import json

        return json.loads(self._gpu_use(device, longest_gaps))

    @property
    def tables(self):
        """Its tables by name, as described in docs/reference/tables.md."""
        return {name: TraceTable(self, name) for name in _marey.table_names()}

    def to_arrow(self, table="ranges"):
        """Return one of its tables as a ``pyarrow.Table``."""
        return TraceTable(self, table).to_arrow()

    def to_pandas(self, table="ranges"):
        """Return one of its tables as a ``pandas.DataFrame``."""
        return TraceTable(self, table).to_pandas()

    def __arrow_c_stream__(self, requested_schema=None):
        return _marey.arrow_stream(self, "ranges")

    def __arrow_c_schema__(self):
        return _marey.arrow_schema(self, "ranges")

    # ---- files

    def save(self, path):
        """Write the whole trace; ``marey.load`` reads it back unchanged."""
        if str(_text(path)).endswith(_EXPORT_SUFFIXES):
            raise ValueError(f"save() writes only Marey's own format; use export() for {path}")
        self._save(_text(path))

    def symbolize(self, debug_dirs=()):
        """Return the trace with names for the native frames of its stacks, like ``marey symbolize``.

        Args:
            debug_dirs: Folders with programs, libraries or debug files that have moved since the recording.
        """
        return self._symbolized([str(_text(folder)) for folder in debug_dirs])

    def export(self, path, format=None):
        """Write another tool's format, selected by name or by the suffix of the path."""
        self._export(_text(path), format or "")

    def export_chrome_trace(self, path):
        """Write a Chrome JSON trace for the Perfetto UI or chrome://tracing (compressed: ".gz")."""
        self._export(_text(path), "chrome")

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Write folded stacks for flame graphs.

        Each stack of Python calls is a line "outer;inner microseconds".
        """
        if metric not in STACK_METRICS:
            raise ValueError(f"metric should be one of {', '.join(STACK_METRICS)}, not {metric!r}")
        self._export_stacks(_text(path), metric)

    def export_memory_timeline(self, path, device="cpu"):
        """Write memory over time.

        The suffix of the path selects the form: ".html" is a page, "raw.json" or "raw.json.gz" has every change, and
        any other suffix has points of the timeline.
        """
        self._export_memory_timeline(_text(path), device)

    # ---- display

    def __repr__(self):
        name = f" {self.name!r}" if self.name else ""
        problems = f", {len(self._problems)} problems" if self._problems else ""
        return f"<marey.Trace{name}: {len(self):,} ranges in {_time_text(self.window_ns)}{problems}>"

    def _repr_html_(self):
        """Return the averages as HTML, for notebooks."""
        import html

        table = self.key_averages().table(sort_by="self_cpu_time_total", row_limit=20)
        return f"<p>{html.escape(repr(self))}</p><pre>{html.escape(table)}</pre>"


def _time_text(ns):
    for unit, size in (("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)):
        if ns >= size:
            return f"{ns / size:.4g} {unit}"
    return f"{ns} ns"


for _name, _member in vars(_Members).items():
    if _name not in ("__module__", "__dict__", "__weakref__", "__doc__"):
        setattr(Trace, _name, _member)
