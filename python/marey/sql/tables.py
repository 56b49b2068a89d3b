"""The tables of one trace in DuckDB. Columns are made when a query first needs them."""

from __future__ import annotations

import functools

from marey import _marey
from marey.sql import analyses
from marey.sql.connection import connect, lock, require
from marey.sql.runs import RUNS, run_id, run_row, runs_schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

# Columns of every table besides those in docs/reference/tables.md, so that one text suits a trace and a lake.
# A row is identified by run, host, capture and row.
EXTRA = {
    "row": "Number of the row, to which columns of other tables refer",
    "run": "Id of the run",
    "host": "Host on which its process ran",
    "capture": "Rank and process id of the capture",
    "rank": "Rank of its process",
}
# Columns that `ranges` has besides.
RANGE_PLACES = ("step", "group", "sequence")
RUN_TIME = "run_ns"  # the start, in nanoseconds since the start of the run
RUN_OFFSET = "run_offset_ns"  # in files: the difference between run_ns and start_ns
# Columns of `ranges` that files do not have, and how views compute them, on DuckDB and on Spark.
# RangeFlags, and one that exports add
_FLAGS = {"began_before": 0, "unfinished": 1, "async": 2, "remote": 3, "end_inferred": 4, "sampled": 7, "recursive": 8}
COMPUTED = {
    "start_ns": f"{RUN_TIME} - {RUN_OFFSET}",
    **{name: f"(flags & {1 << bit}) <> 0" for name, bit in _FLAGS.items()},
}
# Columns that are not stored, and the stored ones that they are made of.
_MADE_OF = {"host_name": ("host",), "rank": ("process",), RUN_OFFSET: ("process",), RUN_TIME: ("process", "start_ns")}
# Tables of traces with fewer ranges are made whole, which is faster than to import pyarrow's datasets.
_SMALL = 50_000


class _WholeTable:
    """A table that is made when DuckDB reads it."""

    def __init__(self, schema: Any, make: Callable[[list[str]], Any]) -> None:
        self._schema = schema
        self._make = make

    def __arrow_c_schema__(self) -> Any:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._make(self._schema.names).__arrow_c_stream__(requested_schema)


@functools.cache
def _lazy_table_type() -> Any:
    """Return a type that DuckDB takes for a pyarrow dataset, and that makes columns on demand."""
    dataset = require("pyarrow.dataset")
    base: Any = dataset.InMemoryDataset

    class LazyTable(base):  # type: ignore[misc]
        def __init__(self, schema: Any, make: Callable[[list[str]], Any]) -> None:
            super().__init__([], schema=schema)
            self._make = make

        def scanner(self, columns: Any = None, filter: Any = None, **options: Any) -> Any:
            names = self.schema.names if columns is None else list(columns)
            if filter is not None:  # which columns an expression reads can only be seen in its text
                text = str(filter)
                names += [name for name in self.schema.names if name in text and name not in names]
            table = self._make(names or self.schema.names[:1])
            return dataset.dataset(table).scanner(columns=columns, filter=filter, **options)

    return LazyTable


