#!/usr/bin/env python3
"""check_layers.py: enforces include and import rules, purpose lines, file names, the use of getenv, and checked locks.

The rules are the tables below; the table in CONTRIBUTING.md repeats them. To allow a room a new include, change both
tables in the same commit as the include, and explain why in the commit message.
"""

from __future__ import annotations

import ast
import posixpath
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from source_files import ROOT, repository_files

# ------------------------------------------------------------------------------------------------ the rules

# room -> the rooms whose headers it may include. Every room may include itself, the standard library and OS headers.
# A name ending in .h is that one header, not its room. `detail` holds code that must be inlined: the user's compiler
# sees it, but only rooms that handle raw records may include it. src/sources/memory does not exist yet.
PUBLIC, DETAIL = "include/marey", "include/marey/detail"
LOCKS = "include/marey/detail/thread_safety.h"
MODEL = ["include/marey/trace.h", "include/marey/scope.h", "include/marey/value.h", "include/marey/error.h"]
# fmt: off
ROOMS = {
    PUBLIC:               [DETAIL],
    "include/marey/python": [PUBLIC],
    DETAIL:               ["include/marey/scope.h", "include/marey/traceback.h", "include/marey/value.h"],
    "src/base":           ["include/marey/error.h", "include/marey/progress.h", LOCKS],
    "src/json":           ["include/marey/error.h", "src/base"],
    "src/native":         ["include/marey/error.h", LOCKS, "src/base"],
    "src/outside":        [PUBLIC, LOCKS, "src/native", "src/base"],
    "src/record":         [PUBLIC, DETAIL, "src/native", "src/base"],
    "src/sources/python": [PUBLIC, DETAIL, "src/record", "src/base"],
    "src/sources/nvtx":   [PUBLIC, DETAIL, "src/record", "src/base"],
    "src/sources/sampling": [PUBLIC, DETAIL, "src/record", "src/native", "src/base"],
    "src/sources/memory": [PUBLIC, DETAIL, "src/record", "src/base"],
    "src/sources/cuda":   [PUBLIC, DETAIL, "src/record", "src/base", "src/trace/device_names.h"],
    "src/sources/mpi":    [PUBLIC, LOCKS],
    "src/sources/torch":  [PUBLIC, DETAIL, "src/record", "src/base", "src/sources/torch/observer"],
    # Compiled on the user's machine, where no other Marey headers are installed.
    "src/sources/torch/observer": [PUBLIC, DETAIL],
    "src/emitters":       [PUBLIC, DETAIL, "src/record", "src/json", "src/base"],
    "src/collect":        [PUBLIC, DETAIL, "src/record", "src/trace", "src/json", "src/native", "src/base"],
    "src/trace":          [*MODEL, "include/marey/assemble.h", "include/marey/merge.h", "include/marey/process_end.h",
                           DETAIL, "src/json", "src/native", "src/base"],
    "src/results":        [PUBLIC, "src/trace", "src/json", "src/base"],
    "src/analyze":        [PUBLIC, LOCKS, "src/results", "src/trace", "src/json", "src/native", "src/base"],
    "src/export":         [PUBLIC, "src/trace", "src/analyze", "src/results", "src/json", "src/base"],
    "src/formats":        [PUBLIC, "src/trace", "src/analyze", "src/results", "src/json", "src/base"],
    "src/view":           [PUBLIC, "src/trace", "src/json", "src/base"],
    "src/serve":          [PUBLIC, LOCKS, "src/json", "src/base", "src/analyze/trace_fixture.h"],  # for tests
    "src/cli":            [PUBLIC, LOCKS, "src/base/environment.h", "src/base/descriptor.h", "src/base/process_stat.h",
                           "src/base/small_file.h", "src/analyze/trace_fixture.h"],  # for tests
    "src/bindings":       [PUBLIC, DETAIL, "src/sources/python", "src/sources/torch", "src/sources/torch/observer",
                           "src/emitters"],
    "tests":              [PUBLIC, DETAIL],
    "tests/python":       [PUBLIC, "include/marey/python"],
    "tests/consumer":     ["include/marey/marey.h", "include/marey/session.h"],
    "benchmarks":         [PUBLIC, DETAIL],
    "examples":           [PUBLIC],
}

# External headers that a file may include in addition to those of its room, by the end of its name.
KINDS = {
    "_test.cpp":      ["gtest/", "gmock/"],
    "_fixture.cpp":   ["gtest/", "gmock/"],
    "_fixture.h":     ["gtest/", "gmock/"],
    "_fuzzer.cpp":    [],
    "_benchmark.cpp": [],
}

