"""The library's analyses as tables: those behind ``marey report``, ``tree``, ``steps``, ``gpu`` and ``memory``."""

from __future__ import annotations

import functools

from marey import _marey
from marey.sql.connection import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_NS, _COUNT, _TEXT, _FLAG, _REAL = "int64", "int64", "large_utf8", "bool_", "float64"

# table -> column -> its type and the keys that lead to it in a row of the analysis
_COLUMNS: dict[str, dict[str, tuple[str, str]]] = {
    "averages": {
        "name": (_TEXT, "key"),
        "count": (_COUNT, "count"),
        "total_ns": (_NS, "cpu_time_total"),
        "self_ns": (_NS, "self_cpu_time_total"),
        "device_total_ns": (_NS, "device_time_total"),
        "self_device_ns": (_NS, "self_device_time_total"),
        "min_ns": (_NS, "min"),
        "p50_ns": (_NS, "p50"),
        "p90_ns": (_NS, "p90"),
        "p99_ns": (_NS, "p99"),
        "max_ns": (_NS, "max"),
        "threads": (_COUNT, "threads"),
        "unfinished": (_COUNT, "unfinished"),
        "async_count": (_COUNT, "async_count"),
        "cpu_memory_bytes": (_COUNT, "cpu_memory_usage"),
        "self_cpu_memory_bytes": (_COUNT, "self_cpu_memory_usage"),
        "device_memory_bytes": (_COUNT, "device_memory_usage"),
        "self_device_memory_bytes": (_COUNT, "self_device_memory_usage"),
        "flops": (_REAL, "flops"),
        "first_range": (_COUNT, "first"),
    },
    "tree": {
        "node": (_COUNT, "node"),
        "parent": (_COUNT, "parent"),
        "name": (_TEXT, "name"),
        "depth": (_COUNT, "depth"),
        "count": (_COUNT, "count"),
        "total_ns": (_NS, "total_ns"),
        "self_ns": (_NS, "self_ns"),
        "share": (_REAL, "share"),
        "is_async": (_FLAG, "is_async"),
        "is_device": (_FLAG, "is_device"),
    },
    "steps": {
        "number": (_COUNT, "number"),
        "name": (_TEXT, "name"),
        "range": (_COUNT, "range"),
        "thread": (_TEXT, "thread"),
        "thread_id": (_COUNT, "thread_id"),
        "start_ns": (_NS, "start_ns"),
        "duration_ns": (_NS, "duration_ns"),
        "gap_ns": (_NS, "gap_ns"),
        "is_partial": (_FLAG, "is_partial"),
        "is_median": (_FLAG, "is_median"),
    },
    "step_differences": {
        "step": (_COUNT, "step"),
        "name": (_TEXT, "name"),
        "place": (_TEXT, "place"),
        "difference_ns": (_NS, "difference_ns"),
        "slow_count": (_COUNT, "slow.count"),
        "slow_total_ns": (_NS, "slow.total_ns"),
        "slow_self_ns": (_NS, "slow.self_ns"),
        "median_count": (_COUNT, "median.count"),
        "median_total_ns": (_NS, "median.total_ns"),
        "median_self_ns": (_NS, "median.self_ns"),
    },
    "gpu_kernels": {
        "pid": (_COUNT, "pid"),
        "device": (_TEXT, "device"),
        "device_index": (_COUNT, "index"),
        "name": (_TEXT, "name"),
        "count": (_COUNT, "times.count"),
        "total_ns": (_NS, "times.total_ns"),
        "mean_ns": (_REAL, "times.mean_ns"),
        "min_ns": (_NS, "times.min_ns"),
        "median_ns": (_NS, "times.median_ns"),
        "p99_ns": (_NS, "times.p99_ns"),
        "max_ns": (_NS, "times.max_ns"),
        "share": (_REAL, "share"),
        "queued": (_COUNT, "queued"),
        "mean_queue_ns": (_REAL, "mean_queue_ns"),
        "registers_per_thread": (_COUNT, "registers_per_thread"),
        "shared_bytes": (_COUNT, "shared_bytes"),
        "shapes": (_COUNT, "shapes"),
        "occupancy": (_REAL, "occupancy"),
        "small_grid_ns": (_NS, "small_grid_ns"),
        "low_occupancy_ns": (_NS, "low_occupancy_ns"),
    },
    "gpu_gaps": {
        "pid": (_COUNT, "pid"),
        "device": (_TEXT, "device"),
        "device_index": (_COUNT, "index"),
        "start_ns": (_NS, "start_ns"),
        "duration_ns": (_NS, "duration_ns"),
        "place": (_TEXT, "place"),
        "is_starved": (_FLAG, "is_starved"),
        "thread": (_TEXT, "thread"),
        "thread_id": (_COUNT, "thread_id"),
        "before": (_TEXT, "before"),
        "after": (_TEXT, "after"),
        "host_name": (_TEXT, "host_name"),
        "host_ns": (_NS, "host_ns"),
    },
    "holders": {
        "pid": (_COUNT, "pid"),
        "device": (_TEXT, "device"),
        "device_index": (_COUNT, "index"),
        "path": (_TEXT, "path"),
        "name": (_TEXT, "name"),
        "allocations": (_COUNT, "allocations"),
        "allocated_bytes": (_COUNT, "allocated_bytes"),
        "total_allocated_bytes": (_COUNT, "total_allocated_bytes"),
        "freed_bytes": (_COUNT, "freed_bytes"),
        "peak_allocations": (_COUNT, "peak_allocations"),
        "peak_bytes": (_COUNT, "peak_bytes"),
        "kept_allocations": (_COUNT, "kept_allocations"),
        "kept_bytes": (_COUNT, "kept_bytes"),
    },
}
NAMES = tuple(_COLUMNS)
_ALL_GAPS = 1 << 40


