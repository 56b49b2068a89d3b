#!/usr/bin/env python3
"""check_parity.py: check the tables in docs/reference/parity.md.

Every number has a row, every PyTorch test that a Marey test corresponds to has a row, and every cited test exists and
has the number of its row in its comment or docstring.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from source_files import ROOT, repository_files

DOCUMENT = "docs/reference/parity.md"
SPANS = (
    ("R", 1, 69),
    ("T", 1, 13),
    ("C", 13, 21),
    ("C", 31, 31),
    ("C", 55, 58),
    ("L", 1, 11),
    ("L", 13, 25),
    ("E", 1, 12),
    ("S", 1, 21),
    ("P", 1, 40),
    ("K", 1, 15),
)
NUMBERS = [f"{letter}{n}" for letter, first, last in SPANS for n in range(first, last + 1)]

ROW = re.compile(r"^\|\s*([A-Z]\d+)\s*\|([^|]*)\|(.*)\|\s*$")
ANY_ROW = re.compile(r"^\|(.*)\|\s*$")
PYTORCH_TESTS = "## PyTorch's own tests"
CITATION = re.compile(r"`([A-Z]\w*\.(?:[A-Z]\w*|\*)|test_\w+)`")
TEST = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)", re.MULTILINE)
PYTHON_TEST = re.compile(r'^( *)def (test_\w+)\(.*?\).*?:\n(?:\1    """(.*?)""")?', re.MULTILINE | re.DOTALL)
NUMBER_COMMENT = re.compile(r"//\s*((?:[A-Z]\d+[,\s]*)+)(?::.*)?")


def numbers_above(lines: list[str]) -> set[str]:
    """The numbers at the start of the comment lines that end this list."""
    numbers: set[str] = set()
    for line in reversed(lines):
        if not line.startswith("//"):
            break
        if match := NUMBER_COMMENT.fullmatch(line.rstrip()):
            numbers.update(re.findall(r"[A-Z]\d+", match.group(1)))
    return numbers


def tests_of(root: Path) -> dict[str, set[str]]:
    """Suite.Name of each C++ test -> the numbers above it; test_name of each Python test -> those in its docstring."""
    tests: dict[str, set[str]] = {}
    for path in repository_files(root):
        if re.fullmatch(r"tests/(?:behaviour|simulated)/[^/]+\.cpp|src/.*_test\.cpp", path):
            text = (root / path).read_text(encoding="utf-8")
            for match in TEST.finditer(text):
                above = text[: match.start()].splitlines()
                tests[f"{match.group(1)}.{match.group(2)}"] = numbers_above(above)
        elif re.fullmatch(r"tests/(?:python|torch)/test_\w+\.py", path):
            for match in PYTHON_TEST.finditer((root / path).read_text(encoding="utf-8")):
                numbers = re.findall(r"\b[A-Z]\d+\b", match.group(3) or "")
                tests.setdefault(match.group(2), set()).update(numbers)
    return tests


def upstream_names(root: Path) -> dict[str, str]:
    """Each PyTorch test that a docstring names after "upstream:" -> the Marey test with that docstring."""
    names: dict[str, str] = {}
    for path in repository_files(root):
        if re.fullmatch(r"tests/(?:python|torch)/test_\w+\.py", path):
            for match in PYTHON_TEST.finditer((root / path).read_text(encoding="utf-8")):
                text = (match.group(3) or "").partition("upstream:")[2]
                names |= dict.fromkeys(re.findall(r"\btest_\w+", text), match.group(2))
    return names


def check_pytorch_tests(root: Path, tests: dict[str, set[str]]) -> list[str]:
    """Problems in the rows without a number."""
    findings: list[str] = []
    listed: set[str] = set()
    is_listing = False
    for line, text in enumerate((root / DOCUMENT).read_text(encoding="utf-8").splitlines(), 1):
        is_listing |= text == PYTORCH_TESTS
        match = ANY_ROW.match(text)
        if not match or ROW.match(text) or text.startswith("|--"):
            continue
        cells = match.group(1).split(" | ")
        for name in CITATION.findall(" ".join(cells[1:])):
            suite = name.removesuffix("*")
            if name not in tests and (name == suite or not any(test.startswith(suite) for test in tests)):
                findings.append(f"{DOCUMENT}:{line}: cites {name}, which does not exist")
        if is_listing:
            listed.update(re.findall(r"\btest_\w+", cells[0]))
            if len(cells) != 2 or not all(cell.strip() for cell in cells):
                findings.append(f"{DOCUMENT}:{line}: expected two cells: a PyTorch test and its Marey counterpart")
    findings += [
        f"{DOCUMENT}: no row for PyTorch's {name}, which {test} corresponds to"
        for name, test in sorted(upstream_names(root).items())
        if name not in listed and name not in ("test_autograd", "test_profiler", "test_record_function")
    ]
    return findings


def check(root: Path) -> list[str]:
    tests = tests_of(root)
    findings: list[str] = []
    rows: dict[str, list[str]] = {}
    for line, text in enumerate((root / DOCUMENT).read_text(encoding="utf-8").splitlines(), 1):
        match = ROW.match(text)
        if not match:
            continue
        number, cell = match.group(1), match.group(3)
        where = f"{DOCUMENT}:{line}: {number}"
        if number in rows:
            findings.append(f"{where} has a second row")
        rows[number] = CITATION.findall(cell)
        if not match.group(2).strip() or not cell.strip():
            findings.append(f"{where} has an empty cell")
        for name in rows[number]:
            suite = name.removesuffix("*")
            cited = [test for test in tests if test == name or (name != suite and test.startswith(suite))]
            if not cited:
                findings.append(f"{where} cites {name}, which does not exist")
            elif not any(number in tests[test] for test in cited):
                findings.append(f"{where} cites {name}, whose comment or docstring lacks that number")
    findings += check_pytorch_tests(root, tests)
    findings += [f"{DOCUMENT}: no row for {number}" for number in NUMBERS if number not in rows]
    for test, numbers in tests.items():
        findings += [
            f"{test} has number {number}, but that row cites no test: cite this one"
            for number in sorted(numbers)
            if number in rows and not rows[number]
        ]
    return findings


def main() -> int:
    findings = check(ROOT)
    print("\n".join(findings + [f"check_parity: {len(NUMBERS)} numbers, {len(findings)} findings"]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