# External headers that only some rooms may include, by the beginning of the include.
EXTERNAL = {
    "Python.h":   ["src/sources/python", "src/bindings", "tests/python", "benchmarks"],
    "nanobind/":  ["src/bindings", "tests/python", "include/marey/python"],
    "pybind11/":  ["tests/python", "include/marey/python"],
    "cupti":      ["src/sources/cuda"],
    "cuda":       ["src/sources/cuda"],
    "ATen/":      ["src/sources/torch/observer", "benchmarks"],
    "c10/":       ["src/sources/torch/observer", "benchmarks"],
    "torch/":     ["src/sources/torch/observer", "benchmarks"],
    "mpi.h":      ["src/sources/mpi", "tests"],
    "nvtx3/":     ["src/sources/cuda", "src/emitters", "tests", "benchmarks"],
    "ittnotify":  ["src/emitters"],
    "fmt/":       ["src/cli"],
    "CLI/":       ["src/cli"],
    "sqlite3.h":  ["src/formats"],
    "protozero/": ["src/formats"],
    "zstd":       ["src/base", "src/trace"],
    "xxhash":     ["src/base", "src/trace"],
    "zlib.h":     ["src/base", "src/json", "src/formats", "src/serve"],
    "elfutils/":  ["src/native"],
    "gelf.h":     ["src/native"],
    "gtest/":     ["tests"],
    "gmock/":     ["tests"],
    "benchmark/": [],
}
# fmt: on

# Modules that Python files may import in addition to the standard library and modules in the same folder. Optional
# dependencies are imported only inside the functions that use them. (A test checks that importing marey is cheap.)
PYTHON_ROOMS = {
    "python":       {"always": {"marey"}, "in functions": {"numpy", "pandas", "pyarrow", "IPython", "django",
                                                          "asgiref"}},
    "python/marey/sql": {"always": {"marey"},
                         "in functions": {"duckdb", "pyarrow", "polars", "pyspark", "sqlglot", "ibis", "mcp"}},
    "python/marey/torch": {"always": {"marey", "torch"}, "in functions": set()},
    "python/marey_pytest": {"always": {"marey", "marey_pytest", "pytest"}, "in functions": set()},
    "tests/fleet":  {"always": {"marey", "pytest", "pyspark", "ibis", "make_lake"}},
    "tests/torch":  {"always": {"marey", "torch", "pytest", "hypothesis", "compare", "frameworks"},
                     "in functions": {"pytorch_lightning", "accelerate", "transformers"}},
    "tests/python": {"always": {"marey", "pytest", "hypothesis", "numpy", "pandas", "pyarrow", "duckdb", "google",
                                "mcp", "polars", "opentelemetry", "make_lake", "readme_commands", "with_nanobind",
                                "with_pybind11", "traces_nanobind", "traces_pybind11"}},
}  # fmt: skip

# Packages in python/marey -> the packages that they may import, in functions too. All may import themselves and the
# private modules in python/marey (BASE), which import only each other. Modules not listed here are the public ones,
# which may import every package. No file may be part of an import cycle.
PACKAGE, BASE = "python/marey", "python/marey/_"
PACKAGE_LAYERS = {
    BASE: [],
    "python/marey/context":   [],
    "python/marey/launch":    [],
    "python/marey/sql":       [],
    "python/marey/results":   ["python/marey/sql"],
    "python/marey/compat":    ["python/marey/results"],
    "python/marey/recording": ["python/marey/context", "python/marey/results", "python/marey/compat"],
}  # fmt: skip
FRAMEWORKS = ["python/marey/torch"]  # imported only by themselves: programs that do not use PyTorch never load them

# Words that do not describe the contents of a file.
VAGUE_WORDS = {"util", "utils", "common", "misc", "helper", "helpers", "manager", "legacy", "v2"}

# The only file of src/, apart from tests, that may call getenv.
ENVIRONMENT_READER = "src/base/environment.h"

# ------------------------------------------------------------------------------------------------ the check

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
# Locks that the thread safety analysis cannot follow, and the files that wrap them.
UNCHECKED_LOCK = re.compile(
    r"\bstd::(?:(?:shared_|recursive_|timed_)?mutex|lock_guard|unique_lock|scoped_lock|shared_lock)\b"
)
LOCK_WRAPPERS = (LOCKS, "src/base/fork_mutex.h", "src/record/recorder_mutex.h")
GETENV = re.compile(r"(?<!\w)(?:secure_)?getenv\s*\(")
CODE = (".h", ".cpp", ".c")


