"""Devices that work beside the processor: registering one, and asking for those that there are."""

from enum import IntFlag

from marey._activities import DeviceType
from marey._marey import register_device as _register


class DeviceActivity(IntFlag):
    """What can be recorded of a device; numbers as in C++ (marey::DeviceActivities)."""

    KERNELS = 1
    COPIES = 2
    SETS = 4
    CALLS = 8
    DRIVER_CALLS = 16
    WAITS = 32
    OVERHEAD = 64
    TIMES = 128


class DeviceRuntime:
    """A kind of device, to be registered with ``register_device``. Subclassing is a convenience: any object with
    these attributes will do, and those that are missing do what they do here.

    name        what ``use_device`` calls it
    type        its number in traces; each kind of device has one of its own
    activities  an object that records what the device does (``DeviceActivitySource``), or None: then ranges are
                timed with `record` and `elapsed`
    """

    name = ""
    type = DeviceType.PrivateUse1
    activities = None

    def unavailable(self):
        """Why it cannot be used here, with what would help; empty: it can."""
        return "" if self.enabled() else f"The device {self.name!r} is not enabled."

    def enabled(self):
        return True

    def record(self):
        """A point in the calling thread's current queue: any object. Its attribute `device` is the number of the
        device; without one it is 0.
        """
        raise NotImplementedError(f"{self.name} has no events")

    def elapsed(self, start, end):
        """Microseconds between two points, which have been recorded on one device. Waits for both."""
        raise NotImplementedError(f"{self.name} has no events")

    def mark(self, name):
        pass

    def range_push(self, name):
        pass

    def range_pop(self):
        pass

    def on_each_device(self, visit):
        """Calls `visit` with the number of each device."""
        visit(0)

    def synchronize(self):
        """Waits until every device has done what it was given."""


class DeviceActivitySource:
    """Records what a device does. Calls come one at a time; what they raise becomes a problem of the trace. They come
    on a thread of Marey's, and a session does not wait for one that takes longer than two seconds.
    """

    def start(self, activities, log):
        """Record these (a ``DeviceActivity``) into the log (a ``DeviceLog``), from now on; also when it records
        already and is asked for something else.
        """
        raise NotImplementedError

    def stop(self):
        raise NotImplementedError

    def flush(self, timeout, wait):
        """Write what is still buffered, and with `wait` what has been launched so far, when it is done; within so
        many seconds. False: something is missing.
        """
        return True

    def facts(self):
        """Facts for the trace's metadata. Asked for after a flush."""
        return {}


def register_device(device):
    """Register a device for the life of the process; ``use_device`` may name it afterwards.

    Raises ``marey.Error`` if its name or type is taken or a required attribute is missing.
    """
    _register(device)
