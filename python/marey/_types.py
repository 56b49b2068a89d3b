"""The types of the values in results: Marey's own here, PyTorch's in ``marey.torch``."""

from marey._activities import DeviceType


def is_on_cpu(event):
    """Return whether an event ran on the CPU, whoever's DeviceType it has."""
    return int(event.device_type) == DeviceType.CPU


class Types:
    """Marey's own types. ``marey.torch`` derives a class that makes PyTorch's."""

    DeviceType = DeviceType
    HAS_VALUE_LISTS = True  # whether inputs of nodes include lists of numbers

    @classmethod
    def device_type(cls, number):
        try:
            return cls.DeviceType(number)
        except ValueError:  # a device that PyTorch does not know
            return cls.DeviceType(20)

    @classmethod
    def device(cls, number, index):
        """Return a device by the number of its type and its own, or -1."""
        from marey._tree import _Device

        return _Device(cls.device_type(number), index)

    @staticmethod
    def activity(own):
        """Return an activity by Marey's own; likewise action()."""
        return own

    @staticmethod
    def action(own):
        return own

    @staticmethod
    def node_tag(name):
        """Return the type of a node by its name."""
        from marey._tree import _EventType

        return _EventType[name]

    @staticmethod
    def scope(number):
        return number

    @staticmethod
    def file_name(path):
        """Return the file of a Python function as nodes show it."""
        return path

    @staticmethod
    def dtype(name):
        return name

    @staticmethod
    def layout(number):
        return number

    @staticmethod
    def node_class(own):
        """Return the class to use for a class of the tree's nodes and their fields."""
        return own
