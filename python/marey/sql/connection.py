"""A DuckDB connection that reads only what it is given, and errors that show where a query is wrong."""

from __future__ import annotations

import contextlib
import re

from marey._marey import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

# Statements that write files, reach other databases or change settings; DuckDB's settings forbid most of them too.
# EXPLAIN ANALYZE runs the statement that it explains.
_ALLOWED = {"SELECT", "EXPLAIN", "CREATE", "DROP", "INSERT", "UPDATE", "DELETE", "RELATION", "TRANSACTION", "ALTER"}
_BATCH_ROWS = 65536


def require(name: str, install: str = "duckdb pyarrow") -> Any:
    """Import an optional package; the error says what to install."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.split(".")[0]
        if isinstance(error, ModuleNotFoundError) and error.name == package:
            raise Error(f"{package} is not installed: pip install {install}") from None
        raise Error(f"cannot import {package}: {error}; pip install --upgrade {install}") from None


def connect() -> Any:
    """Return a connection to an empty database in memory, which lock() closes to the outside."""
    import os

    duckdb = require("duckdb")
    require("pyarrow")
    connection = duckdb.connect(":memory:")
    spill = os.path.join(os.environ.get("TMPDIR") or "/tmp", f"marey-sql-{os.getpid()}")  # made only if memory is short
    connection.execute(f"set temp_directory = {quoted(spill)}")
    connection.execute("set enable_progress_bar = false")  # it would be printed among the rows
    return connection


def lock(connection: Any, folders: Iterable[str] = ()) -> None:
    """Forbid files outside `folders`, the network, extensions, variables of the program, and changes of this."""
    allowed = ", ".join(quoted(folder) for folder in folders)
    for setting in (
        "python_enable_replacements = false",
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        f"allowed_directories = [{allowed}]",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        connection.execute(f"set {setting}")


def quoted(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def statements(connection: Any, sql: str) -> list[Any]:
    """Split a text into statements. Raises marey.Error for syntax errors and for statements that are not allowed."""
    with readable_errors(connection, sql):
        found = connection.extract_statements(sql)
    for statement in found:
        kind = str(statement.type).rpartition(".")[2]
        writes_file = kind == "EXPLAIN" and re.search(r"\b(copy|export|attach)\b", statement.query, re.IGNORECASE)
        if kind not in _ALLOWED or writes_file:
            raise Error(f"{kind} statements are not allowed here: {statement.query.strip()[:60]}")
    return list(found)


@contextlib.contextmanager
def time_limit(connection: Any, seconds: float | None) -> Iterator[None]:
    """Interrupt the connection's queries after some time."""
    import threading

    if not seconds:
        yield
        return
    duckdb = require("duckdb")
    timer = threading.Timer(seconds, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    except duckdb.InterruptException:
        raise Error(f"the query was stopped after {seconds:g} s (--timeout)") from None
    finally:
        timer.cancel()


@contextlib.contextmanager
def stream(connection: Any, sql: str) -> Iterator[Any]:
    """Run every statement and give the last one's rows as a pyarrow.RecordBatchReader, while they are made."""
    found = statements(connection, sql)
    if not found:
        raise Error("the query is empty")
    for statement in found[:-1]:
        with readable_errors(connection, statement.query):
            if str(statement.type).endswith("SELECT"):
                _relation(connection, statement.query)  # checks it; its rows are not wanted
            else:
                connection.execute(statement).fetchall()
    query = found[-1].query
    with readable_errors(connection, query):
        relation = _relation(connection, query)
        if relation is None:  # a statement without rows
            pa = require("pyarrow")
            yield pa.RecordBatchReader.from_batches(pa.schema([]), [])
        else:
            yield relation.to_arrow_reader(_BATCH_ROWS)


def _relation(connection: Any, query: str) -> Any:
    """Return the rows of a statement, to be made while they are read; None if it has no rows."""
    duckdb = require("duckdb")
    try:
        return connection.sql(query)
    except (duckdb.BinderException, duckdb.CatalogException):
        connection.execute(query)  # fails in the same way, but with the position
        raise


@contextlib.contextmanager
def readable_errors(connection: Any, sql: str) -> Iterator[None]:
    """Turn DuckDB's errors into marey.Error, with the position and the nearest names."""
    duckdb, pa = require("duckdb"), require("pyarrow")
    try:
        yield
    except duckdb.InterruptException:
        raise
    except (duckdb.Error, pa.ArrowException, OSError) as error:  # while rows are read, pyarrow raises DuckDB's errors
        if "INTERRUPT" in str(error):
            raise duckdb.InterruptException(str(error)) from None
        raise Error(describe(str(error), sql, tables_of(connection))) from None


def tables_of(connection: Any) -> list[str]:
    """Return the names of all tables and views that a query can use."""
    try:
        rows = connection.execute("select table_name from information_schema.tables order by 1").fetchall()
    except Exception:  # the connection is closed, or in a failed transaction
        return []
    return [name for (name,) in rows]


def describe(message: str, sql: str, tables: Iterable[str] = ()) -> str:
    """Return a DuckDB error as one line: its position, the error, the nearest names."""
    text, _, excerpt = message.partition("\nLINE ")
    place = ""
    position = _position(excerpt, sql)
    if position is not None:
        place = "line {}, column {}: ".format(*position)
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    unknown = re.search(r"Table with name (\S+) does not exist", text)
    if unknown:
        import difflib

        near = difflib.get_close_matches(unknown[1], list(tables), n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else "see --tables"
        return f"{place}unknown table {unknown[1]}: {hint}"
    first = re.sub(r"^(\w+ )*Error: ", "", lines[0]) if lines else message
    first = re.sub(r"^Referenced column (.*) not found in FROM clause", r"unknown column \1", first)
    first = first[:1].lower() + first[1:]
    rest = " ".join(lines[1:])
    rest = re.sub(r"^Candidate bindings: ", "nearest names: ", rest)
    return place + first.rstrip("!.") + (f"; {rest}" if rest else "")


def _position(excerpt: str, sql: str) -> tuple[int, int] | None:
    """Return the line and column to which DuckDB's excerpt ("1: select x\\n   ^") points, counted from 1."""
    match = re.match(r"(\d+): (.*)\n( *)\^", excerpt)
    if match is None:
        return None
    number = int(match[1])
    lines = sql.splitlines()
    shown = match[2].removeprefix("...").removesuffix("...")
    at = len(match[3]) - len(f"LINE {match[1]}: ") - (len(match[2]) - len(match[2].removeprefix("...")))
    start = lines[number - 1].find(shown) if number <= len(lines) else 0
    return number, max(start, 0) + at + 1
