#!/usr/bin/env python3
"""arrow_check.py BUILD_DIR FILE: pyarrow reads every table of FILE through the Arrow C data interface, validates it,
and finds in it what `marey export --to csv` says. Needs pyarrow; `make arrow` provides it."""

from __future__ import annotations

import csv
import ctypes
import io
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
from pyarrow.cffi import ffi


def read_table(library: ctypes.CDLL, path: str, table: str) -> pa.RecordBatch:
    schema, array = ffi.new("struct ArrowSchema*"), ffi.new("struct ArrowArray*")
    schema_at, array_at = (int(ffi.cast("uintptr_t", each)) for each in (schema, array))
    error = ctypes.create_string_buffer(1000)
    failed = library.export_table(
        path.encode(),
        table.encode(),
        ctypes.c_void_p(schema_at),
        ctypes.c_void_p(array_at),
        error,
        ctypes.c_size_t(len(error)),
    )
    if failed:
        raise SystemExit(f"{path}: {table}: {error.value.decode()}")
    return pa.RecordBatch._import_from_c(array_at, schema_at)  # releases both


def as_text(value: object) -> str:
    """A cell as CSV has it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def is_same(cell: str, value: object) -> bool:
    if isinstance(value, float):
        return cell != "" and (float(cell) == value or value != value)
    return cell == as_text(value)


def check(marey: Path, library: ctypes.CDLL, path: str, table: str) -> None:
    batch = read_table(library, path, table)
    batch.validate(full=True)
    text = subprocess.run([marey, "export", path, "--table", table, "-o", "-"], capture_output=True, check=True).stdout
    rows = list(csv.reader(io.StringIO(text.decode(), newline="")))
    assert rows[0] == batch.schema.names, (table, rows[0], batch.schema.names)
    assert len(rows) - 1 == batch.num_rows, (table, len(rows) - 1, batch.num_rows)
    for index, name in enumerate(batch.schema.names):
        values = batch.column(index).to_pylist()
        for row, value in enumerate(values):
            assert is_same(rows[row + 1][index], value), (table, name, row, rows[row + 1][index], value)
    print(f"{table}: {batch.num_rows} rows, {batch.num_columns} columns, equal")


def main() -> int:
    build, path = Path(sys.argv[1]), sys.argv[2]
    library = ctypes.CDLL(str(build / "tests" / "arrow_plugin.so"))
    names = ctypes.create_string_buffer(1000)
    library.list_tables(names, ctypes.c_size_t(len(names)))
    for table in names.value.decode().split():
        check(build / "marey", library, path, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
