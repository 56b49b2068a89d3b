"""The library's results as tables: docs/reference/results.md lists them."""

from __future__ import annotations

import functools

from marey import _marey
from marey.sql.connection import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


def tables(trace: Any) -> Iterator[tuple[str, Any, Callable[[list[str]], Any]]]:
    """Return the name, the schema, and a function that makes columns, of every table. Each runs when asked."""
    known = set(_marey.table_names())
    for result in _marey.result_names():
        found = functools.cache(functools.partial(_made, trace, result))
        for name, schema in _schemas(result).items():
            if name and schema and name not in known:  # problems are a table of the trace, too
                yield name, schema, functools.partial(_columns, found, name)


@functools.cache
def _schemas(result: str) -> dict[str, Any]:
    return {name: table.schema for name, table in _made(_marey.Trace(), result).items()}


def _made(trace: Any, result: str) -> dict[str, Any]:
    """Return the tables of a result by name."""
    pa = require("pyarrow")
    return {table.name: pa.Table.from_batches([pa.record_batch(table)]) for table in _marey.make_result(trace, result)}


def _columns(found: Callable[[], dict[str, Any]], name: str, columns: list[str]) -> Any:
    return found()[name].select(columns)
