"""Runs: their ids, the table `_runs` with one row for each, and the names of files in a lake."""

from __future__ import annotations

from marey import _marey
from marey.sql.connection import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Protocol

    class Capture(Protocol):
        """Facts about a capture."""

        host: str
        rank: int | None
        pid: int
        program: str
        command: str
        start_ns: int
        end_ns: int
        ranges: int
        problems: list[tuple[str, str, int]]
        metadata: dict[str, str]


RUNS = "_runs"
DAYS = "days"  # in the folder of a table: files with the rows of many small runs
SCHEMA_VERSION = 1  # of all tables of a lake; columns are only ever added
TABLE_KEY = b"marey.table"  # in the metadata of every file
PARTITIONS = ("run", "host")  # columns that are in the names of folders


def table_names() -> list[str]:
    """Return the tables of a lake; range_places is part of ranges."""
    return [*(name for name in _marey.table_names() if name != "range_places"), RUNS]


def encoded(text: str) -> str:
    """Return a text as the name of a file or folder, as Hive does; DuckDB and Spark decode it."""
    from urllib.parse import quote

    return quote(text, safe=" @+,") or "unknown"


def decoded(text: str) -> str:
    """Return the text of such a name."""
    from urllib.parse import unquote

    return unquote(text)


def runs_schema() -> Any:
    """Return the schema of the table."""
    pa = require("pyarrow")
    texts = ("run", "program", "command", "marey_version", "python_version", "commit", "hosts")
    numbers = ("captures", "ranges", "start_ns", "duration_ns", "problem_count")
    fields = [(name, pa.large_utf8()) for name in texts] + [(name, pa.int64()) for name in numbers]
    return pa.schema([*fields, ("problems", pa.large_utf8()), ("schema_version", pa.int64())])


def run_id(sources: Sequence[Capture]) -> str:
    """Return the id of a run: its start, its program, and a hash of its captures. Equal captures have equal ids."""
    import hashlib
    import re
    import time

    first = min(sources, key=lambda source: source.start_ns)
    identities = sorted((source.host, source.pid, source.rank or 0, source.start_ns) for source in sources)
    digest = hashlib.sha256(repr(identities).encode()).hexdigest()[:6]
    start = time.strftime("%Y%m%dT%H%M%S", time.gmtime(max(first.start_ns, 0) // 1_000_000_000))
    program = re.sub(r"[^\w.-]+", "_", first.program)[:40] or "program"
    return f"{start}-{program}-{digest}"


def run_row(run: str, captures: Sequence[Capture]) -> Any:
    """Return the row of a run as a pyarrow.Table."""
    import json

    pa = require("pyarrow")
    first = min(captures, key=lambda capture: capture.start_ns)
    counts: dict[str, int] = {}
    for capture in captures:
        for code, _, count in capture.problems:
            counts[code] = counts.get(code, 0) + count

    def fact(key: str) -> str | None:
        value = json.loads(first.metadata.get(key, "null"))
        return value if value is None or isinstance(value, str) else json.dumps(value)

    row = {
        "run": run,
        "program": first.program,
        "command": first.command,
        "marey_version": _marey.__version__,
        "python_version": fact("python_version"),
        "commit": fact("commit"),
        "hosts": " ".join(sorted({capture.host for capture in captures})),
        "captures": len(captures),
        "ranges": sum(capture.ranges for capture in captures),
        "start_ns": first.start_ns,
        "duration_ns": max(capture.end_ns for capture in captures) - first.start_ns,
        "problem_count": sum(counts.values()),
        "problems": " ".join(f"{code}={count}" for code, count in sorted(counts.items())),
        "schema_version": SCHEMA_VERSION,
    }
    return pa.Table.from_pylist([row], runs_schema())
