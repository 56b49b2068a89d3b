"""A connection with the tables of a trace or a lake, and the result of a query on it."""

from __future__ import annotations

import contextlib

from marey._marey import Error
from marey.sql import connection as connections
from marey.sql.connection import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from typing import Any


class Database:
    """A DuckDB connection, and what its owner does when a query fails.

    `when_failing` may describe an error better. `repair` may change the tables after a query has failed, and returns
    whether to run it again; then all rows are read before the first one is given.
    """

    def __init__(
        self,
        connection: Any,
        when_failing: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
        repair: Callable[[], bool] | None = None,
    ) -> None:
        self.connection = connection
        self._when_failing = when_failing
        self._repair = repair

    @contextlib.contextmanager
    def stream(self, sql: str, timeout: float | None = None) -> Iterator[Any]:
        """Run SQL and give the rows of its last statement as a pyarrow.RecordBatchReader, while they are made."""
        with connections.time_limit(self.connection, timeout), self._when_failing():
            if self._repair is not None:
                yield self._all_rows(sql, self._repair).to_reader()
                return
            with connections.stream(self.connection, sql) as reader:
                yield reader

    def _all_rows(self, sql: str, repair: Callable[[], bool]) -> Any:
        try:
            with connections.stream(self.connection, sql) as reader:
                return reader.read_all()
        except Error:
            if not repair():
                raise
        with connections.stream(self.connection, sql) as reader:
            return reader.read_all()

    def sql(self, sql: str, timeout: float | None = None) -> Result:
        """Run SQL and return all rows of its last statement."""
        with self.stream(sql, timeout) as reader:
            return Result(reader.read_all())


class Result:
    """Rows of a query. Has every member of ``pyarrow.Table``; libraries read it through the Arrow interface."""

    __slots__ = ("table",)

    def __init__(self, table: Any) -> None:
        self.table = table

    def df(self) -> Any:
        """Return a pandas.DataFrame."""
        require("pandas", "pandas")
        return self.table.to_pandas()

    def pl(self) -> Any:
        """Return a polars.DataFrame."""
        return require("polars", "polars").from_arrow(self.table)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "table"), name)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        from marey.sql.output import table_text

        lines = table_text(self.table.slice(0, 20)).splitlines()
        return "\n".join([*lines[:-1], f"({len(self)} rows)"])


def of_trace(trace: Any) -> Database:
    """Return a database with every table of a trace."""
    from marey.sql.tables import connection_of

    return Database(connection_of(trace))
