"""The marker ``marey``: limits for the time of a test and for the number of calls that it makes."""

from __future__ import annotations

import operator
import re
import time
from contextlib import nullcontext

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

_LIMIT = re.compile(r"\s*(<=|>=|==|<|>)?\s*(.*?)\s*", re.DOTALL)
_TESTS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}


class Limit:
    """A bound such as "<50ms" or "<=3"; a number alone means exactly that many."""

    def __init__(self, given: object, parse: Callable[[str], float]) -> None:
        self.text = str(given)
        match = _LIMIT.fullmatch(self.text)
        assert match is not None
        self._test = _TESTS[match[1] or "=="]
        self._bound = parse(match[2])

    def allows(self, value: float) -> bool:
        return self._test(value, self._bound)


def _count(text: str) -> float:
    if not text.isdecimal():
        raise ValueError(f"invalid number of calls {text!r}: expected a limit such as '<=3'")
    return int(text)


def limits_of(marker: pytest.Mark) -> tuple[Limit | None, dict[str, Limit]]:
    """Return the limit of the time, and those of calls by name. Raise ValueError if the marker is wrong."""
    from marey._text import duration_ns

    unknown = [*marker.args, *(name for name in marker.kwargs if name not in ("time", "calls"))]
    if unknown:
        raise ValueError(f"unknown argument {unknown[0]!r}: expected time='<50ms' or calls={{'name': '<=3'}}")
    calls = marker.kwargs.get("calls", {})
    if not isinstance(calls, dict):
        raise ValueError(f"calls must be a dict of limits by name, not {calls!r}")
    limit = Limit(marker.kwargs["time"], duration_ns) if "time" in marker.kwargs else None
    return limit, {str(name): Limit(bound, _count) for name, bound in calls.items()}


class Limits:
    """Checks the limits of marked tests. Registered if there are any."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        marker = item.get_closest_marker("marey")
        if marker is None:
            return (yield)
        try:
            longest, calls = limits_of(marker)
        except ValueError as error:
            pytest.fail(f"marey marker: {error}", pytrace=False)
        recorded: Any = nullcontext()
        if calls:
            from marey_pytest.calls import RecordedCalls

            recorded = RecordedCalls(calls)
        with recorded:
            begin = time.perf_counter_ns()
            result = yield
            elapsed = time.perf_counter_ns() - begin
        exceeded = [
            f"{name} was called {_times(recorded.calls(name))}, expected {limit.text}"
            for name, limit in calls.items()
            if not limit.allows(recorded.calls(name))
        ]
        if longest is not None and not longest.allows(elapsed):
            from marey._text import duration_text

            exceeded.append(f"the test took {duration_text(elapsed)}, expected {longest.text}")
        if exceeded:
            pytest.fail("\n".join(f"marey: {text}" for text in exceeded), pytrace=False)
        return result


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
