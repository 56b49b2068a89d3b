"""What people call on a ``marey.Trace``, over what the library gives."""

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
    """Reads a trace: a capture, or a file of another tool (Chrome JSON, Perfetto, nvprof, Nsight Systems).

    format      the name of a format; None: the file's first bytes tell it
    session     the number of a session, where a capture holds several (see ``marey info``)
    """
    return _marey.load(_text(path), format or "", session or 0)


def _text(path):
    import os

    return os.fsdecode(path)


class TraceTable:
    """One table of a trace. pyarrow, Polars, DuckDB and pandas read it without a copy (``__arrow_c_stream__``)."""

    __slots__ = ("_trace", "name")

    def __init__(self, trace, name):
        if name not in _marey.table_names():
            raise Error(f"a trace has no table {name!r}; it has: {', '.join(_marey.table_names())}")
        self._trace = trace
        self.name = name

    def __arrow_c_schema__(self):
        return _marey.arrow_schema(self._trace, self.name)

    def __arrow_c_stream__(self, requested_schema=None):
        return _marey.arrow_stream(self._trace, self.name)

    def to_arrow(self):
        """A ``pyarrow.Table``."""
        try:
            import pyarrow
        except ImportError:
            raise Error("to_arrow() needs pyarrow, which is not installed") from None
        return pyarrow.RecordBatchReader.from_stream(self).read_all()

    def to_pandas(self):
        """A ``pandas.DataFrame``; through pyarrow where that is installed."""
        try:
            import pandas
        except ImportError:
            raise Error("to_pandas() needs pandas, which is not installed") from None
        try:
            return self.to_arrow().to_pandas()
        except Error:
            import io

            return pandas.read_csv(io.StringIO(self.to_csv()))

    def to_csv(self):
        """The table as text: the names of its columns, then a line for each row."""
        return _marey.table_csv(self._trace, self.name)

    def __repr__(self):
        return f"<marey.TraceTable {self.name!r} of {self._trace!r}>"


class _Members:
    """Becomes part of ``marey.Trace``, which is a type of the library."""

    @property
    def window_ns(self):
        """How long the recording lasted."""
        return self.end_ns - self.start_ns

    @property
    def metadata(self):
        """What was said about the recording: a dict of values."""
        import json

        return {key: json.loads(value) for key, value in self._metadata.items()}

    def with_metadata(self, key, value):
        """A trace with one more fact; `value` is anything that JSON can say."""
        import json

        return self._with_metadata(key, json.dumps(value))

    @property
    def problems(self):
        """What a reader should know (losses, damage, limits): a list of (code, text, count)."""
        return self._problems

    def info(self):
        """What it is about, apart from its events: processes, threads, window, clock, costs, problems."""
        import json

        return json.loads(self._info())

    # ---- what it tells

    def events(self, **options):
        """Its events, an ``EventList`` in order of time."""
        from marey._trace_events import events_of

        return events_of(self, **options)

    def key_averages(self, group_by_input_shapes=False, group_by_stack_n=0, group_by_overload_name=False, **options):
        """Its ranges grouped and added up, an ``EventList`` of ``FunctionEventAvg``."""
        from marey._trace_events import averages_of

        return averages_of(self, group_by_input_shapes, group_by_stack_n, group_by_overload_name, **options)

    def tree(self):
        """Its outermost ranges, as nodes that have children."""
        from marey._tree import nodes

        return nodes(self)

    def suspended_calls(self):
        """Its calls of generators, coroutines and asynchronous generators, each with all of its parts."""
        from marey._suspended_calls import suspended_calls_of

        return suspended_calls_of(self)

    def tasks(self):
        """Its asyncio tasks: what each ran, and how long it waited."""
        from marey._suspended_calls import tasks_of

        return tasks_of(self)

    def gpu_use(self, device=None, longest_gaps=5):
        """What devices did, when they had nothing to do, and why: a dict, as ``marey gpu --json`` prints it.

        device          only the devices of this number
        longest_gaps    how many idle gaps of each device are told one by one
        """
        import json

        return json.loads(self._gpu_use(device, longest_gaps))

    @property
    def tables(self):
        """Its tables by name; docs/reference/tables.md describes them."""
        return {name: TraceTable(self, name) for name in _marey.table_names()}

    def to_arrow(self, table="ranges"):
        """One of its tables as a ``pyarrow.Table``."""
        return TraceTable(self, table).to_arrow()

    def to_pandas(self, table="ranges"):
        """One of its tables as a ``pandas.DataFrame``."""
        return TraceTable(self, table).to_pandas()

    def __arrow_c_stream__(self, requested_schema=None):
        return _marey.arrow_stream(self, "ranges")

    def __arrow_c_schema__(self):
        return _marey.arrow_schema(self, "ranges")

    # ---- files

    def save(self, path):
        """Writes all of it; ``marey.load`` reads it back equal."""
        if str(_text(path)).endswith(_EXPORT_SUFFIXES):
            raise ValueError(f"save() writes Marey's own format; for {path} there is export()")
        self._save(_text(path))

    def symbolize(self, debug_dirs=()):
        """The same trace with names for the native frames of its stacks, as ``marey symbolize`` finds them.

        ``debug_dirs``: folders with programs, libraries or debug files that are not where the program had them.
        """
        return self._symbolized([str(_text(folder)) for folder in debug_dirs])

    def export(self, path, format=None):
        """Writes it in another tool's format: the one named, or the one that the suffix tells."""
        self._export(_text(path), format or "")

    def export_chrome_trace(self, path):
        """Chrome's trace JSON, for the Perfetto UI or chrome://tracing; compressed where the path ends in ".gz"."""
        self._export(_text(path), "chrome")

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Folded stacks, for flame graphs: one line "outer;inner microseconds" for each stack of Python calls."""
        if metric not in STACK_METRICS:
            raise ValueError(f"metric should be one of {', '.join(STACK_METRICS)}, not {metric!r}")
        self._export_stacks(_text(path), metric)

    def export_memory_timeline(self, path, device="cpu"):
        """Memory held over time: ".html" a page; "raw.json(.gz)" every report; else points."""
        self._export_memory_timeline(_text(path), device)

    # ---- how it shows

    def __repr__(self):
        name = f" {self.name!r}" if self.name else ""
        problems = f", {len(self._problems)} problems" if self._problems else ""
        return f"<marey.Trace{name}: {len(self):,} ranges in {_time_text(self.window_ns)}{problems}>"

    def _repr_html_(self):
        """What notebooks show: the averages."""
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