def tables(trace: Any) -> Iterator[tuple[str, Any, Callable[[list[str]], Any]]]:
    """Return the name, the schema, and a function that makes columns, of every analysis. Each runs when asked."""
    pa = require("pyarrow")
    steps = functools.cache(functools.partial(_step_report, trace))
    gpu = functools.cache(functools.partial(_gpu_use, trace))
    rows: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "averages": functools.partial(_averages, trace),
        "tree": functools.partial(_tree, trace),
        "steps": lambda: _steps(steps()),
        "step_differences": lambda: _step_differences(steps()),
        "gpu_kernels": lambda: _of_devices(gpu(), "kernels"),
        "gpu_gaps": lambda: [_gap(row) for row in _of_devices(gpu(), "longest_gaps")],
        "holders": functools.partial(_holders, trace),
    }
    for name, columns in _COLUMNS.items():
        schema = pa.schema([(column, getattr(pa, type)()) for column, (type, _) in columns.items()])
        whole = functools.cache(functools.partial(_table, name, rows[name], schema))
        yield name, schema, functools.partial(_select, whole)


def _select(whole: Callable[[], Any], names: list[str]) -> Any:
    return whole().select(names)


def _table(name: str, rows: Callable[[], list[dict[str, Any]]], schema: Any) -> Any:
    pa = require("pyarrow")
    keys = [key.split(".") for _, key in _COLUMNS[name].values()]
    found = rows()
    return pa.table(
        [pa.array([_at(row, key) for row in found], type) for key, type in zip(keys, schema.types)], schema=schema
    )


def _at(row: Any, keys: list[str]) -> Any:
    for key in keys:
        row = row.get(key)
    return row


def _averages(trace: Any) -> list[dict[str, Any]]:
    averages = _marey.key_averages(trace, percentiles=True)
    times = [key for column, (_, key) in _COLUMNS["averages"].items() if column.endswith("_ns")]
    rows = [averages.row(index) for index in range(len(averages))]
    for row in rows:
        row.update((key, round(row[key] * 1000)) for key in times)  # microseconds
    return rows


def _tree(trace: Any) -> list[dict[str, Any]]:
    return [{**row, "node": index} for index, row in enumerate(_loads(trace._call_tree())["nodes"])]


def _step_report(trace: Any) -> Any:
    count = len(_loads(trace._step_report("", 0))["steps"])
    return _loads(trace._step_report("", count))


def _steps(report: Any) -> list[dict[str, Any]]:
    return [{**row, "is_median": index == report["median_step"]} for index, row in enumerate(report["steps"])]


def _step_differences(report: Any) -> list[dict[str, Any]]:
    return [
        {**row, "step": report["steps"][slow["step"]]["number"]}
        for slow in report["slowest"]
        for row in slow["differences"]
    ]


def _gpu_use(trace: Any) -> Any:
    return _loads(trace._gpu_use(None, _ALL_GAPS))


def _of_devices(use: Any, key: str) -> list[dict[str, Any]]:
    return [
        {**row, "pid": device.get("pid"), "device": device["device"], "index": _number(device["index"])}
        for device in use["devices"]
        for row in device[key]
    ]


def _number(index: int) -> int | None:
    return index if index >= 0 else None


def _gap(row: dict[str, Any]) -> dict[str, Any]:
    longest = row["host"][0] if row["host"] else {}
    return {**row, "host_name": longest.get("name"), "host_ns": longest.get("time_ns")}


def _holders(trace: Any) -> list[dict[str, Any]]:
    rows = _of_devices(_loads(trace._memory_use()), "holders")
    return [{**row, "path": ";".join(row["path"]), "name": row["path"][-1] if row["path"] else None} for row in rows]


def _loads(text: str) -> Any:
    import json

    return json.loads(text)