@dataclass(frozen=True)
class Finding:
    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def room_of(path: str) -> str | None:
    """The innermost room that contains path, e.g. include/marey/detail rather than include/marey."""
    rooms = [room for room in ROOMS if path.startswith(room + "/")]
    return max(rooms, key=len, default=None)


def resolve(path: str, include: str, files: set[str]) -> str | None:
    """The file of the repository that the include refers to, or None for an external header."""
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), include))
    for candidate in (beside, "include/" + include, "src/" + include, include):
        if candidate in files:
            return candidate
    return None


def is_project_include(include: str) -> bool:
    """Whether an include that was not found can only refer to a file of this repository."""
    first = include.split("/")[0]
    return first == "marey" or ("/" in include and any(room.startswith("src/" + first) for room in ROOMS))


def forbidden(path: str, include: str, files: set[str]) -> str | None:
    """Why path may not include this, or None."""
    room = room_of(path)
    if room is None:
        return None
    target = resolve(path, include, files)
    if target is None:
        if is_project_include(include):
            return f"includes {include}, which does not exist"
        extra = [header for kind, headers in KINDS.items() if path.endswith(kind) for header in headers]
        for prefix, rooms in EXTERNAL.items():
            if include.startswith(prefix) and room not in rooms and prefix not in extra:
                return f"{room} may not include {include}" + (f" (only {', '.join(rooms)} may)" if rooms else "")
        return None
    target_room = room_of(target)
    if target_room == room or target_room in ROOMS[room] or target in ROOMS[room]:
        return None
    return f"{room} may not include {target} (it may: {', '.join(ROOMS[room]) or 'nothing but itself'})"


def check_includes(path: str, text: str, files: set[str]) -> list[Finding]:
    findings = []
    for match in INCLUDE.finditer(text):
        reason = forbidden(path, match.group(2), files)
        if reason:
            findings.append(Finding(path, text.count("\n", 0, match.start(1)) + 1, reason))
    return findings


def check_purpose(path: str, text: str) -> list[Finding]:
    name = posixpath.basename(path)
    first = text.split("\n", 1)[0]
    if re.fullmatch(rf"(//|/\*) {re.escape(name)}: \S.*", first):
        return []
    return [Finding(path, 1, f"the first line must give the purpose: // {name}: ...")]


def check_environment(path: str, text: str) -> list[Finding]:
    """Findings about environment variables that are read elsewhere than in ENVIRONMENT_READER."""
    if not path.startswith("src/") or path == ENVIRONMENT_READER or path.endswith(tuple(KINDS)):
        return []
    reason = "use environment_text() (src/base/environment.h), which ignores the variables in set-uid programs"
    return [Finding(path, text.count("\n", 0, match.start()) + 1, reason) for match in GETENV.finditer(text)]


def check_locks(path: str, text: str) -> list[Finding]:
    """Findings about locks of the standard library in product code."""
    if not path.startswith(("src/", "include/")) or path in LOCK_WRAPPERS or path.endswith(tuple(KINDS)):
        return []
    reason = "use Mutex and ScopedLock (marey/detail/thread_safety.h), which make check verifies"
    return [Finding(path, text.count("\n", 0, match.start()) + 1, reason) for match in UNCHECKED_LOCK.finditer(text)]


