"""Adds captures to a lake as one run, and joins the files of small runs.

A killed export leaves the lake without that run, or with all of it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil

from marey import _marey
from marey._marey import Error
from marey.sql.connection import require
from marey.sql.runs import (
    DAYS,
    PARTITIONS,
    RUNS,
    SCHEMA_VERSION,
    TABLE_KEY,
    decoded,
    encoded,
    run_id,
    run_row,
    table_names,
)
from marey.sql.tables import COMPUTED, RUN_OFFSET, TraceSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

ROW_GROUP = 131_072
_STAGE = "_stage-"  # engines ignore names that begin with "_"
_COMPLETE = "complete"  # in a stage: all files are written; it lists the tables
_JOINED = "joined"  # in a stage: all files with the rows of many runs are written; it lists what they replace
_LOCK = "lock"
# Numbers that repeat: zstd shrinks them better than a dictionary, or as well, in less time.
_PLAIN = ("site", "track", "thread", "process", "pid", "device_index", "stream", "flags", RUN_OFFSET)


def export_run(paths: Iterable[str], lake: str, run: str = "", format: str = "", session: int = 0) -> list[str]:
    """Add captures to a lake as one run, and replace that run if it exists. Return lines that say what was done."""
    require("pyarrow.parquet")
    names = list(paths)
    heads = [_head(_load(path, format, session), keep=len(names) == 1) for path in names]
    run = run or run_id(heads)
    start_ns = min(head.start_ns for head in heads)
    lake = os.path.abspath(lake)
    try:
        os.makedirs(lake, exist_ok=True)
        with _stage(lake) as stage:
            taken: set[str] = set()
            sizes = [0, 0]
            for path, head in zip(names, heads):
                name = _free_name(head, taken)
                source = TraceSource(head.trace or _load(path, format, session), run, name, start_ns)
                sizes[0] += len(source.trace)
                sizes[1] += write_capture(source, stage)
            _write_run(stage, run, heads)
            staged = (table for table in table_names() if os.path.isdir(os.path.join(stage, table)))
            _mark(stage, _COMPLETE, " ".join(staged))
            with _locked(os.path.join(lake, "_" + _LOCK)):
                _move_in(lake, stage)
    except OSError as error:
        raise Error(f"cannot write {lake}: {error.strerror or error}") from None
    each = sizes[1] / sizes[0] if sizes[0] else 0
    return [
        f"{lake}: run {run}: {_plural(len(names), 'capture')}, {_plural(sizes[0], 'range')}, " f"{each:.1f} bytes each"
    ]


def _load(path: str, format: str, session: int) -> Any:
    """Return a trace in which each Python import is one range, as in reports and other exports."""
    return _marey.load(path, format, session)._filtered([], True, False)


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _head(trace: Any, keep: bool) -> TraceSource:
    """Return facts about a capture. Unless it is kept, the trace is loaded again when its turn comes."""
    head = TraceSource(trace)
    if not keep:
        head.trace = None
    return head


def _free_name(head: TraceSource, taken: set[str]) -> str:
    """Return a name for a capture's files that no other capture of the run has."""
    name = head.capture
    number = 2
    while f"{head.host}/{name}" in taken:
        name = f"{head.capture}-{number}"
        number += 1
    taken.add(f"{head.host}/{name}")
    return name


# ---- files


def write_capture(source: TraceSource, folder: str) -> int:
    """Write every table that has rows below `folder`; return the bytes of `ranges`."""
    size = 0
    for table in table_names():
        if table == RUNS:
            continue
        pieces = source.pieces(table, file_schema(source.schema(table), table), ROW_GROUP)
        first = next(pieces)
        if first.num_rows == 0:
            continue
        path = os.path.join(folder, table, f"run={encoded(source.run)}", f"host={encoded(source.host)}")
        os.makedirs(path, exist_ok=True)
        file = os.path.join(path, f"{encoded(source.capture)}.parquet")
        write_table(itertools.chain([first], pieces), first.schema, file, table)
        if table == "ranges":
            size = os.path.getsize(file)
    return size


def file_schema(schema: Any, table: str) -> Any:
    """Return the schema of files with a table: without columns that views compute, or that are in names of folders.

    Of a range's start, files have the time since the start of the run, which compares across captures; subtract
    run_offset_ns to get the time on its own clock.
    """
    pa = require("pyarrow")
    left_out = (*PARTITIONS, *COMPUTED) if table == "ranges" else PARTITIONS
    fields = [field for field in schema if field.name not in left_out]
    if table == "ranges":
        fields.append(pa.field(RUN_OFFSET, pa.int64(), nullable=False))
    return pa.schema(fields)


