"""What a profiler answers when it has finished; all of it is read from its trace."""

from marey._active import running
from marey._marey import Error, Trace, join_traces


class ProfilerStats:
    """How long the profiler's own work took, and how much there was of it. Times in microseconds unless named."""

    __slots__ = (
        "profiling_window_duration_sec",
        "number_of_events",
        "profiler_prepare_call_duration_us",
        "profiler_enable_call_duration_us",
        "profiler_disable_call_duration_us",
        "parse_kineto_call_duration_us",
        "function_events_build_tree_call_duration_us",
        "number_of_dropped_events",
        "averages_call_duration_us",
        "export_call_duration_us",
    )

    def __init__(self):
        for name in self.__slots__:
            setattr(self, name, 0)

    def __call__(self):
        """Itself: upstream's two profilers disagree whether ``_stats`` is called."""
        return self

    def __repr__(self):
        return "ProfilerStats(" + ", ".join(f"{name}={getattr(self, name)}" for name in self.__slots__) + ")"


class timed:
    """Adds the time that its block takes to one of a profiler's statistics."""

    __slots__ = ("_stats", "_name", "_start")

    def __init__(self, stats, name):
        self._stats = stats
        self._name = name

    def __enter__(self):
        from time import perf_counter_ns

        self._start = perf_counter_ns()

    def __exit__(self, *_):
        from time import perf_counter_ns

        setattr(self._stats, self._name, (perf_counter_ns() - self._start) // 1000 + getattr(self._stats, self._name))


class Results:
    """The part of ``marey.profile`` that reads. Subclasses keep `_traces`, the newest first, and `_stats`."""

    @property
    def trace(self):
        """What was recorded, as a ``marey.Trace``; with acc_events, all cycles as one."""
        if not self.enabled:
            return Trace()
        if not self._traces:
            state = "is still running" if self._alive in running else "has not run"
            raise Error(f"there is nothing to read yet: the profiler {state} (Profiler didn't finish running)")
        if len(self._traces) > 1:
            self._traces = [join_traces(self._traces)]
        return self._traces[0]

    def events(self):
        """Every event, an ``EventList``."""
        from marey._trace_events import events_of

        trace = self.trace
        if self._events is None or self._events[0] is not trace:
            with timed(self._stats, "parse_kineto_call_duration_us"):
                self._events = (trace, events_of(trace, **self._event_options()))
        return self._events[1]

    def _event_options(self):
        return {"use_device": self.use_device, "profile_memory": self.profile_memory, "with_flops": self.with_flops}

    @property
    def function_events(self):
        return self.events()

    @property
    def kineto_results(self):
        """The trace in the shape of PyTorch's native result: events(), experimental_event_tree(), save()."""
        from marey._native_results import ProfilerResult

        return ProfilerResult(self.trace, self.events())

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        """The events of the same name added up, an ``EventList`` of ``FunctionEventAvg``."""
        trace = self.trace
        with timed(self._stats, "averages_call_duration_us"):
            return trace.key_averages(
                group_by_input_shapes=group_by_input_shape,
                group_by_stack_n=group_by_stack_n,
                group_by_overload_name=group_by_overload_name,
                **self._event_options(),
            )

    def total_average(self):
        """All events added up."""
        return self.events().total_average()

    @property
    def self_cpu_time_total(self):
        """The time of all ranges on the processor, each counted once, in microseconds."""
        return self.events().self_cpu_time_total

    def table(self, *args, **options):
        """A table of the events; the options of ``EventList.table``."""
        return self.events().table(*args, **options)

    def tree(self):
        """The outermost ranges, as nodes that have children."""
        return self.trace.tree()

    def __str__(self):
        if self.enabled and not self._traces:
            return "<unfinished marey.profile>"
        return self.table()

    __repr__ = __str__

    def _repr_html_(self):
        import html

        return self.trace._repr_html_() if self._traces else html.escape(str(self))

    def export_chrome_trace(self, path, use_python_export=False):
        """Chrome's trace JSON, for the Perfetto UI or chrome://tracing; compressed where the path ends in ".gz".
        There is one exporter: `use_python_export` changes nothing.
        """
        trace = self.trace
        with timed(self._stats, "export_call_duration_us"):
            trace.export_chrome_trace(path)

    def export(self, path, format=None):
        """Any format that ``marey export`` writes, by name or by the suffix of the path."""
        trace = self.trace
        with timed(self._stats, "export_call_duration_us"):
            trace.export(path, format)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Folded stacks, for flame graphs. Needs with_stack."""
        if not self.with_stack:
            raise Error("export_stacks() needs with_stack=True: no stacks were recorded")
        self.trace.export_stacks(path, metric)

    def _memory_profile(self):
        """What memory was for: a ``MemoryProfile`` (parameters, gradients, ...)."""
        missing = [
            f"{name}=True" for name in ("record_shapes", "profile_memory", "with_stack") if not getattr(self, name)
        ]
        if missing:
            raise ValueError(f"{', '.join(missing)} required for memory profiling")
        from marey._memory_profile import MemoryProfile

        return MemoryProfile(self.trace)

    def export_memory_timeline(self, path, device=None):
        """Memory held over time, by what it is for where that is known (record_shapes, with_stack): ".html" a page;
        "raw.json(.gz)" every change; else points. Needs profile_memory.
        """
        if not self.profile_memory:
            raise Error("export_memory_timeline() needs profile_memory=True: no allocations were recorded")
        self.trace.export_memory_timeline(path, device or (f"{self.use_device}:0" if self.use_device else "cpu"))
