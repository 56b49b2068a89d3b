"""A lake: Parquet files of many runs in a folder, as ``marey export --to parquet`` writes them.

``TABLE/run=ID/host=H/RANK-PID.parquet`` has the rows of one capture; ``_runs/ID.parquet`` has one row for the run, and
is written last: a run without it is not complete and not read. Likewise ``TABLE/days/DAY.parquet`` has the rows of many
small runs, which ``marey compact`` has joined, and ``_runs/days/DAY.parquet`` their rows.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import sys

from marey._marey import Error
from marey.sql.connection import connect, lock, quoted, require
from marey.sql.database import Database, Result
from marey.sql.runs import DAYS, RUNS, TABLE_KEY, decoded, encoded, table_names
from marey.sql.tables import COMPUTED, table_schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike
    from typing import Any


def lake(path: str | PathLike[str], skip_damaged: bool = False) -> Lake:
    """Open a lake: the runs that ``marey export --to parquet`` has put into a folder.

    Args:
        path: The folder.
        skip_damaged: Leave out files that cannot be read instead of failing.
    """
    return Lake(os.fsdecode(path), skip_damaged)


class Lake:
    """Runs in a folder. Made by ``marey.lake()``."""

    def __init__(self, path: str, skip_damaged: bool = False) -> None:
        self.path = os.path.abspath(path)
        if not os.path.isdir(os.path.join(self.path, RUNS)):
            raise Error(f"{path} is not a lake: it has no folder {RUNS} (marey export CAPTURES --to parquet -o {path})")
        self.damaged: dict[str, str] = {}  # files that are left out, with descriptions
        self._skips_damaged = skip_damaged
        self._database: Database | None = None

    # ---- queries

    def sql(self, query: str, timeout: float | None = None) -> Result:
        """Run SQL over all runs on DuckDB and return an Arrow table, with df() for pandas and pl() for Polars."""
        if self._database is None:
            self._database = self.database()
        return self._database.sql(query, timeout)

    def duckdb(self) -> Any:
        """Return a new DuckDB connection with a view for every table."""
        return self.database().connection

    def ask(self, question: str, engine: str = "duckdb", remote: str = "", **parameters: Any) -> Result:
        """Answer one of the questions of ``marey ask`` and return an Arrow table."""
        from marey.sql.question import add_tables
        from marey.sql.question import question as question_of

        sql = question_of(question).text(parameters)
        if engine == "spark":
            from marey.sql import engines

            return Result(engines.run_on_spark(self, sql, remote))
        if engine != "duckdb":
            raise Error(f"unknown engine {engine}: expected duckdb or spark")
        database = self.database(sql)
        add_tables(database.connection)
        return database.sql(sql)

    def ibis(self, backend: str = "duckdb", remote: str = "") -> Any:
        """Return an Ibis connection with the tables of the lake, for questions written in Python.

        Args:
            backend: "duckdb" or "pyspark".
            remote: The address of a Spark Connect server, such as sc://host; local mode by default.
        """
        from marey.sql import engines

        return engines.ibis_connection(self, backend, remote)

    @property
    def runs(self) -> list[str]:
        """The ids of its complete runs."""
        return sorted(self.own_runs() | set(self.joined_runs()))

    def own_runs(self) -> set[str]:
        """Return the ids of complete runs with files of their own."""
        names = os.listdir(os.path.join(self.path, RUNS))
        return {decoded(name.removesuffix(".parquet")) for name in names if name.endswith(".parquet")}

    def days(self) -> list[str]:
        """Return the names of the files that hold many runs each."""
        names = glob.glob("*.parquet", root_dir=os.path.join(self.path, RUNS, DAYS))
        return sorted(name.removesuffix(".parquet") for name in names)

    def joined_runs(self) -> list[str]:
        """Return the ids of the runs in those files."""
        found: list[str] = []
        for path in self.day_files(RUNS):
            if fault_of(path, RUNS) is None:
                found += require("pyarrow.parquet").read_table(path, columns=["run"]).column("run").to_pylist()
        return found

    # ---- files

    def patterns(self, table: str) -> list[str]:
        """Return shell patterns for the files of complete runs with rows of a table."""
        if table == RUNS:
            return [os.path.join(glob.escape(self.path), RUNS, "*.parquet")]
        folder = os.path.join(self.path, table)
        try:
            found = {name for name in os.listdir(folder) if name.startswith("run=")}
        except FileNotFoundError:
            return []
        complete = found & {f"run={encoded(run)}" for run in self.own_runs()}
        if not complete:
            return []
        runs = ["run=*"] if complete == found else [glob.escape(name) for name in sorted(complete)]
        return [os.path.join(glob.escape(folder), run, "host=*", "*.parquet") for run in runs]

    def own_files(self, table: str) -> list[str]:
        """Return the files of complete runs that have files of their own."""
        return sorted(path for pattern in self.patterns(table) for path in glob.glob(pattern))

    def day_files(self, table: str) -> list[str]:
        """Return the files with rows of many runs."""
        paths = (os.path.join(self.path, table, DAYS, f"{day}.parquet") for day in self.days())
        return [path for path in paths if os.path.exists(path)]

    def files(self, table: str) -> list[str]:
        """Return the files of complete runs with rows of a table."""
        return [*self.own_files(table), *self.day_files(table)]

    def readable(self, table: str) -> tuple[list[str], list[str]]:
        """Return patterns or files to read, of single runs and of many; with skip_damaged, those that can be opened."""
        if not self._skips_damaged:
            own = [pattern for pattern in self.patterns(table) if next(glob.iglob(pattern), None)]
            return own, self.day_files(table)
        self._leave_out(self._faults({table: self.files(table)}, deep=False))
        own, joined = (
            [path for path in paths if path not in self.damaged]
            for paths in (self.own_files(table), self.day_files(table))
        )
        return own, joined

    def replaced_runs(self) -> list[str]:
        """Return the runs that were exported again after they were joined: their own files count."""
        return sorted(self.own_runs() & set(self.joined_runs()))

    def _leave_out(self, faults: dict[str, str]) -> None:
        for path, fault in faults.items():
            if path not in self.damaged:
                self.damaged[path] = fault
                print(f"marey: left out: {fault}", file=sys.stderr)

    def leave_out_damage(self) -> bool:
        """With skip_damaged, leave out files whose rows cannot be read; return whether there are more than before."""
        before = len(self.damaged)
        if self._skips_damaged:
            self._leave_out(self._faults({table: self.files(table) for table in table_names()}))
        return len(self.damaged) > before

    def has_several_versions(self) -> bool:
        """Whether runs of different schema versions are side by side."""
        parquet = require("pyarrow.parquet")
        versions = {
            (parquet.read_metadata(path).metadata or {}).get(b"marey.schema_version")
            for path in self.files(RUNS)
            if fault_of(path, RUNS) is None
        }
        return len(versions) > 1

    # ---- DuckDB

    def database(self, sql: str | None = None) -> Database:
        """Return a database with a view for every table; with `sql`, only for tables that occur in it."""
        connection = self.open_connection(sql)
        self.lock(connection)

        def repair() -> bool:
            found = self.leave_out_damage()
            if found:
                self._add_views(connection, sql)
            return found

        return Database(connection, self._naming_damage, repair if self._skips_damaged else None)

    def lock(self, connection: Any) -> None:
        """Forbid a connection everything but to read the lake."""
        lock(connection, [self.path + os.sep])

    def open_connection(self, sql: str | None = None) -> Any:
        """Return a connection with these views that is not locked yet."""
        from importlib.resources import files

        connection = connect()
        with self._naming_damage():
            self._add_views(connection, sql)
        connection.execute(files("marey.sql").joinpath("functions.sql").read_text())
        return connection

    def _add_views(self, connection: Any, sql: str | None) -> None:
        """Add or replace the views."""
        union = self.has_several_versions()
        for table in table_names():
            if sql is None or re.search(rf"\b{table}\b", sql, re.IGNORECASE):
                self._add_view(connection, table, union)

    def _add_view(self, connection: Any, table: str, union: bool) -> None:
        own, joined = self.readable(table)
        if not own and not joined:
            connection.execute(f'drop view if exists "{table}"')
            connection.register(table, table_schema(table).empty_table())
            return
        union_option = f"union_by_name = {str(union).lower()}"
        partitions = "hive_partitioning = true, hive_types = {'run': VARCHAR, 'host': VARCHAR}"
        computed = COMPUTED.items() if table == "ranges" else ()
        columns = ", ".join(["*", *(f'{value} as "{name}"' for name, value in computed)])
        parts = []
        for paths, options in (
            (own, "" if table == RUNS else ", " + partitions),
            (joined, ", hive_partitioning = false"),
        ):
            if paths:
                listed = ", ".join(quoted(path) for path in paths)
                parts.append(f"select {columns} from read_parquet([{listed}], {union_option}{options})")
        if joined and (replaced := self.replaced_runs()):
            parts[-1] += f" where run not in ({', '.join(quoted(run) for run in replaced)})"
        connection.execute(f'create or replace view "{table}" as {" union all by name ".join(parts)}')

    @contextlib.contextmanager
    def _naming_damage(self) -> Iterator[None]:
        """Add the names of damaged files to errors of queries."""
        duckdb = require("duckdb")
        try:
            yield
        except duckdb.InterruptException:
            raise
        except (Error, duckdb.Error) as error:
            # An error in the query is one in the first file too, from which DuckDB takes the columns.
            faults = self.find_damage(first_only=str(error).startswith("line "))
            if not faults:
                raise
            raise Error(f"{'; '.join(faults[:5])} (--skip-damaged leaves files like these out)") from None

    def find_damage(self, first_only: bool = False) -> list[str]:
        """Return a description of every file that cannot be read; reads all rows, or only of the first files."""
        files = {table: self.files(table)[: 1 if first_only else None] for table in table_names()}
        return [fault for path, fault in self._faults(files, not first_only).items() if path not in self.damaged]

    def _faults(self, files: dict[str, list[str]], deep: bool = True) -> dict[str, str]:
        faults = {path: fault_of(path, table, deep) for table, paths in files.items() for path in paths}
        return {path: fault for path, fault in faults.items() if fault is not None}

    def __repr__(self) -> str:
        return f"<marey.Lake {self.path!r}: {len(self.runs)} runs>"


def fault_of(path: str, table: str, deep: bool = False) -> str | None:
    """Return what is wrong with a file of a table, or None."""
    pa = require("pyarrow")
    parquet = require("pyarrow.parquet")
    try:
        with parquet.ParquetFile(path) as file:
            written_for = (file.metadata.metadata or {}).get(TABLE_KEY, b"").decode("utf-8", "replace")
            if written_for != table:
                owner = f"written for {written_for}" if written_for else "not written by marey export"
                return f"{path} does not belong into {table}: {owner}"
            for group in range(file.num_row_groups if deep else 0):
                file.read_row_group(group)
    except (pa.ArrowException, OSError, ValueError) as error:
        return f"{path} is damaged: {str(error).splitlines()[0][:120]}"
    return None
