"""Questions: files of SQL that run unchanged on DuckDB and Spark, and the table of buckets that they may use."""

from __future__ import annotations

import functools
import itertools
import os
import re
from dataclasses import dataclass, field

from marey._marey import Error, known_waits
from marey.sql.connection import quoted, require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_PARAMETER = re.compile(r"^-- parameter (\w+) = (.*?): (.+)$", re.MULTILINE)
# Texts and comments, in which ":name" is not a parameter; and parameters.
_TOKEN = re.compile(r"'(?:[^']|'')*'|--[^\n]*|(?<![:\w]):([a-z_]\w*)")
_INCLUDE = re.compile(r"^-- include (\w+)(,?)$", re.MULTILINE)
_EMPTY = re.compile(r"^-- empty: (.+)$", re.MULTILINE)
BUCKETS, WAITS = "buckets", "waits"  # tables that questions may use besides those of a lake


@dataclass(frozen=True)
class Question:
    """A question: what it answers, its SQL, and the usual values and meanings of its parameters."""

    name: str
    title: str
    sql: str
    defaults: Mapping[str, str] = field(default_factory=dict)
    meanings: Mapping[str, str] = field(default_factory=dict)
    why_empty: str = ""  # why a trace may have no answer

    def text(self, parameters: Mapping[str, Any] | None = None) -> str:
        """Return its SQL with values in place of parameters."""
        given = {name: str(value) for name, value in (parameters or {}).items()}
        for name in given:
            if name not in self.defaults:
                known = ", ".join(self.defaults) or "none"
                raise Error(f"{self.name} has no parameter {name}; known: {known}")
        values = {name: _literal(name, given.get(name, usual), usual) for name, usual in self.defaults.items()}

        def replaced(match: re.Match[str]) -> str:
            return values.get(match[1], match[0]) if match[1] else match[0]

        return _TOKEN.sub(replaced, self.sql)


def _literal(name: str, value: str, usual: str) -> str:
    """Return a value as SQL: a number if the usual value is one, else a text."""
    if not re.fullmatch(r"-?\d+", usual):
        return quoted(value)
    if not re.fullmatch(r"-?\d+", value):
        raise Error(f"invalid value '{value}' of the parameter {name}: expected an integer, such as {usual}")
    return value


def parse(name: str, sql: str) -> Question:
    """Read a question: its first line is "-- name: what it answers.", parameters are "-- parameter x = 1: meaning".

    A line "-- empty: reason" says why there may be no rows. A line "-- include met" stands for the common table
    expression in questions/parts/met.sql.
    """
    sql = _INCLUDE.sub(lambda match: _part(name, match[1]) + match[2], sql)
    first = sql.lstrip().split("\n", 1)[0]
    title = first.removeprefix("--").strip().removeprefix(f"{name}:").strip() if first.startswith("--") else ""
    found = _PARAMETER.findall(sql)
    defaults = {key: usual.strip("'") for key, usual, _ in found}
    why_empty = _EMPTY.search(sql)
    meanings = {key: text for key, _, text in found}
    return Question(name, title, sql, defaults, meanings, why_empty[1] if why_empty is not None else "")


def _part(question: str, name: str) -> str:
    """Return a common table expression that several questions use."""
    from importlib.resources import files

    folder = files("marey.sql").joinpath("questions", "parts")
    if not folder.joinpath(f"{name}.sql").is_file():
        known = ", ".join(sorted(entry.name.removesuffix(".sql") for entry in folder.iterdir()))
        raise Error(f"{question} includes {name}, which is unknown; known: {known}")
    return folder.joinpath(f"{name}.sql").read_text(encoding="utf-8").rstrip()


def names() -> list[str]:
    """Return the names of the questions that come with the package."""
    from importlib.resources import files

    folder = files("marey.sql").joinpath("questions")
    return sorted(entry.name.removesuffix(".sql") for entry in folder.iterdir() if entry.name.endswith(".sql"))


def question(name: str) -> Question:
    """Return a question by its name, or from a file x.sql."""
    from importlib.resources import files

    if name.endswith(".sql") or os.sep in name:
        try:
            with open(name, encoding="utf-8") as file:
                return parse(os.path.splitext(os.path.basename(name))[0], file.read())
        except (OSError, UnicodeDecodeError) as error:
            raise Error(f"cannot read {name}: {getattr(error, 'strerror', None) or error}") from None
    if name not in names():
        import difflib

        near = difflib.get_close_matches(name, names(), n=1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(names())}"
        raise Error(f"unknown question {name}: {hint}")
    return parse(name, files("marey.sql").joinpath("questions", f"{name}.sql").read_text(encoding="utf-8"))


@functools.cache
def bucket_edges() -> list[tuple[int, int, int]]:
    """Return (bucket, low, high) for integers from 0: each doubling has 32 buckets of equal width, or one an integer.

    Quantiles are counted in these: joining by low <= x < high gives the same rows on every engine.
    """
    edges = list(range(64))
    low = 64
    while low < 2**62:
        edges += [low + low // 32 * part for part in range(32)]
        low *= 2
    edges.append(2**62)
    return [(number, low, high) for number, (low, high) in enumerate(itertools.pairwise(edges))]


def bucket_table() -> Any:
    """Return the edges as a pyarrow.Table."""
    pa = require("pyarrow")
    columns = list(zip(*bucket_edges()))
    return pa.table([pa.array(column, pa.int64()) for column in columns], names=["bucket", "low_ns", "high_ns"])


@functools.cache
def wait_patterns() -> list[str]:
    """Return patterns of LIKE for the names of the functions that only wait.

    The names of Python functions have files: "threading.Condition.wait" is "threading.py(320): Condition.wait".
    """
    patterns = []
    for name in known_waits():
        patterns.append(name)
        parts = name.split(".")
        for end in range(1, len(parts)):
            patterns.append(f"{'/'.join(parts[:end])}.py(%): {'.'.join(parts[end:])}")
    return patterns


def add_tables(connection: Any) -> None:
    """Add the tables of buckets and of waits to a DuckDB connection."""
    pa = require("pyarrow")
    connection.register(BUCKETS, bucket_table())
    connection.register(WAITS, pa.table({"pattern": pa.array(wait_patterns(), pa.string())}))


def translated(sql: str, dialect: str) -> str:
    """Return SQL in another dialect, with sqlglot."""
    if dialect in ("duckdb", "spark"):
        return sql  # questions are written in what both have
    sqlglot = require("sqlglot", "sqlglot")
    try:
        return ";\n".join(sqlglot.transpile(sql, read="duckdb", write=dialect, pretty=True)) + "\n"
    except (ValueError, sqlglot.errors.SqlglotError) as error:
        raise Error(f"cannot translate to {dialect}: {str(error).splitlines()[0]}") from None
