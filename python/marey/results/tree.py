"""The ranges and allocations of a trace as a tree of typed nodes."""

from __future__ import annotations

from functools import cached_property

from marey import _marey
from marey.results.types import Types, _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from marey._marey import Trace

    _Properties = tuple[str, str, str, int, int, int]  # type, name, overload name, start, end, thread


class _TensorMetadata(_Fields):
    """The metadata of an array. Sizes and strides are in elements.

    Arrays with the same `id` are one array, even if its memory was replaced. Arrays with the same `allocation_id` are
    in the same memory.
    """

    __slots__ = tuple("impl_ptr storage_data_ptr id allocation_id layout device dtype dim sizes strides".split())


class _ExtraFields_TorchOp(_Fields):
    __slots__ = ("name", "inputs", "scope", "sequence_number", "allow_tf32_cublas")


class _ExtraFields_Allocation(_Fields):
    """An allocation; a negative size means that memory was freed."""

    __slots__ = ("ptr", "id", "allocation_id", "alloc_size", "total_allocated", "total_reserved", "device")


class _PyFrameState(_Fields):
    __slots__ = ("line_number", "file_name", "function_name")


class _NNModuleInfo(_Fields):
    """The object of a module call, as it was at its first call.

    Contains the addresses of the object and its class, the name of the class, its number among objects of that name,
    and its parameters: (name, metadata, metadata of the gradient or None).
    """

    __slots__ = ("self_ptr", "cls_ptr", "cls_name", "id", "parameters")


class _OptimizerInfo(_Fields):
    """The object of an optimizer call, as it was at its first call.

    Its parameters are (metadata, gradient or None, [(name, metadata) of each state]).
    """

    __slots__ = ("self_ptr", "cls_ptr", "cls_name", "id", "parameters")


class _ExtraFields_PyCall(_Fields):
    __slots__ = ("callsite", "caller", "module", "optimizer")


class _ExtraFields_PyCCall(_Fields):
    __slots__ = ("caller",)


class _ExtraFields_Kineto(_Fields):
    __slots__ = ("name",)


class _ProfilerEvent:
    """A node: a range or an allocation. Times are nanoseconds since 1970.

    Nodes are equal if they are the same node of the same trace.
    """

    __slots__ = ("_tree", "_node", "_read")

    def __init__(self, tree: _Tree, node: int) -> None:
        self._tree = tree
        self._node = node
        self._read: _Properties | None = None

    def _properties(self) -> _Properties:
        if self._read is None:
            self._read = self._tree.properties(self._node)
        return self._read

    @property
    def id(self) -> int:
        """The number of the node; unique in the tree."""
        return self._tree.first_id + self._node + 1

    @property
    def correlation_id(self) -> int:
        """The number of a range in exports, which is that of the node."""
        return self.id

    @property
    def tag(self) -> Any:
        return self._tree.types.node_tag(self._properties()[0])

    @property
    def name(self) -> str:
        return self._properties()[1]

    @property
    def overload_name(self) -> str:
        return self._properties()[2]

    @property
    def start_time_ns(self) -> int:
        return self._properties()[3]

    @property
    def end_time_ns(self) -> int:
        return self._properties()[4]

    @property
    def duration_time_ns(self) -> int:
        return self._properties()[4] - self._properties()[3]

    @property
    def start_tid(self) -> int:
        """The number of its thread, from 1."""
        return self._properties()[5]

    @property
    def parent(self) -> _ProfilerEvent | None:
        parent = self._tree.parent(self._node)
        return None if parent is None else self._tree.node(parent)

    @property
    def children(self) -> list[_ProfilerEvent]:
        """The child nodes in order of time."""
        return [self._tree.node(child) for child in self._tree.children(self._node)]

    @property
    def typed(self) -> tuple[Any, Any]:
        """The pair (tag, extra fields)."""
        return (self.tag, self.extra_fields)

    @property
    def extra_fields(self) -> Any:
        """The fields that only nodes with this tag have."""
        tree, kind = self._tree, self._properties()[0]
        if kind in ("Allocation", "OutOfMemory"):
            row, address, size, allocated, reserved, device, index = tree.allocation(self._node)
            ids = tree.ids.of_report(row)
            where = tree.types.device(device, index)
            return tree.make(_ExtraFields_Allocation, address, *ids, size, allocated, reserved, where)
        if kind == "PyCall":
            return tree.make(_ExtraFields_PyCall, self._frame(), self._caller(), *self._objects())
        if kind == "PyCCall":
            return tree.make(_ExtraFields_PyCCall, self._caller())
        if kind == "TorchOp":
            inputs, scope, sequence, _, _ = tree.operation(self._node)
            taken = [tree.input(value) for value in inputs]
            scope = tree.types.scope(scope)
            return tree.make(_ExtraFields_TorchOp, self.name, taken, scope, sequence, tree.allow_tf32_cublas)
        return tree.make(_ExtraFields_Kineto, self.name)

    def _objects(self) -> tuple[Any, Any]:
        """Return (module, optimizer): the object that was called, or None."""
        tree = self._tree
        found = tree.modules.find(self._node)
        if found is None:
            return None, None
        is_optimizer, name, number, address, cls, _, parameters = found
        if is_optimizer:
            taken = [
                (tree.input(array), tree.input(grad), [(key, tree.input(state)) for key, state in states])
                for _, array, grad, states in parameters
            ]
            return None, tree.make(_OptimizerInfo, address, cls, name, number, taken)
        taken = [(key, tree.input(array), tree.input(grad)) for key, array, grad, _ in parameters]
        return tree.make(_NNModuleInfo, address, cls, name, number, taken), None

    def _frame(self) -> Any:
        _, _, _, file, line = self._tree.operation(self._node)
        file = self._tree.types.file_name(file)
        if (found := self._tree.modules.find(self._node)) is not None:
            return self._tree.make(_PyFrameState, line, file, found[5])
        name = self.name
        head, separator, function = name.partition("): ")
        if separator and not file:  # "file.py(12): f"
            file, _, number = head.rpartition("(")
            line = int(number) if number.isdigit() else 0
        return self._tree.make(_PyFrameState, line, file, function if separator else name)

    def _caller(self) -> Any:
        """Return the frame of the nearest enclosing Python function, at the line of the call if it is known."""
        around = self.parent
        while around is not None and around._properties()[0] != "PyCall":
            around = around.parent
        if around is None:
            return None
        frame = around._frame()
        frame.line_number = self._tree.call_line(self._node) or frame.line_number
        return frame

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _ProfilerEvent):
            return NotImplemented
        return self._tree.trace is other._tree.trace and self._node == other._node

    def __hash__(self) -> int:
        return hash((id(self._tree.trace), self._node))

    def __repr__(self) -> str:
        return (
            f"<_ProfilerEvent {self._properties()[0]} {self.name!r} id={self.id} duration={self.duration_time_ns} ns>"
        )


