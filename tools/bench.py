#!/usr/bin/env python3
"""bench.py: runs the benchmark programs of a build folder and collects their figures in a table and a file.

A benchmark program prints one JSON object per line on stdout (all other output goes to stderr):

    {"name": "range_enabled", "value": 13.6, "unit": "ns", "against": "floor", "against_value": 13.4,
     "ratio": 1.015, "target": "<= 1.1"}

Python programs (benchmarks/*.py) run in the interpreter for which the build folder's package was built, with that
package; MAREY_BUILD_DIR is the path of the folder. They are skipped if the build has no Python package.

`target` is "<= NUMBER" or ">= NUMBER". With a unit ("<= 0.8 ns") it applies to `value`, whose unit may be another one
of the same kind (us, ms); without one it applies to `ratio`, or to `value` if there is no ratio. A missed target is
shown but is not an error, because machines are noisy.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

FIELDS = ("name", "value", "unit", "against", "against_value", "ratio", "target")
SCRIPTS = Path(__file__).resolve().parent.parent / "benchmarks"
TARGET = re.compile(r"\s*(<=|>=|<|>)?\s*([0-9.]+(?:e[+-]?\d+)?)\s*(\S.*)?", re.IGNORECASE)
# Units of time and of size, in the smallest unit of their kind.
UNITS = {"ns": ("time", 1), "us": ("time", 1e3), "ms": ("time", 1e6), "s": ("time", 1e9)} | {
    unit: ("size", scale)
    for unit, scale in {"bytes": 1, "kB": 1e3, "KiB": 2**10, "MB": 1e6, "MiB": 2**20, "GB": 1e9, "GiB": 2**30}.items()
}


def converted(value: float, unit: str, wanted: str) -> float | None:
    """A value in another unit; None if that is of another kind."""
    if unit == wanted:
        return value
    (kind, scale), (wanted_kind, wanted_scale) = UNITS.get(unit, ("", 1)), UNITS.get(wanted, (None, 1))
    return value * scale / wanted_scale if kind == wanted_kind else None


def met(figure: dict) -> bool | None:
    """Whether the figure meets its target; None if it has no target, or one that cannot be compared with it."""
    target = figure.get("target")
    if target is None or target == "":
        return None
    match = TARGET.fullmatch(str(target))
    if not match:
        return None
    sense, bound, unit = match.group(1) or "<=", float(match.group(2)), match.group(3)
    measured = figure.get("value") if unit or figure.get("ratio") is None else figure["ratio"]
    if measured is not None and unit:
        measured = converted(measured, figure.get("unit", unit), unit)
    if measured is None:
        return None
    return {"<=": measured <= bound, "<": measured < bound, ">=": measured >= bound, ">": measured > bound}[sense]


def number(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, int | float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)


def table(figures: list[dict]) -> str:
    head = ("figure", "value", "unit", "baseline", "baseline value", "ratio", "target", "")
    rows = [head]
    for figure in figures:
        verdict = {None: "", True: "ok", False: "MISSED"}[met(figure)]
        rows.append(tuple(number(figure.get(field)) for field in FIELDS) + (verdict,))
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    left = {0, 2, 3, 6, 7}
    lines = [
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def python_of(folder: Path) -> str | None:
    """The interpreter for which the folder's Python package was built, or None if it has no package."""
    cache = folder / "CMakeCache.txt"
    text = cache.read_text(encoding="utf-8") if cache.exists() else ""
    if not re.search(r"^MAREY_BUILD_PYTHON:BOOL=ON$", text, re.MULTILINE):
        return None
    match = re.search(r"^Python_EXECUTABLE:\w+=(.+)$", text, re.MULTILINE)
    return match.group(1) if match else None


def programs(folder: Path, only: str | None) -> list[Path]:
    """Every bench_* and benchmarks/python_*.py; or only the program called ONLY, or those with a figure called ONLY."""
    if only == "torch":
        return sorted((SCRIPTS / "torch").glob("*.py"))
    if only == "real":
        return [SCRIPTS / "real_programs.py"]
    if only == "fleet":
        return [SCRIPTS / "fleet.py"]
    found = sorted(path for path in folder.glob("bench_*") if path.is_file() and os.access(path, os.X_OK))
    if python_of(folder):
        found += sorted(SCRIPTS.glob("python_*.py"))
    if only is None:
        return found
    return [path for path in found if path.stem.removeprefix("bench_") == only] or [
        path for path in found if only.encode() in path.read_bytes()
    ]


def run(program: Path, folder: Path) -> tuple[list[dict], int]:
    figures = []
    command, environment = [str(program)], dict(os.environ)
    if program.suffix == ".py":
        command.insert(0, os.environ.get("MAREY_BENCH_PYTHON") or python_of(folder) or sys.executable)
        environment |= {"PYTHONPATH": str(folder.resolve() / "python"), "MAREY_BUILD_DIR": str(folder.resolve())}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for line in process.stdout:
            try:
                figure = json.loads(line)
            except ValueError:
                figure = None
            if isinstance(figure, dict) and "name" in figure:
                figures.append({**dict.fromkeys(FIELDS), **figure})
                print(f"  {figure['name']}: {number(figure.get('value'))} {figure.get('unit') or ''}", file=sys.stderr)
            elif line.strip():
                print("  " + line.rstrip(), file=sys.stderr)
    return figures, process.returncode


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the benchmarks of a build folder.")
    parser.add_argument("folder", type=Path, help="build folder that contains the programs bench_*")
    parser.add_argument("-o", "--output", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--only", metavar="NAME", help="run one program (bench_NAME) or one figure")
    parser.add_argument("--strict", action="store_true", help="fail when a target is missed")
    options = parser.parse_args()

    chosen = programs(options.folder, options.only)
    if not chosen:
        print(f"bench: no benchmark {options.only or 'bench_*'} in {options.folder}", file=sys.stderr)
        return 1
    figures, broken = [], []
    for program in chosen:
        print(f"{program.name}", file=sys.stderr)
        some, status = run(program, options.folder)
        figures += some
        if status != 0:
            broken.append(f"{program.name} exited with status {status}")
    if options.only and any(figure["name"] == options.only for figure in figures):
        figures = [figure for figure in figures if figure["name"] == options.only]

    print(f"\n{platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}\n")
    print(table(figures))
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps({"figures": figures}, indent=1) + "\n")
        print(f"\nfigures in {options.output}")
    for line in broken:
        print("bench: " + line, file=sys.stderr)
    missed = [figure["name"] for figure in figures if met(figure) is False]
    if missed:
        print(f"missed: {', '.join(missed)}")
    return 1 if broken or (options.strict and missed) else 0


if __name__ == "__main__":
    sys.exit(main())
