"""The prompt of ``marey sql`` without a query."""

from __future__ import annotations

import sys

from marey._marey import Error
from marey.sql import output
from marey.sql.connection import require, tables_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from marey.sql.database import Database

_HELP = "end a query with ;   .tables lists tables   .tables NAME lists columns   .quit or Ctrl-D ends"


def run_prompt(database: Database, format: str, timeout: float | None) -> None:
    """Read queries from standard input until it ends, and print their rows; an error does not end it."""
    is_terminal = sys.stdin.isatty()
    connection = database.connection
    if is_terminal:
        import contextlib

        with contextlib.suppress(ImportError):
            import readline  # noqa: F401  (line editing)
        print("tables:", ", ".join(tables_of(connection)))
        print(_HELP)
    text = ""
    while True:
        try:
            line = input(("marey> " if not text else "  ...> ") if is_terminal else "")
        except EOFError:
            line = None
        except KeyboardInterrupt:
            print()
            text = ""
            continue
        if line is None or (not text and line.strip() in (".quit", ".exit")):
            if text.strip():
                _answer(database, text, format, timeout)
            return
        if not text and line.strip().startswith("."):
            _command(connection, line.split())
            continue
        text += line + "\n"
        if line.rstrip().endswith(";"):
            _answer(database, text, format, timeout)
            text = ""


def _answer(database: Database, sql: str, format: str, timeout: float | None) -> None:
    duckdb = require("duckdb")
    try:
        with database.stream(sql, timeout) as reader:
            output.write_rows(reader, format or "table")
    except (KeyboardInterrupt, duckdb.InterruptException):
        print("interrupted", file=sys.stderr)
    except Error as error:
        print(error, file=sys.stderr)


def _command(connection: Any, words: list[str]) -> None:
    if words[0] == ".tables":
        print_tables(connection, words[1] if len(words) > 1 else None)
    else:
        print(_HELP, file=sys.stderr)


def print_tables(connection: Any, only: str | None = None) -> None:
    """Print the tables and their columns."""
    for table in tables_of(connection):
        if only in (None, table):
            columns = connection.execute(
                "select column_name from information_schema.columns where table_name = ? order by ordinal_position",
                [table],
            ).fetchall()
            print(f"{table}: {', '.join(name for (name,) in columns)}")