def write_table(pieces: Iterable[Any], schema: Any, path: str, table: str) -> None:
    """Write a Parquet file: differences for times and row numbers, dictionaries for text and repeated numbers.

    Text has no statistics, which take longer to make than the text to write.
    """
    pa = require("pyarrow")
    parquet = require("pyarrow.parquet")
    numbers = [field.name for field in schema if pa.types.is_integer(field.type)]
    deltas = [name for name in numbers if _is_rising(name)]
    with parquet.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=[name for name in schema.names if name not in deltas and name not in _PLAIN],
        column_encoding=dict.fromkeys(deltas, "DELTA_BINARY_PACKED"),
        write_statistics=numbers,
        store_schema=False,
    ) as writer:
        writer.add_key_value_metadata({TABLE_KEY: table, b"marey.schema_version": str(SCHEMA_VERSION)})
        for piece in pieces:
            writer.write_table(piece, row_group_size=ROW_GROUP)


def _is_rising(name: str) -> bool:
    """Whether neighbouring values of a column differ by little: times, and numbers of rows."""
    return name != RUN_OFFSET and (
        name.endswith("_ns")
        or name in ("row", "parent", "depth", "range", "from", "to", "first_range", "array", "first_item")
    )


def _write_run(stage: str, run: str, heads: list[TraceSource]) -> None:
    os.makedirs(os.path.join(stage, RUNS))
    row = run_row(run, heads)
    write_table([row], row.schema, os.path.join(stage, RUNS, f"{encoded(run)}.parquet"), RUNS)


# ---- moving a run into the lake


@contextlib.contextmanager
def _stage(lake: str) -> Iterator[str]:
    """Give a folder for a run that is being written; it is removed at the end. Clears those of killed exports."""
    import tempfile

    with _locked(os.path.join(lake, "_" + _LOCK)):
        for name in os.listdir(lake):
            if name.startswith(_STAGE):
                _settle(lake, os.path.join(lake, name))
        stage = tempfile.mkdtemp(prefix=_STAGE, dir=lake)
        lock = contextlib.ExitStack()
        lock.enter_context(_locked(os.path.join(stage, _LOCK)))
    with lock:
        try:
            yield stage
        finally:
            shutil.rmtree(stage, ignore_errors=True)


def _settle(lake: str, stage: str) -> None:
    """Finish or remove what an export left behind. One that is still running holds its lock."""
    try:
        with _locked(os.path.join(stage, _LOCK), wait=False):
            if os.path.exists(os.path.join(stage, _COMPLETE)):
                _move_in(lake, stage)
            if os.path.exists(os.path.join(stage, _JOINED)):
                _move_days_in(lake, stage)
            shutil.rmtree(stage, ignore_errors=True)
    except BlockingIOError:
        pass


def _mark(stage: str, name: str, text: str) -> None:
    """Write what is staged; from now on it can be moved into the lake."""
    aside = os.path.join(stage, "mark")
    with open(aside, "w") as file:
        file.write(text)
    os.rename(aside, os.path.join(stage, name))


def _move_in(lake: str, stage: str) -> None:
    """Put the staged run in place of an older one. While its row of _runs is missing, nobody reads the run.

    Can be repeated after it was interrupted at any point: it moves what is still in the stage.
    """
    os.makedirs(os.path.join(lake, RUNS), exist_ok=True)
    rows = os.path.join(stage, RUNS)
    with open(os.path.join(stage, _COMPLETE)) as file:
        staged = file.read().split()
    for name in os.listdir(rows):
        target = os.path.join(lake, RUNS, name)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(target)
        folder = f"run={name.removesuffix('.parquet')}"
        for table in table_names():
            if table == RUNS:
                continue
            old, new = os.path.join(lake, table, folder), os.path.join(stage, table, folder)
            if table in staged and not os.path.exists(new):
                continue  # moved by an earlier attempt
            if os.path.exists(old):
                os.rename(old, os.path.join(stage, f"old-{table}"))
            if table in staged:
                os.makedirs(os.path.dirname(old), exist_ok=True)
                os.rename(new, old)
        os.rename(os.path.join(rows, name), target)
    os.unlink(os.path.join(stage, _COMPLETE))  # before the rest of the stage is removed


# ---- joining the files of small runs

SMALL_RUN = 100_000  # ranges; larger runs keep files of their own


def compact_lake(path: str) -> list[str]:
    """Join the files of small runs to one for each table and day. Return lines that say what was done."""
    import json

    from marey.sql.lake import Lake

    lake = Lake(path)
    try:
        # Until the end nobody exports a run again.
        with _stage(lake.path) as stage, _locked(os.path.join(lake.path, "_" + _LOCK)):
            days = _days_to_join(lake)
            before = sum(len(lake.files(table)) for table in table_names())
            for day, (runs, old) in days.items():
                _write_day(lake, stage, day, runs, old)
            _mark(stage, _JOINED, json.dumps(days))
            _move_days_in(lake.path, stage)
            after = sum(len(lake.files(table)) for table in table_names())
    except OSError as error:
        raise Error(f"cannot write {path}: {error.strerror or error}") from None
    joined = sum(len(runs) for runs, _ in days.values())
    if joined == 0:
        return [f"{lake.path}: nothing to join ({_plural(before, 'file')})"]
    return [
        f"{lake.path}: joined {_plural(joined, 'run')} of {_plural(len(days), 'day')}: "
        f"{_plural(before, 'file')} became {after:,}"
    ]