class _Tree(_marey.EventTree):
    """An event tree with the modules of its trace and the ids of its arrays; `types` makes its values."""

    def __init__(self, trace: Trace, types: type[Types]) -> None:
        super().__init__(trace)
        self.trace = trace
        self.first_id = trace._first_id
        self.types = types
        self._node_class: type[_ProfilerEvent] = types.node_class(_ProfilerEvent)

    def node(self, number: int) -> _ProfilerEvent:
        return self._node_class(self, number)

    def make(self, cls: type, *values: Any) -> Any:
        """Make an object with some fields."""
        return self.types.node_class(cls)(*values)

    def input(self, value: Any) -> Any:
        """Convert an input from C++, where arrays are tuples."""
        if isinstance(value, list):
            is_of_arrays = bool(value) and all(isinstance(item, tuple) for item in value)
            return [self.input(item) for item in value] if is_of_arrays or self.types.HAS_VALUE_LISTS else None
        if not isinstance(value, tuple):
            return value
        row, address, storage, storage_id, dtype, layout, device, index, sizes, strides = value
        own, allocation = self.ids.of_array(row)
        return self.make(
            _TensorMetadata,
            address or None,
            storage or None,
            storage_id or None if own is None else own,
            storage_id or None if allocation is None else allocation,
            self.types.layout(layout),
            self.types.device(device, index),
            self.types.dtype(dtype),
            len(sizes),
            sizes,
            strides,
        )

    @property
    def allow_tf32_cublas(self) -> bool:
        """Whether PyTorch was allowed to use TensorFloat-32 when the recording started."""
        return self.trace._metadata.get("allow_tf32_cublas") == "1"

    @cached_property
    def modules(self) -> _marey.ModuleTable:
        return _marey.ModuleTable(self.trace)

    @cached_property
    def ids(self) -> _marey.ArrayIds:
        return _marey.ArrayIds(self.trace)


def nodes(trace: Trace, types: type[Types] = Types) -> list[_ProfilerEvent]:
    """Return the roots of a trace's tree in order of time."""
    tree = _Tree(trace, types)
    return [tree.node(number) for number in tree.roots()]


def nodes_of(trace: Trace) -> Callable[[int], _ProfilerEvent]:
    """Return a function from node numbers to nodes."""
    return _Tree(trace, Types).node
