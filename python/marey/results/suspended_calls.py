"""Rows of ``Trace.suspended_calls()`` and ``Trace.tasks()``."""

from __future__ import annotations

from typing import NamedTuple

from marey import _marey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from marey._marey import Trace


class SuspendedCall(NamedTuple):
    """A call of a generator, coroutine or asynchronous generator, with all of its parts.

    Attributes:
        name: The name of the ranges of its parts.
        number: The number of the call in its process.
        start_ns: The start of its first part in the trace.
        end_ns: The end of its last part.
        running_ns: The time in its parts, including the functions that they called.
        suspended_ns: The time between its parts.
        parts: The number of parts.
        began_before: Whether its first part is missing from the trace.
        finished: Whether it returned or raised an exception.
        task: The name of the asyncio task that it ran in, or None.
    """

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
    """An asyncio task.

    Attributes:
        name: The name when it first ran.
        coroutine: The function that it runs.
        number: The number of that call, as in ``SuspendedCall``.
        start_ns: The start of its first step.
        end_ns: The end of its last step.
        run_ns: The time in its steps.
        await_ns: The time between its steps.
        steps: The number of steps.
        threads: The system ids of the threads that it ran on.
        finished: Whether its coroutine returned or raised an exception.
    """

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


def suspended_calls_of(trace: Trace) -> list[SuspendedCall]:
    """Return all suspended calls of a trace, ordered by start time."""
    return [SuspendedCall._make(map(row.get, SuspendedCall._fields)) for row in _rows(trace, "calls")]


def tasks_of(trace: Trace) -> list[Task]:
    """Return all tasks of a trace, ordered by start time."""
    rows = [{**row, "threads": tuple(row["threads"])} for row in _rows(trace, "tasks")]
    return [Task._make(map(row.get, Task._fields)) for row in rows]


def _rows(trace: Trace, result: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = _marey.make_result(trace, result)[0].value()
    return rows
