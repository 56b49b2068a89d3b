"""Runs ``marey sql``, ``ask``, ``mcp``, ``export --to parquet`` and ``compact LAKE``.

The command has read and checked the options.
"""

from __future__ import annotations

import os
import sys

from marey import _marey
from marey._marey import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from marey.sql.database import Database
    from marey.sql.question import Question


class _WithoutPandas:
    """Hides pandas, which DuckDB and pyarrow would import: it takes longer to load than a query to run."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("not used by the command", name=name)


class _Options:
    """The options of a verb, which the command has read and checked: VERB OPTION=VALUE..."""

    def __init__(self, words: list[str]) -> None:
        self.verb, *given = words
        self._values: dict[str, list[str]] = {}
        for word in given:
            name, _, value = word.partition("=")
            self._values.setdefault(name, []).append(value)

    def all(self, name: str) -> list[str]:
        """Return the values of an option that may be repeated."""
        return self._values.get(name, [])

    def text(self, name: str) -> str:
        """Return the value of an option, "" if it is not given."""
        return self._values.get(name, [""])[-1]

    @property
    def path(self) -> str:
        return self.text("FILE")

    @property
    def session(self) -> int:
        return int(self.text("session") or 0)

    @property
    def timeout(self) -> float | None:
        return float(self.text("timeout")) if self.text("timeout") else None

    @property
    def format(self) -> str:
        return self.text("format") or next((name for name in ("json", "csv") if self.text(name)), "")

    @property
    def skips_damaged(self) -> bool:
        return bool(self.text("skip-damaged"))


def _database(options: _Options, sql: str | None = None, fold_imports: bool = False) -> Database:
    """Open a trace, or the lake in a folder; of a lake only the tables that occur in the query, if one is given.

    With `fold_imports`, each import in a trace is one range, as in ``marey report``.
    """
    if os.path.isdir(options.path):
        from marey.sql.lake import Lake

        return Lake(options.path, skip_damaged=options.skips_damaged).database(sql)
    from marey.sql.database import of_trace

    trace = _marey.load(options.path, options.text("from"), options.session)
    return of_trace(trace._filtered([], True, False) if fold_imports else trace)


def _read_query(options: _Options) -> str:
    path = options.text("file")
    if not path:
        return options.text("QUERY")
    try:
        if path == "-":
            return sys.stdin.read()
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise Error(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def _sql(options: _Options) -> None:
    from marey.sql import output, prompt

    query = _read_query(options)
    database = _database(options, query or None)
    if options.text("tables"):
        prompt.print_tables(database.connection)
    elif not query and not options.text("file"):
        prompt.run_prompt(database, options.format, options.timeout)
    else:
        with database.stream(query, options.timeout) as reader:
            output.write_rows(reader, options.format, options.text("output"))


def _given(words: Iterable[str]) -> dict[str, str]:
    parameters = {}
    for word in words:
        name, separator, value = word.partition("=")
        if not separator:
            raise Error(f"invalid parameter '{word}': expected NAME=VALUE")
        parameters[name] = value
    return parameters


def _print_questions() -> None:
    from marey.sql.question import names, question

    for name in names():
        found = question(name)
        print(f"{name:<15} {found.title}")
        for parameter, meaning in found.meanings.items():
            print(f"{'':<15}   {parameter} = {found.defaults[parameter]}: {meaning}")


def _ask(options: _Options) -> None:
    """Answer a question about a trace or a lake, and print the rows."""
    from marey.sql.question import add_tables, question, translated

    if options.text("list"):
        _print_questions()
        return
    asked = question(options.text("QUESTION"))
    sql = asked.text(_given(options.all("parameter")))
    if options.text("print-sql"):
        sys.stdout.write(translated(sql, options.text("print-sql")))
        return
    if options.text("engine") == "spark":
        from marey.sql import engines
        from marey.sql.lake import Lake

        if not os.path.isdir(options.path):
            raise Error("--engine spark reads lakes: marey export CAPTURES --to parquet -o LAKE")
        rows = engines.run_on_spark(Lake(options.path, options.skips_damaged), sql, options.text("remote"))
        _write_answer(asked, rows.to_reader(), options)
        return
    database = _database(options, sql, fold_imports=True)
    add_tables(database.connection)
    with database.stream(sql, options.timeout) as reader:
        _write_answer(asked, reader, options)


def _write_answer(asked: Question, reader: Any, options: _Options) -> None:
    """Write the rows, and say why there are none."""
    from marey.sql import output

    rows = output.write_rows(reader, options.format, options.text("output"))
    if rows == 0 and asked.why_empty:
        print(f"marey: ask: no rows: {asked.why_empty}", file=sys.stderr)


def _export(options: _Options) -> None:
    from marey.sql.export import export_run

    paths, lake = options.all("FILE"), options.text("output")
    for line in export_run(paths, lake, options.text("run"), options.text("from"), options.session):
        print(line, file=sys.stderr)


def _mcp(options: _Options) -> None:
    from marey.sql import mcp

    mcp.serve(options.all("FILE"), options.all("source"))


def _compact(options: _Options) -> None:
    from marey.sql.export import compact_lake

    for line in compact_lake(options.path):
        print(line)


def main() -> int:
    """Run one verb and return its exit code."""
    import signal

    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # end quietly when the reader closes the pipe
    options = _Options(sys.argv[1:])
    if options.text("engine") != "spark":  # Spark Connect needs it
        sys.meta_path.insert(0, _WithoutPandas)
    try:
        {"sql": _sql, "ask": _ask, "mcp": _mcp, "export": _export, "compact": _compact}[options.verb](options)
    except Error as error:
        print(f"marey: {options.verb}: {error}", file=sys.stderr)
        return 2
    except BaseException as error:
        if type(error).__name__ not in ("KeyboardInterrupt", "InterruptException"):  # the second is DuckDB's
            raise
        print(f"marey: {options.verb}: interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # nothing is left to do; unloading the engines takes longer than a query
