"""Rows of ``Trace.suspended_calls()`` and ``Trace.tasks()``."""

from typing import NamedTuple

class SuspendedCall(NamedTuple):
    name: str
    number: int
    start_ns: int
    end_ns: int
    running_ns: int
    suspended_ns: int
    parts: int
    began_before: bool
    finished: bool
    task: str | None

class Task(NamedTuple):
    name: str
    coroutine: str
    number: int
    start_ns: int
    end_ns: int
    run_ns: int
    await_ns: int
    steps: int
    threads: tuple[int, ...]
    finished: bool
