"""The results of a profiler, read from its trace."""

from __future__ import annotations

from time import perf_counter_ns

from marey._marey import Error, Trace, join_traces
from marey.recording.active import running
from marey.results.types import Types, _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike
    from typing import Any

    from marey.results.averages import FunctionEventAvg
    from marey.results.event_list import EventList
    from marey.results.view import Viewer


class ProfilerStats(_Fields):
    """Statistics of the profiler's own work, in microseconds unless the name has another unit."""

    profiling_window_duration_sec: float
    number_of_events: int
    profiler_prepare_call_duration_us: int
    profiler_enable_call_duration_us: int
    profiler_disable_call_duration_us: int
    parse_kineto_call_duration_us: int
    function_events_build_tree_call_duration_us: int
    number_of_dropped_events: int
    averages_call_duration_us: int
    export_call_duration_us: int
    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        super().__init__(*[0] * len(self._names))

    def __call__(self) -> ProfilerStats:
        """Return itself: PyTorch's two profilers differ in whether ``_stats`` is called."""
        return self

    def add_time(self, name: str, begin_ns: int) -> None:
        """Add the time since then, rounded up, to the statistic with this name."""
        setattr(self, name, getattr(self, name) - (begin_ns - perf_counter_ns()) // 1000)


class timed:
    """Adds the time that its block takes to one of a profiler's statistics."""

    __slots__ = ("_stats", "_name", "_begin_ns")

    def __init__(self, stats: ProfilerStats, name: str) -> None:
        self._stats = stats
        self._name = name

    def __enter__(self) -> None:
        self._begin_ns = perf_counter_ns()

    def __exit__(self, *_: object) -> None:
        self._stats.add_time(self._name, self._begin_ns)


class Results:
    """The part of ``marey.profile`` that returns results.

    Subclasses set `_traces`, the newest first, and `_stats`.
    """

    _types = Types  # of the values in results
    enabled: bool
    use_device: str | None
    profile_memory: bool
    with_flops: bool
    with_stack: bool
    _alive: object
    _events: tuple[Trace, EventList] | None
    _stats: ProfilerStats
    _traces: list[Trace]

    @property
    def trace(self) -> Trace:
        """The recording as a ``marey.Trace``; with acc_events, all cycles in one trace."""
        if not self.enabled:
            return Trace()
        if not self._traces:
            state = "is still running" if self._alive in running else "has not run"
            raise Error(f"no results yet: the profiler {state} (Profiler didn't finish running)")
        if len(self._traces) > 1:
            self._traces = [join_traces(self._traces)]
        return self._traces[0]

    def events(self) -> EventList:
        """Return all events as an ``EventList``."""
        from marey.results.trace_events import events_of

        trace = self.trace
        if self._events is None or self._events[0] is not trace:
            with timed(self._stats, "parse_kineto_call_duration_us"):
                self._events = (trace, events_of(trace, **self._event_options()))
            with timed(self._stats, "function_events_build_tree_call_duration_us"):
                self._stats.number_of_events = len(self._events[1])
        return self._events[1]

    def _event_options(self) -> dict[str, Any]:
        return {
            "use_device": self.use_device,
            "profile_memory": self.profile_memory,
            "with_flops": self.with_flops,
            "types": self._types,
        }

    @property
    def function_events(self) -> EventList:
        """The same as events()."""
        return self.events()

    @property
    def kineto_results(self) -> Any:
        """The trace in the form of PyTorch's native result: events(), experimental_event_tree(), save()."""
        from marey.compat.native_results import ProfilerResult

        return ProfilerResult(self.trace, self.events(), self.tree)

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool | None = None,
    ) -> EventList:
        """Group the events by name and return an ``EventList`` of ``FunctionEventAvg``.

        Calls of Python and C functions are included unless `include_python_functions` is False. Its default with
        ``marey.torch`` is that of the installed PyTorch (docs/reference/versions.md).
        """
        from marey.results.trace_events import averages_of

        trace, begin = self.trace, perf_counter_ns()
        averages = averages_of(
            trace,
            group_by_input_shape,
            group_by_stack_n,
            group_by_overload_name,
            include_python_functions,
            use_device=self.use_device,
            profile_memory=self.profile_memory,
            with_flops=self.with_flops,
            types=self._types,
        )
        self._stats.add_time("averages_call_duration_us", begin)
        return averages

    def total_average(self) -> FunctionEventAvg:
        """Return the total of all events."""
        return self.events().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """The CPU time of all ranges, each counted once, in microseconds."""
        return self.events().self_cpu_time_total

    def table(self, *args: Any, **options: Any) -> str:
        """Format the events as a table; see ``EventList.table`` for the options."""
        return self.events().table(*args, **options)

    def tree(self) -> list[Any]:
        """Return the outermost ranges as nodes with children."""
        from marey.results.tree import nodes

        return nodes(self.trace, self._types)

    def __str__(self) -> str:
        if self.enabled and not self._traces:
            return "<unfinished marey.profile>"
        return self.table()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        import html

        return self.trace._repr_html_() if self._traces else html.escape(str(self))

    def export_chrome_trace(self, path: str | PathLike[str], use_python_export: bool = False) -> None:
        """Write a Chrome JSON trace for the Perfetto UI or chrome://tracing.

        It is compressed if the path ends in ".gz". `use_python_export` is ignored: there is only one exporter.
        """
        trace = self.trace
        with timed(self._stats, "export_call_duration_us"):
            trace.export_chrome_trace(path)

    def export(self, path: str | PathLike[str], format: str | None = None) -> None:
        """Write any format of ``marey export``, selected by name or by the suffix of the path."""
        trace = self.trace
        with timed(self._stats, "export_call_duration_us"):
            trace.export(path, format)

    def view(self, port: int = 0, browser: bool = True, source: str | PathLike[str] | Iterable[str] = ()) -> Viewer:
        """Show the trace in the browser; see ``marey.Trace.view``."""
        return self.trace.view(port, browser, source)

    def export_stacks(self, path: str | PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write folded stacks for flame graphs. Requires with_stack."""
        if not self.with_stack:
            raise Error("export_stacks() requires with_stack=True: no stacks were recorded")
        self.trace.export_stacks(path, metric)

    def memory_profile(self) -> Any:
        """Return a ``MemoryProfile``: memory by category (parameters, gradients, ...)."""
        self._check_memory_profile()
        from marey.results.memory_profile import MemoryProfile

        return MemoryProfile(self.trace)

    def _memory_profile(self) -> Any:
        return self.memory_profile()  # upstream's name

    def _check_memory_profile(self) -> None:
        """Raise an error if an option that MemoryProfile needs is off."""
        needed = ("record_shapes", "profile_memory", "with_stack")
        missing = [f"{name}=True" for name in needed if not getattr(self, name)]
        if missing:
            raise ValueError(f"{', '.join(missing)} required for memory profiling.")

    def export_memory_timeline(self, path: str | PathLike[str], device: str | None = None) -> None:
        """Write memory over time. Requires profile_memory.

        Memory is shown by category if that is known (record_shapes, with_stack).

        The suffix of the path selects the form: ".html" is a page, "raw.json" or "raw.json.gz" has every change, and
        any other suffix has points of the timeline.
        """
        if not self.profile_memory:
            raise Error("export_memory_timeline() requires profile_memory=True: no allocations were recorded")
        self.trace.export_memory_timeline(path, device or (f"{self.use_device}:0" if self.use_device else "cpu"))
