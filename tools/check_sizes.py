#!/usr/bin/env python3
"""check_sizes.py: limits file sizes: no file over 600 lines, nine in ten at most 400."""

from __future__ import annotations

import sys

from source_files import ROOT, repository_files

MAX_LINES = 600
P90_LINES = 400
GENERATED = ("tests/data/corpus/", "web/dist/", "web/src/results.ts")
CODE = (".h", ".cpp", ".c", ".py", ".sh", ".ts", ".txt", ".cmake")


def main() -> int:
    sizes = {}
    for path in repository_files(ROOT):
        if path.endswith(CODE) and not path.startswith(GENERATED):
            sizes[path] = (ROOT / path).read_bytes().count(b"\n")
    failed = False
    for path, lines in sorted(sizes.items(), key=lambda item: -item[1]):
        if lines > MAX_LINES:
            print(f"{path}: {lines} lines, over {MAX_LINES}: split it")
            failed = True
    ordered = sorted(sizes.values())
    p90 = ordered[(len(ordered) * 9) // 10 - 1 if len(ordered) >= 10 else -1]
    if p90 > P90_LINES:
        print(f"one file in ten has {p90} lines or more, over {P90_LINES}")
        failed = True
    print(f"check_sizes: {len(ordered)} files, median {ordered[len(ordered) // 2]}, p90 {p90}, largest {ordered[-1]}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
