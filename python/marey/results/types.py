"""The types of the values in results: Marey's own here, PyTorch's in ``marey.torch``."""

from __future__ import annotations

from enum import Enum

from marey._enumerations import DeviceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def is_on_cpu(event: Any) -> bool:
    """Return whether an event ran on the CPU, whoever's DeviceType it has."""
    return int(event.device_type) == DeviceType.CPU


class _EventType(Enum):
    """The type of a node."""

    TorchOp = 0
    Backend = 1
    Vulkan = 2
    Allocation = 3
    OutOfMemory = 4
    PyCall = 5
    PyCCall = 6
    Kineto = 7
    PythonGC = 8


class _Fields:
    """A few named values: those of its slots."""

    __slots__ = ()
    _names: tuple[str, ...]

    def __init_subclass__(cls) -> None:
        if cls.__slots__:
            cls._names = cls.__slots__

    def __init__(self, *values: Any) -> None:
        for name, value in zip(self._names, values):
            setattr(self, name, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._names)})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._names)


class _Device(_Fields):
    """A device: its type, and its number or -1."""

    type: Any
    index: int
    __slots__ = tuple(__annotations__)

    def __str__(self) -> str:
        name = self.type.name.lower()
        return name if self.index < 0 else f"{name}:{self.index}"


_same: Any = staticmethod(lambda own: own)


class Types:
    """Marey's own types. ``marey.torch`` derives a class that makes PyTorch's."""

    DeviceType = DeviceType
    HAS_VALUE_LISTS = True  # whether inputs of nodes include lists of numbers
    AVERAGES_INCLUDE_CALLS = True  # unless the program says otherwise
    Event: Any = None  # the class of a trace's events; None: RecordedEvent

    @classmethod
    def device_type(cls, number: int) -> Any:
        try:
            return cls.DeviceType(number)
        except ValueError:  # a device that PyTorch does not know
            return cls.DeviceType(20)

    @classmethod
    def device(cls, number: int, index: int) -> Any:
        """Return a device by the number of its type and its own, or -1."""
        return _Device(cls.device_type(number), index)

    # Functions from Marey's own: an activity, an action, the number of a scope, the path of a Python function's file as
    # nodes show it, the name of a dtype, the number of a layout, a class of the tree's nodes and their fields.
    activity = action = scope = file_name = dtype = layout = node_class = _same

    @staticmethod
    def node_tag(name: str) -> Any:
        """Return the type of a node by its name."""
        return _EventType[name]
