"""Rows of ``Trace.suspended_calls()`` and ``Trace.tasks()``."""

from collections import namedtuple

from marey import _marey

SuspendedCall = namedtuple(
    "SuspendedCall",
    "name number start_ns end_ns running_ns suspended_ns parts began_before finished task",
)
SuspendedCall.__doc__ = """A call of a generator, a coroutine or an asynchronous generator: all of its parts.

name            as of the ranges of its parts
number          of the call, in its process
start_ns        of its first part in the trace
end_ns          of its last part
running_ns      in its parts, what they called included
suspended_ns    between them
parts           how many
began_before    whether its first part is not in the trace
finished        whether it returned or raised
task            the name of the asyncio task that it ran in, or None
"""

Task = namedtuple("Task", "name coroutine number start_ns end_ns run_ns await_ns steps threads finished")
Task.__doc__ = """An asyncio task.

name            as when it first ran
coroutine       the function that it runs
number          of that call, as in ``SuspendedCall``
start_ns        of its first step
end_ns          of its last
run_ns          in its steps
await_ns        between them
steps           how many
threads         the system's ids of the threads that it ran on
finished        whether its coroutine returned or raised
"""


def suspended_calls_of(trace):
    """Every such call of a trace, in order of their starts."""
    return [SuspendedCall(*row) for row in _marey.suspended_calls(trace)]


def tasks_of(trace):
    """Every task of a trace, in order of their starts."""
    return [Task(*row) for row in _marey.tasks(trace)]
