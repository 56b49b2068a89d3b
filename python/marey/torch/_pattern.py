"""The base class of patterns: avoidable costs that can be found in the tree of a recording."""

from __future__ import annotations

from marey.results.event_parts import format_time
from marey.results.tree import depth_first

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from marey.results.tree import _ProfilerEvent

NO_LOCATION = "No source code location found"


class Pattern:
    """One kind of avoidable cost. Subclasses define which nodes show it.

    Args:
        prof: A stopped profiler, or a ``marey.Trace``.
        should_benchmark: Whether the summary includes a measured speedup, if the pattern has a `benchmark` method.
    """

    name = "Please specify a name for pattern"
    description = "Please specify a description for pattern"
    url = ""
    needs_shapes = False
    needs_stack = False
    benchmark: Callable[[list[_ProfilerEvent]], Any]  # optional

    def __init__(self, prof: Any, should_benchmark: bool = False) -> None:
        self.prof = prof
        self.should_benchmark = should_benchmark
        self.event_tree = prof.tree()
        self.tid_root: dict[int, list[_ProfilerEvent]] = {}  # thread -> its outermost nodes
        for event in self.event_tree:
            self.tid_root.setdefault(event.start_tid, []).append(event)

    @property
    def skip(self) -> bool:
        """Whether the recording lacks the data for this pattern. Unknown for a trace: all patterns are tried."""
        needs = {"record_shapes": self.needs_shapes, "with_stack": self.needs_stack}
        return any(needed and not getattr(self.prof, option, True) for option, needed in needs.items())

    def match(self, event: _ProfilerEvent) -> bool:
        """Return whether the pattern is found at this node."""
        raise NotImplementedError(f"{type(self).__name__} does not implement match()")

    def eventTreeTraversal(self) -> Iterator[_ProfilerEvent]:
        """Yield the nodes in the order in which they are tried."""
        yield from depth_first(self.event_tree)

    def matched_events(self) -> list[_ProfilerEvent]:
        """Return every node at which the pattern is found."""
        return [] if self.skip else [event for event in self.eventTreeTraversal() if self.match(event)]

    # ---- reports

    def report(self, event: _ProfilerEvent) -> str:
        return f"{self.description}\n[Source Code Location] {source_code_location(event)}"

    def default_summary(self, events: list[_ProfilerEvent]) -> str:
        return f"{self.name}: {len(events)} events matched."

    def summary(self, events: list[_ProfilerEvent]) -> str:
        if self.should_benchmark and hasattr(self, "benchmark"):
            return self.benchmark_summary(events)
        return self.default_summary(events)

    def benchmark_summary(self, events: list[_ProfilerEvent]) -> str:
        """Return the summary with the estimated speedup.

        `benchmark(events)` returns the fraction of time that remains for each `input_shapes`.
        """
        shares = self.benchmark(events)
        before = sum(event.duration_time_ns for event in events)
        after = sum(shares[input_shapes(event)] * event.duration_time_ns for event in events)
        if before == 0 or after == 0:
            return self.default_summary(events)
        return (
            f"{self.default_summary(events)} Total Estimated Speedup: "
            f"{format_time((before - after) / 1000)} ({before / after:.2f}X)"
        )

    # ---- related nodes

    def root_of(self, event: _ProfilerEvent) -> _ProfilerEvent:
        while event.parent is not None:
            event = event.parent
        return event

    def siblings_of(self, event: _ProfilerEvent) -> tuple[list[_ProfilerEvent], list[_ProfilerEvent]]:
        """Return (nodes before, nodes after) with the same parent or, without a parent, the same thread."""
        parent = event.parent
        together = self.tid_root[event.start_tid] if parent is None else parent.children
        index = together.index(event)
        return together[:index], together[index + 1 :]

    def next_of(self, event: _ProfilerEvent) -> _ProfilerEvent | None:
        after = self.siblings_of(event)[1]
        return after[0] if after else None

    def prev_of(self, event: _ProfilerEvent) -> _ProfilerEvent | None:
        before = self.siblings_of(event)[0]
        return before[-1] if before else None

    def go_up_until(
        self, event: _ProfilerEvent | None, predicate: Callable[[_ProfilerEvent], bool]
    ) -> _ProfilerEvent | None:
        """Return the node, or its nearest ancestor, for which the predicate is true, or None."""
        while event is not None and not predicate(event):
            event = event.parent
        return event


def _belongs_to_torch(file: str) -> bool:
    import os

    import torch

    return file.startswith(("torch" + os.sep, os.path.dirname(torch.__file__) + os.sep))


def source_code_location(event: _ProfilerEvent | None) -> str:
    """Return ``file:line`` of the nearest enclosing call made by the program rather than by PyTorch.

    With ``call_lines=True`` it is the line of the call, otherwise the line where the calling function is defined.
    """
    while event is not None:
        if event.tag.name in ("PyCall", "PyCCall"):
            caller = event.extra_fields.caller
            if caller is not None and caller.file_name and not _belongs_to_torch(caller.file_name):
                return f"{caller.file_name}:{caller.line_number}"
        event = event.parent
    return NO_LOCATION


def _inputs(event: _ProfilerEvent) -> Any:
    return event.extra_fields.inputs if event.tag.name == "TorchOp" else []


def input_shapes(event: _ProfilerEvent) -> tuple[Any, ...]:
    """Return the sizes of each input; () for an input that is not a tensor."""
    return tuple(tuple(getattr(value, "sizes", ())) for value in _inputs(event))


def input_dtypes(event: _ProfilerEvent) -> tuple[str | None, ...]:
    """Return the element type of each input ("float32"); None for an input that is not a tensor."""
    return tuple(
        str(value.dtype).removeprefix("torch.") if hasattr(value, "dtype") else None for value in _inputs(event)
    )


def input_devices(event: _ProfilerEvent) -> tuple[str | None, ...]:
    """Return the device of each input ("cuda:0"); None for an input that is not a tensor."""
    return tuple(str(value.device) if hasattr(value, "device") else None for value in _inputs(event))
