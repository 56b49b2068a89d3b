"""The ranges of a trace as dicts, with every field and value unchanged, from the trace's tables."""

import csv
import io
import re

from marey import RecordScope

_OTHER_FLAGS = 0x160  # "call" and "part" say it, and those that exports add
_SCOPES = {scope.name.lower(): int(scope) for scope in RecordScope} | {"user": 7, "step": 15}


def table(trace, name):
    """The rows of one table, as texts."""
    csv.field_size_limit(1 << 30)
    return list(csv.DictReader(io.StringIO(trace.tables[name].to_csv(), newline="")))


def _text(cell):
    """A text without the protection from spreadsheets' formulas."""
    return re.sub(r"^'('*[=+\-@\t\r])", r"\1", cell)


class _Values:
    """The values of a trace's ranges."""

    def __init__(self, trace):
        self.items, self.arrays = table(trace, "list_items"), table(trace, "arrays")
        self.extents = [int(row["extent"]) for row in table(trace, "array_extents")]
        self.readers = {
            "none": lambda row: None,
            "bool": lambda row: row["bool_value"] == "true",
            "int": lambda row: int(row["int_value"]),
            "double": lambda row: float(row["double_value"]),
            "string": lambda row: _text(row["string_value"]),
            "list": self.list,
            "array": lambda row: self.array(self.arrays[int(row["array"])]),
        }

    def of(self, row):
        return self.readers[row["kind"]](row)

    def list(self, row):
        first = int(row["first_item"])
        return [self.of(item) for item in self.items[first : first + int(row["item_count"])]]

    def array(self, row):
        first, size = int(row["first_extent"]), int(row["dimensions"])
        strides = self.extents[first + size : first + 2 * size] if row["has_strides"] == "true" else None
        return {"sizes": self.extents[first : first + size], "strides": strides, "device": row["device"]}


def range_rows(trace):
    """Every range of a trace, in row order."""
    threads, tracks, values = table(trace, "threads"), table(trace, "tracks"), _Values(trace)
    rows = []
    for each in table(trace, "ranges"):
        thread = threads[int(each["thread"])]
        row = {
            "name": _text(each["name"]),
            "scope": _SCOPES[each["scope"]],
            "parent": int(each["parent"]) if each["parent"] else None,
            "flags": int(each["flags"]) & ~_OTHER_FLAGS,
            "thread": int(thread["id"]),
            "os_tid": int(thread["os_tid"]),
            "track": _text(tracks[int(each["track"])]["name"]),
            "call": 0,
            "part": 0,
            "inputs": [],
            "keywords": {},
        }
        rows.append(row | {key: int(each[key]) for key in ("start_ns", "duration_ns", "depth")})
    for each in table(trace, "range_details"):
        rows[int(each["range"])] |= {key: int(each[key] or 0) for key in ("call", "part")}
    for each in table(trace, "arguments"):
        if each["role"] == "keyword" and each["range"]:
            rows[int(each["range"])]["keywords"][_text(each["key"])] = values.of(each)
        elif each["role"] == "input" and each["range"]:
            rows[int(each["range"])]["inputs"].append(values.of(each))
    return rows
