"""Runs ``marey sql``, ``marey ask``, ``marey export --to parquet`` and ``marey compact LAKE``.

The command has checked the options.
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


def _arguments() -> Any:
    import argparse

    parser = argparse.ArgumentParser("marey", allow_abbrev=False)
    verbs = parser.add_subparsers(dest="verb", required=True)
    sql, ask, export = (verbs.add_parser(name, allow_abbrev=False) for name in ("sql", "ask", "export"))
    for verb in (sql, ask, export):
        verb.add_argument("--from", dest="source", default="")
        verb.add_argument("--session", type=int, default=0)
        verb.add_argument("--output", default="")
    for verb in (sql, ask):
        verb.add_argument("--format", default="")
        verb.add_argument("--timeout", type=float)
        verb.add_argument("--skip-damaged", action="store_true")
    sql.add_argument("--query", default="")
    sql.add_argument("--file", default="")
    sql.add_argument("--tables", action="store_true")
    sql.add_argument("path")
    ask.add_argument("--list", action="store_true")
    ask.add_argument("--parameter", action="append", default=[])
    ask.add_argument("--engine", default="duckdb")
    ask.add_argument("--remote", default="")
    ask.add_argument("--print-sql", default="")
    ask.add_argument("question")
    ask.add_argument("path")
    export.add_argument("--run", default="")
    export.add_argument("paths", nargs="+")
    verbs.add_parser("compact", allow_abbrev=False).add_argument("path")
    return parser.parse_args()


def _database(options: Any, sql: str | None = None, fold_imports: bool = False) -> Database:
    """Open a trace, or the lake in a folder; of a lake only the tables that occur in the query, if one is given.

    With `fold_imports`, each import in a trace is one range, as in ``marey report``.
    """
    if os.path.isdir(options.path):
        from marey.sql.lake import Lake

        return Lake(options.path, skip_damaged=options.skip_damaged).database(sql)
    from marey.sql.database import of_trace

    trace = _marey.load(options.path, options.source, options.session)
    return of_trace(trace._filtered([], True, False) if fold_imports else trace)


def _read_query(options: Any) -> str:
    if not options.file:
        return str(options.query)
    try:
        if options.file == "-":
            return sys.stdin.read()
        with open(options.file, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise Error(f"cannot read {options.file}: {getattr(error, 'strerror', None) or error}") from None


def _sql(options: Any) -> None:
    from marey.sql import output, prompt

    query = _read_query(options)
    database = _database(options, query or None)
    if options.tables:
        prompt.print_tables(database.connection)
    elif not query and not options.file:
        prompt.run_prompt(database, options.format, options.timeout)
    else:
        with database.stream(query, options.timeout) as reader:
            output.write_rows(reader, options.format, options.output)


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


def _ask(options: Any) -> None:
    """Answer a question about a trace or a lake, and print the rows."""
    from marey.sql.question import add_tables, question, translated

    if options.list:
        _print_questions()
        return
    asked = question(options.question)
    sql = asked.text(_given(options.parameter))
    if options.print_sql:
        sys.stdout.write(translated(sql, options.print_sql))
        return
    if options.engine == "spark":
        from marey.sql import engines
        from marey.sql.lake import Lake

        if not os.path.isdir(options.path):
            raise Error("--engine spark reads lakes: marey export CAPTURES --to parquet -o LAKE")
        rows = engines.run_on_spark(Lake(options.path, options.skip_damaged), sql, options.remote)
        _write_answer(asked, rows.to_reader(), options)
        return
    database = _database(options, sql, fold_imports=True)
    add_tables(database.connection)
    with database.stream(sql, options.timeout) as reader:
        _write_answer(asked, reader, options)


def _write_answer(asked: Question, reader: Any, options: Any) -> None:
    """Write the rows, and say why there are none."""
    from marey.sql import output

    rows = output.write_rows(reader, options.format, options.output)
    if rows == 0 and asked.why_empty:
        print(f"marey: ask: no rows: {asked.why_empty}", file=sys.stderr)


def _export(options: Any) -> None:
    from marey.sql.export import export_run

    for line in export_run(options.paths, options.output, options.run, options.source, options.session):
        print(line, file=sys.stderr)


def _compact(options: Any) -> None:
    from marey.sql.export import compact_lake

    for line in compact_lake(options.path):
        print(line)


def main() -> int:
    """Run one verb and return its exit code."""
    import signal

    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # end quietly when the reader closes the pipe
    options = _arguments()
    if getattr(options, "engine", "") != "spark":  # Spark Connect needs it
        sys.meta_path.insert(0, _WithoutPandas)
    try:
        {"sql": _sql, "ask": _ask, "export": _export, "compact": _compact}[options.verb](options)
    except Error as error:
        print(f"marey: {options.verb}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"marey: {options.verb}: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        if type(error).__name__ != "InterruptException":
            raise
        print(f"marey: {options.verb}: interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # nothing is left to do; unloading the engines takes longer than a query
