"""``marey ask``: answers a question about a trace or a lake, and prints the rows."""

from __future__ import annotations

import os
import sys

from marey._marey import Error
from marey.sql import output
from marey.sql.question import add_buckets, names, question, translated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from marey.sql.database import Database


def _given(words: Iterable[str]) -> dict[str, str]:
    parameters = {}
    for word in words:
        name, separator, value = word.partition("=")
        if not separator:
            raise Error(f"invalid parameter '{word}': expected NAME=VALUE")
        parameters[name] = value
    return parameters


def _print_list() -> None:
    for name in names():
        found = question(name)
        print(f"{name:<15} {found.title}")
        for parameter, meaning in found.meanings.items():
            print(f"{'':<15}   {parameter} = {found.defaults[parameter]}: {meaning}")


def answer(options: Any, open_database: Callable[[Any, str], Database]) -> None:
    """Run ``marey ask``."""
    if options.list:
        _print_list()
        return
    sql = question(options.question).text(_given(options.parameter))
    if options.print_sql:
        sys.stdout.write(translated(sql, options.print_sql))
        return
    if options.engine == "spark":
        from marey.sql import engines
        from marey.sql.lake import Lake

        if not os.path.isdir(options.path):
            raise Error("--engine spark reads lakes: marey export CAPTURES --to parquet -o LAKE")
        rows = engines.run_on_spark(Lake(options.path, options.skip_damaged), sql, options.remote)
        output.write_rows(rows.to_reader(), options.format, options.output)
        return
    database = open_database(options, sql)
    add_buckets(database.connection)
    with database.stream(sql, options.timeout) as reader:
        output.write_rows(reader, options.format, options.output)
