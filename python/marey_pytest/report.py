"""The report of ``pytest --marey``: the slowest tests and where their time went."""

from __future__ import annotations

from dataclasses import dataclass, field

from marey import _marey
from marey._text import duration_text, printable

# Loaded now: a test may remove modules from sys.modules.
from marey.results import trace_events as _trace_events  # noqa: F401

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pytest

    from marey import Trace

_PHASES = ("setup", "call", "teardown")
_ROWS = 3  # functions shown for each test
_SMALLEST_SHARE = 0.02


@dataclass
class RecordedTest:
    """One test of a trace. Times are in nanoseconds."""

    nodeid: str
    track: int
    start_ns: int
    end_ns: int  # with the time between the phases, in which pytest reports
    phases: dict[str, int] = field(default_factory=dict)  # time by phase; that of all runs of a test that was repeated

    @property
    def duration_ns(self) -> int:
        return sum(self.phases.values())


def tests_of(trace: Trace, prefix: str = "test ") -> list[RecordedTest]:
    """Return the tests of a trace, in the order in which they ran in each process."""
    tests: list[RecordedTest] = []
    end_of_phase = 0
    for name, track, start, duration in sorted(_marey.marked_ranges(trace), key=lambda row: (row[1], row[2], -row[3])):
        current = tests[-1] if tests and tests[-1].track == track and start < tests[-1].end_ns else None
        if current is None:
            if name.startswith(prefix):
                tests.append(RecordedTest(name[len(prefix) :], track, start, start + duration))
                end_of_phase = start
        elif name in _PHASES and start >= end_of_phase:  # not a range of the test with that name
            current.phases[name] = current.phases.get(name, 0) + duration
            end_of_phase = start + duration
    return tests


def hottest(trace: Trace, test: RecordedTest) -> list[tuple[str, int, float]]:
    """Return (name, calls, nanoseconds) of the ranges with the most self time in a test, on its thread."""
    part = trace._selected(test.start_ns, test.end_ns, [test.track])
    rows = [(average.key, average.count, average.self_cpu_time_total * 1000) for average in part.key_averages()]
    whole = f"test {test.nodeid}"  # its self time is that between the phases
    rows = [row for row in rows if row[2] >= _SMALLEST_SHARE * test.duration_ns and row[0] != whole]
    return sorted(rows, key=lambda row: -row[2])[:_ROWS]


def show(terminal: pytest.TerminalReporter, trace: Trace, path: str, limit: int) -> None:
    """Print the report."""
    tests = sorted(tests_of(trace), key=lambda test: -test.duration_ns)
    terminal.write_sep("=", "slowest tests (marey)", bold=True)
    for test in tests[: max(limit, 0)]:
        phases = ", ".join(f"{phase} {duration_text(test.phases[phase])}" for phase in _PHASES if phase in test.phases)
        terminal.write_line(f"{duration_text(test.duration_ns):>8}  {printable(test.nodeid)}  ({phases})")
        for name, count, ns in hottest(trace, test):
            share = f"{100 * ns / max(test.duration_ns, 1):.0f}%"
            times = f"{count:,}x"
            terminal.write_line(f"          {duration_text(ns):>8} {share:>4} {times:>8}  {_shown(name)}")
    if not tests:
        terminal.write_line("no test was recorded")
    for code, text, count in trace.problems:
        if code == "python_calls_of_others":  # tests that record their own calls, such as those with limits
            continue
        terminal.write_line(printable(f"marey: {text}" + (f" ({count:,})" if count > 1 else "")))
    if tests:
        total = sum(test.duration_ns for test in tests)
        noun = "test" if len(tests) == 1 else "tests"
        terminal.write_line(f"{len(tests):,} {noun}, {duration_text(total)}; {len(trace):,} ranges")
    if path:
        terminal.write_line(f"recorded in {printable(path)}")


def _shown(name: str) -> str:
    return f"{name} (pytest and its plugins)" if name in _PHASES else printable(name)
