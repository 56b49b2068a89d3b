"""The events and averages of a trace as lists."""

from __future__ import annotations

from marey import _marey
from marey.results.averages import FunctionEventAvg
from marey.results.event_list import EventList, list_of_averages
from marey.results.event_parts import Interval
from marey.results.recorded_events import RecordedEvent
from marey.results.types import Types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from marey._marey import Averages, Trace


class TraceEventList(EventList):
    """The events of a trace."""

    def __init__(self, trace: Trace, types: type[Types], **options: Any) -> None:
        self._rows = _marey.EventRows(
            trace,
            types.Event or RecordedEvent,
            Interval,
            types.DeviceType,
            options["use_device"],
            bool(options["with_flops"]),
        )
        EventList.__init__(self, self._rows.events(), **options)
        self._recorded = trace
        self._types = types
        self._tree_built = True

    def _is_unchanged(self) -> bool:
        return self._rows.has(self)

    def _averages(self) -> Averages:
        if not self._is_unchanged():
            return super()._averages()
        return _marey.list_ranges(self._recorded, flops=bool(self._with_flops), memory=bool(self._profile_memory))

    def _grouped(self, **options: Any) -> Averages:
        return _marey.key_averages(
            self._recorded, flops=bool(self._with_flops), memory=bool(self._profile_memory), **options
        )

    @property
    def self_cpu_time_total(self) -> float:
        return self._grouped().self_cpu_time_total if self._is_unchanged() else super().self_cpu_time_total

    def total_average(self) -> FunctionEventAvg:
        if not self._is_unchanged():
            return super().total_average()
        types = self._types.DeviceType
        total: FunctionEventAvg = self._grouped().total_object(
            FunctionEventAvg, self._use_device, types, self._event_of_range
        )
        return total

    def key_averages(self, *args: Any, **options: Any) -> EventList:
        if not self._is_unchanged():
            return super().key_averages(*args, **options)
        options.update(self._options(), types=self._types, first_event=self._event_of_range)
        return averages_of(self._recorded, *args, **options)

    def _event_of_range(self, row: int) -> Any:
        index = self._rows.event_of_range(row)
        return None if index is None else self._rows.event(index)

    def _build_tree(self) -> None:
        pass  # the trace has the nesting

    def _trace(self) -> Trace:
        return self._recorded if self._is_unchanged() else super()._trace()

    def _metric(self, metric: str) -> str:
        return metric if self._is_unchanged() else super()._metric(metric)

    def __reduce__(self) -> tuple[Any, ...]:
        return _plain_list, (list(self), self._options())


def _plain_list(events: list[Any], options: dict[str, Any]) -> EventList:
    """Return a pickled or copied list, which does not refer to the trace."""
    made = EventList(events, **options)
    made._tree_built = True
    return made


def averages_of(
    trace: Trace,
    group_by_input_shapes: bool = False,
    group_by_stack_n: int = 0,
    group_by_overload_name: bool = False,
    include_python_functions: bool | None = None,
    *,
    group_by_thread: bool = False,
    percentiles: bool = False,
    use_device: str | None = None,
    profile_memory: bool | None = None,
    with_flops: bool = False,
    types: type[Types] = Types,
    first_event: Callable[[int], Any] | None = None,
) -> EventList:
    """Group the ranges of a trace by name. `first_event` returns the event of a range (made when needed).

    The options are those of EventList.key_averages() and events_of().
    """
    if use_device is None:
        use_device = _marey.device_of(trace)
    if profile_memory is None:
        profile_memory = _marey.has_memory(trace)
    averages = _marey.key_averages(
        trace,
        by_input_shape=bool(group_by_input_shapes),
        stack_entries=max(int(group_by_stack_n), 0),
        by_overload=bool(group_by_overload_name),
        by_thread=bool(group_by_thread),
        percentiles=bool(percentiles),
        flops=bool(with_flops),
        memory=bool(profile_memory),
    )
    includes_calls = types.AVERAGES_INCLUDE_CALLS if include_python_functions is None else include_python_functions
    if not includes_calls:
        averages = averages.without_calls()
    options: dict[str, Any] = {"use_device": use_device, "profile_memory": profile_memory, "with_flops": with_flops}
    made: list[TraceEventList] = []

    def event_of_range(row: int) -> Any:
        if not made:
            made.append(TraceEventList(trace, types, **options))
        return made[0]._event_of_range(row)

    return list_of_averages(averages, first_event or event_of_range, bool(group_by_input_shapes), types, options)


def events_of(
    trace: Trace,
    use_device: str | None = None,
    profile_memory: bool | None = None,
    with_flops: bool = False,
    types: type[Types] = Types,
) -> TraceEventList:
    """Return the events of a trace as an EventList in order of time; None: as recorded in the trace."""
    if use_device is None:
        use_device = _marey.device_of(trace)
    if profile_memory is None:
        profile_memory = _marey.has_memory(trace)
    return TraceEventList(trace, types, use_device=use_device, profile_memory=profile_memory, with_flops=with_flops)
