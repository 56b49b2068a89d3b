"""A trace in the form of PyTorch's native results, for programs that use them."""


class KinetoEvent:
    """One event with the methods of PyTorch's ``_KinetoEvent``. Times are wall-clock nanoseconds."""

    __slots__ = ("_event", "_base_ns")

    def __init__(self, event, base_ns):
        self._event = event
        self._base_ns = base_ns

    def start_ns(self):
        return self._base_ns + round(self._event.time_range.start * 1000)

    def end_ns(self):
        return self._base_ns + round(self._event.time_range.end * 1000)

    def duration_ns(self):
        return self.end_ns() - self.start_ns()

    def start_thread_id(self):
        return self._event.thread

    def end_thread_id(self):
        return self._event.thread

    def fwd_thread_id(self):
        return self._event.fwd_thread or 0

    def correlation_id(self):
        return self._event.id

    def shapes(self):
        return self._event.input_shapes or []

    def dtypes(self):
        return self._event.input_dtypes or []

    def is_hidden_event(self):
        return False

    def nbytes(self):
        return self._event.cpu_memory_usage

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(self._event, name)
        return lambda: value

    def __repr__(self):
        return f"<KinetoEvent {self._event.name!r}>"


class ProfilerResult:
    """The results of a session, with the methods of PyTorch's ``_ProfilerResult``."""

    def __init__(self, trace, events, tree):
        self._trace = trace
        self._events = events
        self._tree = tree

    def trace_start_ns(self):
        """Return the start of the recording in wall-clock nanoseconds."""
        return self._trace.start_ns + self._trace._realtime_offset_ns

    def events(self):
        """Return all events in order of time."""
        base = self.trace_start_ns()
        return [KinetoEvent(event, base) for event in self._events]

    def experimental_event_tree(self):
        """Return the top-level events as nodes with children."""
        return self._tree()

    def save(self, path):
        """Write a Chrome JSON trace."""
        self._trace.export_chrome_trace(path)