class TraceSource:
    """The columns of a trace, with those that place its rows among other captures."""

    def __init__(self, trace: Any, run: str = "", capture: str = "", run_start_ns: int | None = None) -> None:
        self.trace = trace
        processes = self.arrow("processes").to_pylist()
        first = processes[0] if processes else {}
        self.host: str = first.get("host") or "unknown"
        self.rank: int | None = first.get("node")
        self.pid: int = first.get("pid") or 0
        self.command: str = first.get("command_line") or ""
        self.program = _program(first.get("name") or "program", self.command)
        self.ranks: list[int | None] = [process["node"] for process in processes]
        self.offsets: list[int] = [process["realtime_offset_ns"] for process in processes] or [0]
        self.start_ns: int = trace.start_ns + self.offsets[0]
        self.end_ns: int = self.start_ns + trace.end_ns - trace.start_ns
        self.ranges = len(trace)
        self.problems: list[tuple[str, str, int]] = trace._problems
        self.metadata: dict[str, str] = trace._metadata
        self.run = run or run_id([self])
        self.capture = capture or f"{self.rank or 0}-{self.pid}"
        self.run_start_ns = self.start_ns if run_start_ns is None else run_start_ns
        self._kept: dict[tuple[str, str], Any] = {}

    def arrow(self, table: str, columns: Iterable[str] = ()) -> Any:
        """Return stored columns of a table as they are in docs/reference/tables.md."""
        return self._reader(table, columns).read_all()

    def _reader(self, table: str, columns: Iterable[str] = (), batch_rows: int = 0) -> Any:
        pa = require("pyarrow")
        stream = _Stream(_marey.arrow_stream(self.trace, table, list(columns), batch_rows))
        return pa.RecordBatchReader.from_stream(stream)

    def schema(self, table: str) -> Any:
        """Return the schema of a table with all its columns."""
        pa = require("pyarrow")
        fields = list(_stored_schema(table))
        text = pa.dictionary(pa.int32(), pa.large_utf8())
        types = {"row": pa.int64(), "rank": pa.int32()}
        if table == "processes":
            fields.append(pa.field("host_name", text))  # null where the stored one is
        if table == "ranges":
            fields += [field for field in _stored_schema("range_places") if field.name in RANGE_PLACES]
            fields.append(pa.field(RUN_TIME, pa.int64(), nullable=False))
        names = {field.name for field in fields}
        fields += [pa.field(name, types.get(name, text), name == "rank") for name in EXTRA if name not in names]
        return pa.schema(fields)

    def table(self, table: str, columns: Iterable[str] | None = None) -> Any:
        """Return columns of a table, stored ones and others; each is made once."""
        pa = require("pyarrow")
        schema = self.schema(table)
        names = schema.names if columns is None else list(columns)
        missing = [schema.field(name) for name in names if (table, name) not in self._kept]
        if missing:
            (whole,) = self.pieces(table, pa.schema(missing))
            self._kept.update(((table, name), whole.column(name)) for name in whole.schema.names)
        return pa.table([self._kept[table, name] for name in names], schema=pa.schema([schema.field(n) for n in names]))

    def pieces(self, table: str, schema: Any, rows: int = 0) -> Iterator[Any]:
        """Make the columns of a schema in pieces of at most `rows` rows, one after another; at least one piece.

        0: one piece.
        """
        pa = require("pyarrow")
        stored = _stored_schema(table).names
        wanted = {*schema.names, *(name for each in schema.names for name in _MADE_OF.get(each, ()))}
        readers = [self._reader(table, [name for name in stored if name in wanted] or stored[:1], rows)]
        if places := [name for name in schema.names if name in RANGE_PLACES and name not in stored]:
            readers.append(self._reader("range_places", places, rows))
        first = 0
        for batches in zip(*readers):
            found = {name: batch.column(name) for batch in batches for name in batch.schema.names}
            count = batches[0].num_rows
            columns = [
                found[field.name] if field.name in found else self._made(table, field, found.__getitem__, count, first)
                for field in schema
            ]
            yield pa.table(columns, schema=schema)
            first += count

    def _made(self, table: str, field: Any, stored: Callable[[str], Any], rows: int, first: int) -> Any:
        """Make a column that is not stored, for `rows` rows from `first` on, of those that are stored."""
        pa = require("pyarrow")
        if field.name == "host_name":
            return stored("host")
        if field.name == "row":
            return _counted(first, rows)
        if field.name == "rank":
            return self._by_process(table, self.ranks, field.type, stored, rows)
        if field.name == RUN_OFFSET:
            return self._run_offsets(table, stored, rows)
        if field.name == RUN_TIME:
            return _sum(stored("start_ns"), self._run_offsets(table, stored, rows))
        text = {"run": self.run, "host": self.host, "capture": self.capture}[field.name]
        zeros = pa.repeat(pa.scalar(0, pa.int32()), rows)
        return pa.DictionaryArray.from_arrays(zeros, pa.array([text], pa.large_utf8()))

    def _run_offsets(self, table: str, stored: Callable[[str], Any], rows: int) -> Any:
        offsets = [offset - self.run_start_ns for offset in self.offsets]
        return self._by_process(table, offsets, require("pyarrow").int64(), stored, rows)

    def _by_process(self, table: str, values: list[Any], type: Any, stored: Callable[[str], Any], rows: int) -> Any:
        """Return for each row the value of its process; that of the first process if rows have none."""
        pa = require("pyarrow")
        each = pa.array(values or [None], type)
        if "process" in _stored_schema(table).names and len(values) > 1:
            return each.take(stored("process"))
        return pa.repeat(each[0], rows)


