#!/usr/bin/env python3
"""check_layers.py: enforces who may include whom, the purpose line of each file, and the words file names may hold.

The rules are the tables below; they repeat the table in CONTRIBUTING.md. To give a room a new right, change the
table in the same commit as the include, and say why in the commit message.
"""

from __future__ import annotations

import posixpath
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from source_files import ROOT, repository_files

# ------------------------------------------------------------------------------------------------ the rules

# room -> the rooms whose headers it may include. A room may always include itself; std and the OS are free to all.
# A name ending in .h is that one header, not its room. `detail` is what inlining forces out of the public headers:
# visible to the user's compiler, but to no room that has no business with raw records.
PUBLIC, DETAIL = "include/kymo", "include/kymo/detail"
ROOMS = {
    PUBLIC:               [DETAIL],
    DETAIL:               ["include/kymo/scope.h"],
    "src/base":           ["include/kymo/error.h"],
    "src/record":         [PUBLIC, DETAIL, "src/base"],
    "src/sources/python": [PUBLIC, DETAIL, "src/record", "src/base"],
    "src/sources/memory": [PUBLIC, DETAIL, "src/record", "src/base"],
    "src/sources/cuda":   [PUBLIC, DETAIL, "src/record", "src/base"],
    "src/emitters":       [PUBLIC, DETAIL, "src/record", "src/base"],
    "src/collect":        [PUBLIC, DETAIL, "src/record", "src/trace", "src/base"],
    "src/trace":          ["include/kymo/trace.h", "include/kymo/scope.h", "include/kymo/value.h", "include/kymo/error.h", DETAIL, "src/base"],
    "src/analyze":        [PUBLIC, "src/trace", "src/base"],
    "src/export":         [PUBLIC, "src/trace", "src/analyze", "src/base"],
    "src/import":         [PUBLIC, "src/trace", "src/analyze", "src/base"],
    "src/query":          [PUBLIC, "src/trace", "src/base"],
    "src/cli":            [PUBLIC, "src/query"],
    "src/bindings":       [PUBLIC, DETAIL, "src/sources/python", "src/emitters"],
    "tests":              [PUBLIC, DETAIL],
    "tests/consumer":     ["include/kymo/kymo.h"],
    "benchmarks":         [PUBLIC, DETAIL],
    "examples":           [PUBLIC],
}

# External headers that a file may include beyond what its room may, by what its name ends in.
KINDS = {
    "_test.cpp":      ["gtest/", "gmock/"],
    "_fixture.cpp":   ["gtest/", "gmock/"],
    "_fixture.h":     ["gtest/", "gmock/"],
    "_fuzzer.cpp":    [],
    "_benchmark.cpp": [],
}

# External headers that only some rooms may see, by how the include begins.
EXTERNAL = {
    "Python.h":   ["src/sources/python", "src/bindings", "benchmarks"],
    "nanobind/":  ["src/bindings"],
    "cupti":      ["src/sources/cuda"],
    "cuda":       ["src/sources/cuda"],
    "nvtx3/":     ["src/sources/cuda", "src/emitters"],
    "ittnotify":  ["src/emitters"],
    "fmt/":       ["src/cli"],
    "CLI/":       ["src/cli"],
    "sqlite3.h":  ["src/query", "src/import"],
    "protozero/": ["src/export", "src/import"],
    "zstd":       ["src/base", "src/trace"],
    "xxhash":     ["src/base", "src/trace"],
    "zlib.h":     ["src/base", "src/export", "src/import"],
    "gtest/":     ["tests"],
    "gmock/":     ["tests"],
    "benchmark/": [],
}

# Words that say nothing about what is in a file.
VAGUE_WORDS = {"util", "utils", "common", "misc", "helper", "helpers", "manager", "legacy", "v2"}

# ------------------------------------------------------------------------------------------------ the check

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
CODE = (".h", ".cpp", ".c")


@dataclass(frozen=True)
class Finding:
    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def room_of(path: str) -> str | None:
    """The room with the longest name that path lies in, e.g. include/kymo/detail before include/kymo."""
    rooms = [room for room in ROOMS if path.startswith(room + "/")]
    return max(rooms, key=len, default=None)


def resolve(path: str, include: str, files: set[str]) -> str | None:
    """The file of the repository that the include means, or None when it is an external header."""
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), include))
    for candidate in (beside, "include/" + include, "src/" + include, include):
        if candidate in files:
            return candidate
    return None


def looks_like_ours(include: str) -> bool:
    """Whether an include that was not found can only have meant a file of ours."""
    first = include.split("/")[0]
    return first == "kymo" or ("/" in include and any(room.startswith("src/" + first) for room in ROOMS))


def forbidden(path: str, include: str, files: set[str]) -> str | None:
    """Why path may not include this, or None."""
    room = room_of(path)
    if room is None:
        return None
    target = resolve(path, include, files)
    if target is None:
        if looks_like_ours(include):
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


def check_name(path: str) -> list[Finding]:
    findings = []
    for part in path.split("/"):
        vague = VAGUE_WORDS.intersection(re.split(r"[_.\-]", part.lower()))
        if vague:
            findings.append(Finding(path, 1, f"'{sorted(vague)[0]}' in a name says nothing; name the thing"))
    if path.startswith(("src/", "include/")) and path.endswith(CODE):
        if room_of(path) is None:
            findings.append(Finding(path, 1, "lies in no room; the table in tools/check_layers.py lists them"))
        if not re.fullmatch(r"[a-z0-9_]+\.(h|cpp|c)", posixpath.basename(path)):
            findings.append(Finding(path, 1, "file names are snake_case"))
    return findings


def check(root: Path) -> tuple[int, list[Finding]]:
    """The number of source files looked at, and what is wrong with them."""
    files = repository_files(root)
    known = set(files)
    findings: list[Finding] = []
    count = 0
    for path in files:
        findings += check_name(path)
        if path.endswith(CODE) and room_of(path):
            count += 1
            text = (root / path).read_text(encoding="utf-8")
            findings += check_purpose(path, text) + check_includes(path, text, known)
    return count, findings


def main() -> int:
    count, findings = check(ROOT)
    for finding in findings:
        print(finding)
    print(f"check_layers: {count} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
