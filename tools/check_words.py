#!/usr/bin/env python3
"""check_words.py: rejects phrases that docs/internals/writing.md rules out, wide documents and long commit subjects."""

from __future__ import annotations

import re
import subprocess
import sys

from source_files import ROOT, repository_files

TEXT = (".md", ".h", ".cpp", ".c", ".cu", ".py", ".sh", ".bash", ".mjs", ".cmake", ".txt", ".toml", "Makefile")
# Data, and the two places that quote the phrases.
EXEMPT = (
    "tests/data/golden/",
    "tests/data/corpus/",
    "tests/data/samples/",
    "docs/internals/writing.md",
    "tools/check_words",
)
DOCUMENT_WIDTH = 100
SUBJECT_WIDTH = 72

PHRASES = (
    (re.compile(r"(?<!there )(?<!there\n)\b(is|are) no\b(?! (?:longer|more|larger|less|worse|later|earlier)\b)", re.I),
     'write "is not a" (or "there is no")'),
    (re.compile(r"\banew\b", re.I), 'write "again"'),
    (re.compile(r"\bprograms? of (?!(?:the|its|your|this|that|a|an|each)\b)", re.I),
     'write "Python program", not "program of Python"'),
)  # fmt: skip
# A sentence in prose or in a comment whose subject is a clause with "What": not a question, not a heading.
WHAT_CLAUSE = re.compile(r"(?:^|(?<=[.;:] )|(?<=//[/!<] )|(?<=// )|(?<=# )|(?<=\"\"\"))What (?!if\b)[^?|]*$")
URL = re.compile(r"https?://\S+")


def phrase_findings(path: str, text: str) -> list[str]:
    is_document = path.endswith(".md")
    findings = []
    in_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if is_document and line.lstrip().startswith("```"):
            in_code = not in_code
            continue
        for pattern, advice in PHRASES:
            if match := pattern.search(line):
                findings.append(f'{path}:{number}: "{match.group(0).strip()}": {advice}')
        is_heading = is_document and line.startswith("#")
        if not in_code and not is_heading and WHAT_CLAUSE.search(line.strip()):
            findings.append(f'{path}:{number}: a sentence starts with "What": name its subject')
    return findings


def width_findings(path: str, text: str) -> list[str]:
    """Lines of a document over the width, outside tables, code blocks and lines that a URL or link makes long."""
    findings = []
    in_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code and not line.lstrip().startswith(("|", "![", "[!")) and not URL.search(line):
            if len(line) > DOCUMENT_WIDTH:
                findings.append(f"{path}:{number}: {len(line)} columns, over {DOCUMENT_WIDTH}: wrap it")
    return findings


def subject_findings(subjects: list[str]) -> list[str]:
    return [f"commit '{s}': {len(s)} characters, over {SUBJECT_WIDTH}" for s in subjects if len(s) > SUBJECT_WIDTH]


def commit_subjects() -> list[str]:
    """Subjects of the commits since this check exists; none outside a git clone."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else ""

    added = git("log", "--diff-filter=A", "--format=%H", "--", "tools/check_words.py").split()
    return git("log", "--format=%s", f"{added[-1]}..HEAD").splitlines() if added else []


def main() -> int:
    files = [p for p in repository_files(ROOT) if p.endswith(TEXT) and not p.startswith(EXEMPT)]
    findings = []
    for path in files:
        text = (ROOT / path).read_text(encoding="utf-8", errors="replace")
        findings += phrase_findings(path, text)
        if path.endswith(".md"):
            findings += width_findings(path, text)
    findings += subject_findings(commit_subjects())
    print("\n".join([*findings, f"check_words: {len(files)} files, {len(findings)} findings"]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
