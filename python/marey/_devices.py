"""Devices other than the CPU: base classes to implement one, and its registration."""

from enum import IntFlag

from marey._activities import DeviceType
from marey._marey import register_device as _register


class DeviceActivity(IntFlag):
    """The kinds of device activity; the numbers match ``marey::DeviceActivities`` in C++."""

    KERNELS = 1
    COPIES = 2
    SETS = 4
    CALLS = 8
    DRIVER_CALLS = 16
    WAITS = 32
    OVERHEAD = 64
    TIMES = 128


class DeviceRuntime:
    """A kind of device, to be registered with ``register_device``.

    Subclassing is optional: any object with these attributes works, and a missing attribute behaves as it does here.

    Attributes:
        name: The name that ``use_device`` selects it by.
        type: Its number in traces. Each kind of device needs its own.
        activities: A ``DeviceActivitySource`` that records the work of the device, or None to time ranges with
            ``record`` and ``elapsed``.
    """

    name = ""
    type = DeviceType.PrivateUse1
    activities = None

    def unavailable(self):
        """Return why the device cannot be used and how to fix that, or an empty string if it can be used."""
        return "" if self.enabled() else f"The device {self.name!r} is not enabled."

    def enabled(self):
        """Return whether the device can be used now."""
        return True

    def record(self):
        """Record a point in the calling thread's current queue and return it as any object.

        The object's ``device`` attribute is the device number (0 if it has none).
        """
        raise NotImplementedError(f"{self.name} has no events")

    def elapsed(self, start, end):
        """Return the microseconds between two points recorded on one device. Waits for both."""
        raise NotImplementedError(f"{self.name} has no events")

    def mark(self, name):
        """Mark a point in time in the device's own tools."""

    def range_push(self, name):
        """Begin a range in the device's own tools."""

    def range_pop(self):
        """End the innermost range that range_push() began."""

    def on_each_device(self, visit):
        """Call `visit` with the number of each device."""
        visit(0)

    def synchronize(self):
        """Wait until every device has finished the work that it was given."""


class DeviceActivitySource:
    """Records the work of a device.

    Calls come one at a time, on a Marey thread. An exception becomes a problem of the trace. A session waits at most
    two seconds for a call.
    """

    def start(self, activities, log):
        """Start to record these activities into the log.

        Also called while it records, when other activities are requested.

        Args:
            activities: A ``DeviceActivity``.
            log: A ``DeviceLog``.
        """
        raise NotImplementedError

    def stop(self):
        """Stop recording."""
        raise NotImplementedError

    def flush(self, timeout, wait):
        """Write all buffered records to the log, and return False if some are missing.

        Args:
            timeout: The time limit in seconds.
            wait: Whether to wait for the work launched so far.
        """
        return True

    def facts(self):
        """Return facts for the metadata of the trace. Called after a flush."""
        return {}


def register_device(device):
    """Register a device for the life of the process; ``use_device`` may name it afterwards.

    Raises ``marey.Error`` if its name or type is taken or a required attribute is missing.
    """
    _register(device)
