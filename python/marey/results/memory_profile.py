"""Memory over time by category: parameters, gradients, activations and so on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from marey import _marey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from marey._marey import Trace
    from marey.results.tree import _ProfilerEvent


class Category(Enum):
    """The purpose of memory; None stands for unknown."""

    INPUT = 1
    TEMPORARY = 2
    ACTIVATION = 3
    GRADIENT = 4
    AUTOGRAD_DETAIL = 5
    PARAMETER = 6
    OPTIMIZER_STATE = 7


class Action(Enum):
    """The kinds of change to memory."""

    PREEXISTING = 1
    CREATE = 2
    INCREMENT_VERSION = 3
    DESTROY = 4


# In the order of the C++ enumeration, which exported timelines use too.
_CATEGORIES = (
    Category.PARAMETER,
    Category.OPTIMIZER_STATE,
    Category.INPUT,
    Category.TEMPORARY,
    Category.ACTIVATION,
    Category.GRADIENT,
    Category.AUTOGRAD_DETAIL,
    None,
)


@dataclass(frozen=True)
class Key:
    """Memory of a device ("cpu", "cuda:0") that no recorded tensor uses."""

    device: str


@dataclass(frozen=True)
class Storage:
    """Memory identified by its address; equal if it is the same allocation."""

    ptr: int
    allocation_id: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Storage) and self.allocation_id == other.allocation_id

    def __hash__(self) -> int:
        return hash(self.allocation_id)


@dataclass(frozen=True)
class TensorKey(Key):
    """The memory of a tensor; a tensor whose memory was replaced has several keys with the same id."""

    id: int
    storage: Storage

    def __lt__(self, other: TensorKey) -> bool:
        return (self.id, self.storage.allocation_id) < (other.id, other.storage.allocation_id)


class FlowNode:
    """A step that passes tensors on.

    This is a top-level operator, the evaluation of a backward node, or an allocation outside of both. Every write
    creates a new version of a tensor, starting at 0.
    """

    __slots__ = ("event", "is_backward", "_edges")

    def __init__(self, event: _ProfilerEvent, is_backward: bool, edges: list[tuple[Any, ...]]) -> None:
        self.event = event
        self.is_backward = is_backward
        self._edges = edges  # (key, version, taken, freed, written)

    @property
    def name(self) -> str:
        return self.event.name

    @property
    def start_time(self) -> int:
        return self.event.start_time_ns

    @property
    def inputs(self) -> dict[TensorKey, tuple[bool, int]]:
        """``{key: (whether it is written, version)}``"""
        return {key: (written, version) for key, version, taken, _, written in self._edges if not taken}

    @property
    def outputs(self) -> dict[TensorKey, int]:
        """``{key: version}``"""
        return {
            key: 0 if taken else version + 1
            for key, version, taken, freed, written in self._edges
            if not freed and (taken or written)
        }

    @property
    def intermediates(self) -> tuple[TensorKey, ...]:
        """The keys of memory that was freed before the step ended."""
        return tuple(key for key, _, taken, freed, _ in self._edges if taken and freed)

    def __repr__(self) -> str:
        return f"<FlowNode {self.name!r} inputs={self.inputs} outputs={self.outputs}>"


class MemoryProfile:
    """The tensors of a trace over time, with their categories."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._native = _marey.MemoryProfile(trace)
        self._blocks = self._native.blocks()
        self._keys: list[TensorKey | None] = [None]  # by allocation
        for allocation, (tensor, device, address, _, _) in enumerate(self._blocks, 1):
            self._keys.append(None if tensor is None else TensorKey(device, tensor, Storage(address, allocation)))

    @property
    def timeline(self) -> tuple[tuple[int, Action, tuple[Key, int], int], ...]:
        """Tuples (nanoseconds since 1970, or -1 if already allocated, Action, (key, version), bytes) by time."""
        return tuple(
            (time, Action(action), (self._keys[allocation] or Key(device), version), size)
            for time, action, allocation, version, size, device in self._native.timeline()
        )

    def category(self, key: Key, version: int) -> Category | None:
        """Return the category of a version of a tensor; None if unknown."""
        if not isinstance(key, TensorKey):
            return None
        return _CATEGORIES[self._native.category(key.storage.allocation_id, version)]

    def categories(self) -> dict[tuple[TensorKey, int], Category | None]:
        """Return ``{(key, version): Category or None}`` for every version of every tensor, ordered by key."""
        return {
            (key, version): self.category(key, version)
            for key in sorted(key for key in self._keys if key is not None)
            for version in range(self._blocks[key.storage.allocation_id - 1][4])
        }

    _category_snapshot = categories  # upstream's name

    def size(self, key: TensorKey) -> int:
        """Return the size of a tensor's memory in bytes."""
        size: int = self._blocks[key.storage.allocation_id - 1][3]
        return size

    @property
    def flow_nodes(self) -> tuple[FlowNode, ...]:
        """The steps that pass tensors on, in order of time."""
        from marey.results.tree import nodes_of

        event_of = nodes_of(self._trace)
        return tuple(
            FlowNode(event_of(node), is_backward, [(self._keys[allocation], *rest) for allocation, *rest in edges])
            for node, is_backward, edges in self._native.nodes()
        )
