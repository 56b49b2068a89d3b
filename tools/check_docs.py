#!/usr/bin/env python3
"""check_docs.py: checks that the paths and link targets in documents exist."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from source_files import ROOT, repository_files

# `src/record/clocks/clock.h` and the like: a path below one of these folders, with no placeholder in it. A * is a glob.
FOLDERS = ("include", "src", "python", "tests", "benchmarks", "examples", "docs", "tools", "cmake", ".ci")
CODE_SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def blank(match: re.Match[str]) -> str:
    return "\n" * match.group(0).count("\n")


def paths_named(text: str) -> list[tuple[int, str]]:
    """(line, path) for the paths in code spans."""
    found = []
    for match in CODE_SPAN.finditer(text):
        for word in match.group(1).split():
            word = word.rstrip(",.:;")
            if word.split("/")[0] in FOLDERS and "/" in word and re.fullmatch(r"[\w./*-]+", word):
                found.append((text.count("\n", 0, match.start()) + 1, word))
    return found


def exists(word: str) -> bool:
    return any(ROOT.glob(word.rstrip("/"))) if "*" in word else (ROOT / word).exists()


def main() -> int:
    documents = [path for path in repository_files(ROOT) if path.endswith(".md")]
    findings = []
    for document in documents:
        text = FENCE.sub(blank, (ROOT / document).read_text(encoding="utf-8"))
        for line, word in paths_named(text):
            if not exists(word):
                findings.append(f"{document}:{line}: {word} does not exist")
        for match in LINK.finditer(text):
            target = match.group(1)
            if "://" not in target and not target.startswith("mailto:"):
                if not (ROOT / Path(document).parent / target).exists():
                    line = text.count("\n", 0, match.start()) + 1
                    findings.append(f"{document}:{line}: link to {target}, which does not exist")
    print("\n".join(findings + [f"check_docs: {len(documents)} documents, {len(findings)} findings"]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
