"""The base class of patterns: avoidable costs that can be found in the tree of a recording."""

from marey._tree import depth_first

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

    def __init__(self, prof, should_benchmark=False):
        self.prof = prof
        self.should_benchmark = should_benchmark
        self.event_tree = prof.tree()
        self.tid_root = {}  # thread -> its outermost nodes
        for event in self.event_tree:
            self.tid_root.setdefault(event.start_tid, []).append(event)

    @property
    def skip(self):
        """Whether the recording lacks the data for this pattern. Unknown for a trace: all patterns are tried."""
        needs = {"record_shapes": self.needs_shapes, "with_stack": self.needs_stack}
        return any(needed and not getattr(self.prof, option, True) for option, needed in needs.items())

    def match(self, event):
        """Return whether the pattern is found at this node."""
        raise NotImplementedError(f"{type(self).__name__} does not implement match()")

    def eventTreeTraversal(self):
        """Yield the nodes in the order in which they are tried."""
        yield from depth_first(self.event_tree)

    def matched_events(self):
        """Return every node at which the pattern is found."""
        return [] if self.skip else [event for event in self.eventTreeTraversal() if self.match(event)]

    # ---- reports

    def report(self, event):
        return f"{self.description}\n[Source Code Location] {source_code_location(event)}"

    def default_summary(self, events):
        return f"{self.name}: {len(events)} events matched."

    def summary(self, events):
        if self.should_benchmark and hasattr(self, "benchmark"):
            return self.benchmark_summary(events)
        return self.default_summary(events)

    def benchmark_summary(self, events):
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
            f"{_time_text(before - after)} ({before / after:.2f}X)"
        )

    # ---- related nodes

    def root_of(self, event):
        while event.parent is not None:
            event = event.parent
        return event

    def siblings_of(self, event):
        """Return (nodes before, nodes after) with the same parent or, without a parent, the same thread."""
        parent = event.parent
        together = self.tid_root[event.start_tid] if parent is None else parent.children
        index = together.index(event)
        return together[:index], together[index + 1 :]

    def next_of(self, event):
        after = self.siblings_of(event)[1]
        return after[0] if after else None

    def prev_of(self, event):
        before = self.siblings_of(event)[0]
        return before[-1] if before else None

    def go_up_until(self, event, predicate):
        """Return the node, or its nearest ancestor, for which the predicate is true, or None."""
        while event is not None and not predicate(event):
            event = event.parent
        return event


def _time_text(nanoseconds):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(nanoseconds) >= size:
            return f"{nanoseconds / size:.3f}{unit}"
    return f"{nanoseconds:.0f}ns"


def _belongs_to_torch(file):
    import os

    import torch

    return file.startswith(("torch" + os.sep, os.path.dirname(torch.__file__) + os.sep))


def source_code_location(event):
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


def _inputs(event):
    return event.extra_fields.inputs if event.tag.name == "TorchOp" else []


def input_shapes(event):
    """Return the sizes of each input; () for an input that is not a tensor."""
    return tuple(tuple(getattr(value, "sizes", ())) for value in _inputs(event))


def input_dtypes(event):
    """Return the element type of each input ("float32"); None for an input that is not a tensor."""
    return tuple(
        str(value.dtype).removeprefix("torch.") if hasattr(value, "dtype") else None for value in _inputs(event)
    )


def input_devices(event):
    """Return the device of each input ("cuda:0"); None for an input that is not a tensor."""
    return tuple(str(value.device) if hasattr(value, "device") else None for value in _inputs(event))
