"""A trace in the form of PyTorch's native results, for programs that use them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike
    from typing import Any

    from marey._marey import Trace
    from marey.results.event_list import EventList
    from marey.results.events import FunctionEvent


class KinetoEvent:
    """One event with the methods of PyTorch's ``_KinetoEvent``. Times are wall-clock nanoseconds."""

    __slots__ = ("_event", "_base_ns")

    def __init__(self, event: FunctionEvent, base_ns: int) -> None:
        self._event = event
        self._base_ns = base_ns

    def start_ns(self) -> int:
        return self._base_ns + round(self._event.time_range.start * 1000)

    def end_ns(self) -> int:
        return self._base_ns + round(self._event.time_range.end * 1000)

    def duration_ns(self) -> int:
        return self.end_ns() - self.start_ns()

    def start_thread_id(self) -> int:
        return self._event.thread

    def end_thread_id(self) -> int:
        return self._event.thread

    def fwd_thread_id(self) -> int:
        return self._event.fwd_thread or 0

    def correlation_id(self) -> int:
        return self._event.id

    def shapes(self) -> Any:
        return self._event.input_shapes or []

    def dtypes(self) -> Any:
        return self._event.input_dtypes or []

    def is_hidden_event(self) -> bool:
        return False

    def nbytes(self) -> int:
        return self._event.cpu_memory_usage

    def __getattr__(self, name: str) -> Callable[[], Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(self._event, name)
        return lambda: value

    def __repr__(self) -> str:
        return f"<KinetoEvent {self._event.name!r}>"


class ProfilerResult:
    """The results of a session, with the methods of PyTorch's ``_ProfilerResult``."""

    def __init__(self, trace: Trace, events: EventList, tree: Callable[[], list[Any]]) -> None:
        self._trace = trace
        self._events = events
        self._tree = tree

    def trace_start_ns(self) -> int:
        """Return the start of the recording in wall-clock nanoseconds."""
        return self._trace.start_ns + self._trace._realtime_offset_ns

    def events(self) -> list[KinetoEvent]:
        """Return all events in order of time."""
        base = self.trace_start_ns()
        return [KinetoEvent(event, base) for event in self._events]

    def experimental_event_tree(self) -> list[Any]:
        """Return the top-level events as nodes with children."""
        return self._tree()

    def save(self, path: str | PathLike[str]) -> None:
        """Write a Chrome JSON trace."""
        self._trace.export_chrome_trace(path)