def _days_to_join(lake: Any) -> dict[str, tuple[list[str], list[str]]]:
    """Return, by the name of the file to write, the small runs of a day and the files that it replaces."""
    import time

    parquet = require("pyarrow.parquet")
    found: dict[str, list[str]] = {}
    for path in lake.own_files(RUNS):
        for row in parquet.read_table(path).to_pylist():
            if row["ranges"] < SMALL_RUN and row["schema_version"] == SCHEMA_VERSION:
                day = time.strftime("%Y-%m-%d", time.gmtime(max(row["start_ns"], 0) // 1_000_000_000))
                found.setdefault(day, []).append(row["run"])
    days = {}
    for day, runs in found.items():
        old = [name for name in lake.days() if name.startswith(day)]
        if old or len(runs) > 1:
            number = 1 + max((int(name[len(day) + 1 :]) for name in old), default=0)
            days[f"{day}.{number}"] = (runs, old)
    return days


def _write_day(lake: Any, stage: str, day: str, runs: list[str], old: list[str]) -> None:
    """Write the rows of some runs, and those of older files, that the runs do not replace."""
    pa, parquet, pc = require("pyarrow"), require("pyarrow.parquet"), require("pyarrow.compute")
    texts = {name: pa.field(name, pa.large_utf8(), nullable=False) for name in PARTITIONS}

    def pieces(table: str) -> Iterator[Any]:
        for run in runs:
            if table == RUNS:
                yield parquet.read_table(os.path.join(lake.path, RUNS, f"{encoded(run)}.parquet"), partitioning=None)
                continue
            folder = os.path.join(lake.path, table, f"run={encoded(run)}")
            for place, _, names in sorted(os.walk(folder)):
                host = decoded(os.path.basename(place).removeprefix("host="))
                for name in sorted(names):
                    rows = parquet.read_table(os.path.join(place, name), partitioning=None)
                    for field, text in zip(texts.values(), (run, host)):
                        rows = rows.append_column(field, pa.repeat(pa.scalar(text, field.type), rows.num_rows))
                    yield rows
        for name in old:
            path = os.path.join(lake.path, table, DAYS, f"{name}.parquet")
            if os.path.exists(path):
                rows = parquet.read_table(path, partitioning=None)
                yield rows.filter(pc.invert(pc.is_in(rows.column("run"), pa.array(runs, pa.large_utf8()))))

    for table in table_names():
        found = pieces(table)
        first = next((piece for piece in found if piece.num_rows), None)
        if first is None:
            continue
        os.makedirs(os.path.join(stage, table, DAYS), exist_ok=True)
        path = os.path.join(stage, table, DAYS, f"{day}.parquet")
        write_table(_gathered(itertools.chain([first], found), first.schema), first.schema, path, table)


def _gathered(pieces: Iterable[Any], schema: Any) -> Iterator[Any]:
    """Join small pieces, so that row groups are as long as they should be."""
    pa = require("pyarrow")
    kept: list[Any] = []
    for piece in pieces:
        kept.append(piece.select(schema.names).cast(schema))
        if sum(each.num_rows for each in kept) >= ROW_GROUP:
            yield pa.concat_tables(kept)
            kept = []
    if kept:
        yield pa.concat_tables(kept)


def _move_days_in(lake: str, stage: str) -> None:
    """Put the staged files in place of those of single runs. Can be repeated after it was interrupted at any point.

    While their rows of _runs are missing, nobody reads the runs.
    """
    import json

    with open(os.path.join(stage, _JOINED)) as file:
        days = json.load(file)
    for day, (runs, old) in days.items():
        if os.path.exists(os.path.join(stage, RUNS, DAYS, f"{day}.parquet")):
            rows = [f"{encoded(run)}.parquet" for run in runs] + [os.path.join(DAYS, f"{name}.parquet") for name in old]
            for name in rows:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(lake, RUNS, name))
            for table in [*(name for name in table_names() if name != RUNS), RUNS]:
                new = os.path.join(stage, table, DAYS, f"{day}.parquet")
                if os.path.exists(new):
                    os.makedirs(os.path.join(lake, table, DAYS), exist_ok=True)
                    os.rename(new, os.path.join(lake, table, DAYS, f"{day}.parquet"))
        for table in table_names():
            for run in runs if table != RUNS else ():
                shutil.rmtree(os.path.join(lake, table, f"run={encoded(run)}"), ignore_errors=True)
            for name in old:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(lake, table, DAYS, f"{name}.parquet"))
    os.unlink(os.path.join(stage, _JOINED))


@contextlib.contextmanager
def _locked(path: str, wait: bool = True) -> Iterator[None]:
    """Hold a lock on a file; the system releases it if the process dies. Raises BlockingIOError without waiting."""
    import fcntl

    with open(path, "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