@functools.cache
def _stored_schema(table: str) -> Any:
    """Return the schema of a table as it is in docs/reference/tables.md, the same for all traces."""
    return require("pyarrow").schema(_marey.Trace().tables[table])


def _sum(left: Any, right: Any) -> Any:
    """Return the sums of two columns of integers."""
    if len(left) < _SMALL:
        return require("pyarrow").array([a + b for a, b in zip(left.to_pylist(), right.to_pylist())])
    return require("pyarrow.compute").add(left, right)


def _counted(first: int, rows: int) -> Any:
    """Return first, first + 1, ... as an array."""
    pa = require("pyarrow")
    if rows < _SMALL:
        return pa.array(range(first, first + rows), pa.int64())
    pc = require("pyarrow.compute")
    return pc.add(_numbers(rows), first)


@functools.lru_cache(maxsize=1)
def _numbers(rows: int) -> Any:
    """Return 0, 1, 2, ... as an array."""
    pa, pc = require("pyarrow"), require("pyarrow.compute")
    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), rows)), 1)


class _Stream:
    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._capsule


def _program(executable: str, command: str) -> str:
    """Return the name of a program: for a Python program that of its script."""
    script = next((word for word in command.split()[1:] if not word.startswith("-")), "")
    name = script if script.endswith(".py") else executable
    return name.rpartition("/")[2].removesuffix(".py")


def table_schema(table: str) -> Any:
    """Return the schema of a table in a lake, including the columns that are in the names of folders."""
    return runs_schema() if table == RUNS else TraceSource(_marey.Trace()).schema(table)


def connection_of(trace: Any) -> Any:
    """Return a DuckDB connection with every table of a trace, its analyses, and Perfetto's names as views."""
    from importlib.resources import files

    source = TraceSource(trace)
    connection = connect()
    lazy = _WholeTable if source.ranges < _SMALL else _lazy_table_type()
    for table in _marey.table_names():
        connection.register(table, lazy(source.schema(table), functools.partial(source.table, table)))
    for name, schema, rows in analyses.tables(trace):
        connection.register(name, lazy(schema, rows))
    connection.register(RUNS, run_row(source.run, [source]))
    connection.execute(files("marey.sql").joinpath("functions.sql").read_text())
    connection.execute(files("marey.sql").joinpath("perfetto.sql").read_text())
    try:  # A lambda: DuckDB evaluates annotations, which are only for type checkers here.
        connection.create_function(
            "path", lambda rows: _paths(source, rows), ["BIGINT"], "VARCHAR", type="arrow", null_handling="special"
        )
    except require("duckdb").InvalidInputException:  # it cannot call Python functions without NumPy
        connection.execute("create macro path(row) as error('path() needs NumPy: pip install numpy')")
    lock(connection)
    return connection


def _paths(source: TraceSource, rows: Any) -> Any:
    """Return the names of ranges from the outermost one down, separated by ";"."""
    pa = require("pyarrow")
    ranges = source.table("ranges", ["name", "parent"])
    names, parents = ranges.column("name").combine_chunks(), ranges.column("parent").combine_chunks()
    known: dict[int | None, str] = {}

    def path(row: int | None) -> str | None:
        if row is None or not 0 <= row < len(names):
            return None
        trail = []
        while row is not None and row not in known:
            trail.append(row)
            row = parents[row].as_py()
        text = known.get(row, "") if row is not None else ""
        for row in reversed(trail):
            text = f"{text};{names[row].as_py()}" if text else names[row].as_py()
            known[row] = text
        return text

    return pa.array([path(row) for row in rows.to_pylist()], pa.large_utf8())