def imports_of(tree: ast.AST) -> list[tuple[int, str, bool]]:
    """(line, dotted name, whether importing the file runs it) of every absolute import."""
    found = []

    def walk(node: ast.AST, at_import: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                found.extend((child.lineno, alias.name, at_import) for alias in child.names)
            elif isinstance(child, ast.ImportFrom) and child.level == 0 and child.module:
                found.extend((child.lineno, f"{child.module}.{alias.name}", at_import) for alias in child.names)
            is_later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or is_for_types(child)
            walk(child, at_import and not is_later)

    walk(tree, True)
    return found


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def package_imports(tree: ast.AST, files: set[str]) -> list[tuple[int, str]]:
    """(line, file of the package) of every import of a module of the package."""
    found = {}
    for line, name, _ in imports_of(tree):
        parts = ["python", *name.split(".")]
        paths = ("/".join(parts), "/".join(parts[:-1]))
        for path in paths if PACKAGE + "/_marey" not in paths else ():  # that is the extension
            file = next((file for file in (path + ".py", path + "/__init__.py") if file in files), None)
            if file is not None:
                found.setdefault(file, line)
                break
    return [(line, file) for file, line in found.items()]


def layer_of(path: str) -> str | None:
    """The innermost package or layer that contains path; None for a public module."""
    layers = [layer for layer in (*PACKAGE_LAYERS, *FRAMEWORKS) if path.startswith(layer.removesuffix("_") + "/")]
    if layers:
        return max(layers, key=len)
    return BASE if path.startswith(BASE) and not path.startswith(BASE + "_") else None


def check_package(trees: dict[str, ast.AST], files: set[str]) -> list[Finding]:
    """Findings about imports between the modules of the package: against the layers, and in cycles."""
    findings: list[Finding] = []
    graph: dict[str, list[tuple[int, str]]] = {}
    for path, tree in trees.items():
        own = layer_of(path)
        graph[path] = package_imports(tree, files)
        for line, target in graph[path]:
            layer = layer_of(target)
            if own in FRAMEWORKS or layer == own:
                continue
            is_allowed = layer not in FRAMEWORKS if own is None else layer in (BASE, *PACKAGE_LAYERS[own])
            if not is_allowed:
                findings.append(Finding(path, line, f"{own or PACKAGE} may not import {target}"))
    return findings + find_cycles(graph)


def find_cycles(graph: dict[str, list[tuple[int, str]]]) -> list[Finding]:
    """One finding for each import that closes a cycle."""
    findings, done = [], set()
    for root in graph:
        trail = [(root, iter(graph[root]))] if root not in done else []
        while trail:
            path, rest = trail[-1]
            line, target = next(rest, (0, None))
            names = [name for name, _ in trail]
            if target is None:
                done.add(path)
                trail.pop()
            elif target in names:
                cycle = " -> ".join([*names[names.index(target) :], target])
                findings.append(Finding(path, line, f"closes an import cycle: {cycle}"))
            elif target not in done:
                trail.append((target, iter(graph.get(target, ()))))
    return findings


def check_python(path: str, text: str, files: set[str]) -> list[Finding]:
    """Findings about the module's docstring and imports."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        return [Finding(path, error.lineno or 1, f"syntax error: {error.msg}")]
    findings = []
    if not (ast.get_docstring(tree) or "").split("\n")[0].strip():
        findings.append(Finding(path, 1, "must begin with a docstring whose first line gives its purpose"))
    room = max((room for room in PYTHON_ROOMS if path.startswith(room + "/")), key=len)
    always, lazily = PYTHON_ROOMS[room]["always"], PYTHON_ROOMS[room].get("in functions", set())
    for line, dotted, at_import in imports_of(tree):
        name = dotted.split(".")[0]
        beside = posixpath.join(posixpath.dirname(path), name)
        if name in always or beside + ".py" in files or beside + "/__init__.py" in files:
            continue
        if name in sys.stdlib_module_names:
            continue
        if name not in lazily:
            findings.append(Finding(path, line, f"{room} may not import {name}"))
        elif at_import and room.startswith("python"):
            findings.append(Finding(path, line, f"{name} is optional: import it inside the function that uses it"))
    return findings


def check_name(path: str) -> list[Finding]:
    findings = []
    for part in path.split("/"):
        vague = VAGUE_WORDS.intersection(re.split(r"[_.\-]", part.lower()))
        if vague:
            findings.append(
                Finding(path, 1, f"'{sorted(vague)[0]}' does not describe the contents; use a specific name")
            )
    if path.startswith(("src/", "include/")) and path.endswith(CODE):
        if room_of(path) is None:
            findings.append(Finding(path, 1, "not in any room; the rooms are listed in tools/check_layers.py"))
        if not re.fullmatch(r"[a-z0-9_]+\.(h|cpp|c)", posixpath.basename(path)):
            findings.append(Finding(path, 1, "file names must be snake_case"))
    return findings


def check(root: Path) -> tuple[int, list[Finding]]:
    """The number of source files checked, and the findings."""
    files = repository_files(root)
    known = set(files)
    findings: list[Finding] = []
    package: dict[str, ast.AST] = {}
    count = 0
    for path in files:
        findings += check_name(path)
        if path.endswith(CODE) and room_of(path):
            count += 1
            text = (root / path).read_text(encoding="utf-8")
            findings += check_purpose(path, text) + check_includes(path, text, known)
            findings += check_environment(path, text) + check_locks(path, text)
        elif path.endswith(".py") and path.startswith(tuple(room + "/" for room in PYTHON_ROOMS)):
            count += 1
            text = (root / path).read_text(encoding="utf-8")
            faults = check_python(path, text, known)
            findings += faults
            if path.startswith(PACKAGE + "/") and not any("syntax" in f.text for f in faults):
                package[path] = ast.parse(text)
    return count, findings + check_package(package, known)


def main() -> int:
    count, findings = check(ROOT)
    for finding in findings:
        print(finding)
    print(f"check_layers: {count} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
