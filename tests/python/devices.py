"""Devices implemented in Python, for the tests in this folder. Importing registers them once per process."""

import itertools
import threading

import marey

US = marey.device_ticks_per_second() / 1e6  # ticks


class Source(marey.DeviceActivitySource):
    """Reports launched work at once."""

    def __init__(self):
        self.log = None
        self.activities = None
        self.calls = []
        self.numbers = itertools.count(1)  # threads may share it
        self.fails = {}  # method: the exception that it raises

    def _called(self, method):
        self.calls.append((method, threading.current_thread()))
        if method in self.fails:
            raise self.fails[method]

    def start(self, activities, log):
        self._called("start")
        self.activities, self.log = activities, log

    def stop(self):
        self._called("stop")
        self.activities, self.log = None, None

    def flush(self, timeout, wait):
        self._called("flush")
        return True

    def facts(self):
        return {"abax_model": {"beads": 70}}

    def launch(self, name, us, **options):
        """Work of so many microseconds, launched by this thread now."""
        log = self.log
        if log is None:
            return
        begin = marey.device_ticks()
        number = next(self.numbers)
        while marey.device_ticks() < begin + 3 * US:  # so that the call lies within the ranges around it
            pass
        log.call("abaxLaunch", begin, begin + int(US), correlation=number)
        log.work(name, begin + int(2 * US), begin + int((2 + us) * US), correlation=number, stream=3, **options)


class Abax(marey.DeviceRuntime):
    """A device that reports its work."""

    name = "abax"

    def __init__(self):
        self.activities = Source()
        self.trouble = ""

    def unavailable(self):
        return self.trouble


class Point:
    def __init__(self, device, us):
        self.device = device
        self.us = us


class Clockwork(marey.DeviceRuntime):
    """A device that has only events, in place of a GPU. Its time advances with `work`."""

    name = "cuda"
    type = marey.DeviceType.CUDA

    def __init__(self):
        self.us = 0.0
        self.current = 0
        self.synchronized = 0
        self.alive = 0
        self.fails = None
        self.marks = []

    def work(self, us):
        self.us += us

    def record(self):
        if self.fails is not None:
            raise self.fails
        return Point(self.current, self.us)

    def elapsed(self, start, end):
        return end.us - start.us

    def mark(self, name):
        self.marks.append(name)

    def on_each_device(self, visit):
        for number in range(2):
            visit(number)

    def synchronize(self):
        self.synchronized += 1


abax = Abax()
clockwork = Clockwork()
marey.register_device(abax)
marey.register_device(clockwork)
