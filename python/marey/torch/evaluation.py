"""Finds where a program leaves its device idle: the names of ``torch.profiler._utils``."""

from __future__ import annotations

from bisect import bisect_right

from marey.results.tree import breadth_first, depth_first
from marey.results.types import is_on_cpu
from marey.torch._pattern import NO_LOCATION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from marey.results.tree import _ProfilerEvent

_NO_KERNELS = ("mem", "cpy", "alloc", "free")
_HIGH_QUEUE = 4  # minimum peak of a queue for its decline to be examined
_WEIGHT_OF_SELF_TIME = 0.6

traverse_dfs = depth_first
traverse_bfs = breadth_first


class EventMetrics:
    """The metrics of one node in nanoseconds, and the depth of the device queue at its start."""

    __slots__ = ("duration_time_ns", "self_time_ns", "idle_time_ns", "queue_depth")

    def __init__(
        self, duration_time_ns: int = 0, self_time_ns: int = 0, idle_time_ns: int = 0, queue_depth: int = 0
    ) -> None:
        self.duration_time_ns = duration_time_ns
        self.self_time_ns = self_time_ns
        self.idle_time_ns = idle_time_ns
        self.queue_depth = queue_depth

    @property
    def fraction_idle_time(self) -> float:
        return self.idle_time_ns / self.duration_time_ns if self.duration_time_ns else 0.0

    def __repr__(self) -> str:
        return f"EventMetrics({', '.join(f'{name}={getattr(self, name)}' for name in self.__slots__)})"


class Interval:
    """A time interval and the number of kernels that waited in it."""

    __slots__ = ("start", "end", "queue_depth")

    def __init__(self, start: int, end: int, queue_depth: int = 0) -> None:
        self.start = start
        self.end = end
        self.queue_depth = queue_depth

    def __repr__(self) -> str:
        return f"Interval(start={self.start}, end={self.end}, queue_depth={self.queue_depth})"


class EventKey:
    """A node as the key of a dict, identified by its number."""

    __slots__ = ("event",)

    def __init__(self, event: _ProfilerEvent) -> None:
        self.event = event

    def __hash__(self) -> int:
        return hash(self.event.id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EventKey) and self.event.id == other.event.id

    def __repr__(self) -> str:
        return self.event.name

    def intervals_overlap(self, intervals: Iterable[Interval]) -> int:
        """Return the time that the node overlaps with any of the intervals; overlapping intervals count once."""
        covered, until = 0, self.event.start_time_ns
        for interval in sorted(intervals, key=lambda interval: interval.start):
            start, end = max(until, interval.start), min(self.event.end_time_ns, interval.end)
            if start < end:
                covered += end - start
                until = end
        return covered


