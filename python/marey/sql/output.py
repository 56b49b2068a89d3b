"""Writes the rows of a query as a table, CSV, JSON, Markdown or Parquet, batch by batch."""

from __future__ import annotations

import contextlib
import sys

from marey import _marey
from marey._marey import Error
from marey.sql.connection import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO, Any

_SUFFIXES = {".csv": "csv", ".json": "json", ".md": "markdown", ".parquet": "parquet", ".txt": "table"}
_WIDEST = 80  # of a column of a table


class _Counted:
    """The batches of a reader, with the number of rows so far."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self.schema = reader.schema
        self.rows = 0

    def __iter__(self) -> Iterator[Any]:
        for batch in self._reader:
            self.rows += batch.num_rows
            yield batch


def write_rows(reader: Any, format: str = "", path: str = "") -> int:
    """Write a pyarrow.RecordBatchReader to a file, or to standard output, and return the number of rows.

    A file is complete or does not exist.
    """
    import os

    name = format or _SUFFIXES.get(os.path.splitext(path)[1].lower(), "table")
    if name != "table":
        reader = _with_distinct_names(reader)
    counted = _Counted(reader)
    if not path or path == "-":
        if name == "parquet" and sys.stdout.isatty():
            raise Error("standard output is a terminal: name a file for Parquet with -o")
        _WRITERS[name](counted, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return counted.rows
    with _replacing(path) as file:
        _WRITERS[name](counted, file)
    return counted.rows


def _with_distinct_names(reader: Any) -> Any:
    """Number columns of the same name, as a join may give them: id, id_2."""
    pa = require("pyarrow")
    names: list[str] = []
    for name in reader.schema.names:
        number, distinct = 2, name
        while distinct in names:
            number, distinct = number + 1, f"{name}_{number}"
        names.append(distinct)
    if names == reader.schema.names:
        return reader
    schema = pa.schema([field.with_name(name) for field, name in zip(reader.schema, names)])
    return pa.RecordBatchReader.from_batches(schema, (batch.rename_columns(names) for batch in reader))


@contextlib.contextmanager
def _replacing(path: str) -> Iterator[IO[bytes]]:
    import os

    target = _marey.output_target(path)
    try:
        if not target:  # a pipe or a device, or a file that is already open
            with open(path, "ab") as file:
                yield file
            return
        aside = f"{target}.{os.getpid()}.part"
        file = open(aside, "xb")
        try:
            with file:
                yield file
            os.replace(aside, target)
        except BaseException:
            os.unlink(aside)
            raise
    except OSError as error:
        raise Error(f"cannot write {path}: {error.strerror or error}") from None


def cell(value: Any) -> str:
    """Return a value as people read it, without characters that a terminal would act on."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return "".join(character if character.isprintable() else f"\\x{ord(character):02x}" for character in text)


def _is_number(type: Any) -> bool:
    types = require("pyarrow").types
    return bool(types.is_integer(type) or types.is_floating(type) or types.is_decimal(type))


def _write_table(reader: Any, out: IO[bytes]) -> None:
    """Columns as wide as the first batch needs; later batches keep these widths."""
    names = reader.schema.names
    right = [_is_number(type) for type in reader.schema.types]
    widths: list[int] = []
    rows = 0

    def line(cells: list[str]) -> bytes:
        padded = [
            text.rjust(width) if at_right else text.ljust(width) for text, width, at_right in zip(cells, widths, right)
        ]
        return ("  ".join(padded).rstrip() + "\n").encode("utf-8", "replace")

    def begin(batch: list[list[str]]) -> None:
        widths.extend(
            min(max([len(name)] + [len(row[index]) for row in batch]), _WIDEST) for index, name in enumerate(names)
        )
        out.write(line(names))
        out.write(("  ".join("-" * width for width in widths) + "\n").encode())

    for batch in reader:
        cells = [[_cut(cell(value)) for value in row] for row in _rows(batch)]
        if not widths:
            begin(cells)
        rows += len(cells)
        out.writelines(line(row) for row in cells)
    if not widths:
        begin([])
    out.write(f"({rows} row{'' if rows == 1 else 's'})\n".encode())


def table_text(table: Any) -> str:
    """Return a pyarrow.Table as people read it."""
    import io

    text = io.BytesIO()
    _write_table(table.to_reader(), text)
    return text.getvalue().decode()


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."


def _rows(batch: Any) -> Iterator[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in batch.columns]
    return zip(*columns) if columns else iter([()] * batch.num_rows)


def _write_markdown(reader: Any, out: IO[bytes]) -> None:
    def line(cells: list[str]) -> bytes:
        return ("| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |\n").encode("utf-8", "replace")

    out.write(line(reader.schema.names))
    out.write(line(["---:" if _is_number(type) else ":---" for type in reader.schema.types]))
    for batch in reader:
        out.writelines(line([cell(value) for value in row]) for row in _rows(batch))


def _write_json(reader: Any, out: IO[bytes]) -> None:
    """A JSON array with one object for each row; numbers that JSON lacks (NaN, infinity) are null."""
    import json
    import math

    def plain(value: Any) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            return None
        if isinstance(value, list | tuple):
            return [plain(item) for item in value]
        if isinstance(value, dict):
            return {str(key): plain(item) for key, item in value.items()}
        return value if isinstance(value, str | int | float | bool | None) else str(value)

    names = reader.schema.names
    separator = b"[\n"
    for batch in reader:
        for row in _rows(batch):
            out.write(
                separator + json.dumps(dict(zip(names, map(plain, row))), ensure_ascii=False).encode("utf-8", "replace")
            )
            separator = b",\n"
    out.write(b"[]\n" if separator == b"[\n" else b"\n]\n")


def _write_csv(reader: Any, out: IO[bytes]) -> None:
    """As `marey export` writes it: a text that a spreadsheet would run as a formula has an apostrophe in front."""
    csv = require("pyarrow.csv")
    pa = require("pyarrow")
    pc = require("pyarrow.compute")

    def protected(column: Any) -> Any:
        type = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_nested(type):
            column, type = pa.array([cell(value) for value in column.to_pylist()], pa.large_utf8()), pa.large_utf8()
        if not (pa.types.is_string(type) or pa.types.is_large_string(type)):
            return column
        return pc.replace_substring_regex(column.cast(type), r"^('*[=+\-@\t\r])", r"'\1")

    writer = None
    for batch in reader:
        columns = [protected(column) for column in batch.columns]
        table = pa.table(columns, names=reader.schema.names)
        if writer is None:
            writer = csv.CSVWriter(out, table.schema, write_options=csv.WriteOptions(quoting_style="needed"))
        writer.write_table(table)
    if writer is None:
        out.write((",".join(reader.schema.names) + "\n").encode())
    else:
        writer.close()


def _write_parquet(reader: Any, out: IO[bytes]) -> None:
    parquet = require("pyarrow.parquet")
    with parquet.ParquetWriter(out, reader.schema, compression="zstd") as writer:
        for batch in reader:
            writer.write_batch(batch)


_WRITERS: dict[str, Callable[[Any, IO[bytes]], None]] = {
    "table": _write_table,
    "csv": _write_csv,
    "json": _write_json,
    "markdown": _write_markdown,
    "parquet": _write_parquet,
}