class BasicEvaluation:
    """The self times, the device queue and the device idle times of a recording.

    Args:
        prof: A stopped profiler, or a ``marey.Trace``.

    Attributes:
        metrics: The EventMetrics of every CPU node, by EventKey.
        queue_depth_list: An Interval for each launch and each kernel, in order of time.
    """

    def __init__(self, prof: Any) -> None:
        self.profile = prof
        on_device = {event.id for event in prof.events() if not is_on_cpu(event)}
        nodes = sorted(depth_first(prof.tree()), key=lambda node: node.start_time_ns)
        self.events = [node for node in nodes if node.id not in on_device]
        kernels = [node for node in nodes if node.id in on_device and _is_kernel(node)]
        launches = {kernel.parent.id: kernel.parent for kernel in kernels if kernel.parent is not None}
        self.cuda_events = sorted([*launches.values(), *kernels], key=lambda node: node.start_time_ns)
        self._launched = sorted(kernel.parent.start_time_ns for kernel in kernels if kernel.parent is not None)
        self._started = sorted(kernel.start_time_ns for kernel in kernels if kernel.parent is not None)
        self.metrics = {}
        for node in self.events:
            inside = sum(child.duration_time_ns for child in node.children if child.id not in on_device)
            self.metrics[EventKey(node)] = EventMetrics(
                node.duration_time_ns, node.duration_time_ns - inside, 0, self._queue_at(node.start_time_ns)
            )
        self.event_keys = list(self.metrics)
        self.queue_depth_list = [
            Interval(node.start_time_ns, node.end_time_ns, self._queue_at(node.start_time_ns))
            for node in self.cuda_events
        ]
        idle = self._idle_intervals()
        for key, metrics in self.metrics.items():
            metrics.idle_time_ns = key.intervals_overlap(idle)

    def _queue_at(self, time: int) -> int:
        """Return the number of kernels that were launched but had not started."""
        return max(bisect_right(self._launched, time) - bisect_right(self._started, time), 0)

    def _idle_intervals(self) -> list[Interval]:
        """Return the intervals in which the device was idle."""
        points = self.queue_depth_list
        if not points or not self.events:
            return []
        last = max(node.end_time_ns for node in self.events)
        found = [Interval(self.events[0].start_time_ns, points[0].start), Interval(points[-1].end, last)]
        since = None
        for point in points:
            if point.queue_depth > 0 and since is not None:
                found.append(Interval(since, point.start))
                since = None
            elif point.queue_depth == 0 and since is None:
                since = point.end
        return found

    def _falling_intervals(self) -> list[Interval]:
        """Return the intervals from the last peak of the queue until it is empty."""
        found, peak = [], None
        for point in self.queue_depth_list:
            if point.queue_depth > 0:
                peak = point if peak is None or point.queue_depth >= peak.queue_depth else peak
                continue
            if peak is not None and peak.queue_depth >= _HIGH_QUEUE:
                found.append(Interval(peak.start, point.start))
            peak = None
        return found

    def rank_events(self, length: int) -> list[EventKey]:
        """Return the nodes that run while the queue drains, the most likely causes first."""
        falling = self._falling_intervals()
        keys = [key for key in self.event_keys if key.intervals_overlap(falling)]
        idle = _standardised([self.metrics[key].fraction_idle_time for key in keys])
        own = _standardised([self.metrics[key].self_time_ns for key in keys])
        scores = {key: a + _WEIGHT_OF_SELF_TIME * b for key, a, b in zip(keys, idle, own)}
        return sorted(keys, key=scores.__getitem__, reverse=True)[:length]

    def get_optimizable_events(self, length: int = 1, print_enable: bool = True) -> list[EventKey]:
        """Return the same nodes as rank_events(), and print them."""
        keys = self.rank_events(length)
        if print_enable:
            line = "-" * 80
            print("Optimizable events:" if keys else "No events to optimize")
            for key in keys:
                print(
                    f"{line}\nEvent:                {key}\n"
                    f"Source code location: {source_code_location(key.event)}\n"
                    f"Percentage idle time: {self.metrics[key].fraction_idle_time * 100:.2f}%\n{line}"
                )
        return keys


def _is_kernel(node: _ProfilerEvent) -> bool:
    name = node.name.lower()
    return not any(part in name for part in _NO_KERNELS)


def _standardised(values: list[float]) -> list[float]:
    """Return the distance of each value from the mean in standard deviations."""
    from statistics import mean, stdev

    spread = stdev(values) if len(values) > 1 else 0
    middle = mean(values) if values else 0
    return [(value - middle) / spread if spread else 0.0 for value in values]


def index_of_first_match(
    seq: Sequence[Any], predicate: Callable[[Any], Any], start: int = 0, end: int | None = None
) -> int | None:
    """Return the first index within [start, end) for which the predicate is true, or None."""
    return next((place for place in range(start, len(seq))[: _length(start, end)] if predicate(seq[place])), None)


def argmax(
    seq: Sequence[Any], key: Callable[[Any], Any] = lambda value: value, start: int = 0, end: int | None = None
) -> int | None:
    """Return the first index of the largest value within [start, end), or None."""
    places = range(start, len(seq))[: _length(start, end)]
    return max(places, key=lambda place: key(seq[place]), default=None)


def _length(start: int, end: int | None) -> int | None:
    return None if end is None else max(end - start, 0)


def source_code_location(event: _ProfilerEvent | None) -> str:
    """Return the name of the nearest enclosing Python function that has a file."""
    while event is not None and ".py(" not in event.name:
        event = event.parent
    return NO_LOCATION if event is None else event.name
