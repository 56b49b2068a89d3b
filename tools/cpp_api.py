#!/usr/bin/env python3
"""cpp_api.py [FOLDER]: writes the C++ API reference, one Markdown page for each header (default: build/cpp_api).

The site contains these pages under reference/cpp; tools/docs_hooks.py adds them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from cpp_declarations import FIELDS, HEADERS, RECORDS, ROOT, Entry, Header, Kind, read_headers

INDEX = """\
# C++ API

These pages are generated from the comments in the headers. Unless a name is shown with another
namespace, it is in the namespace `marey`. To learn the API, start with
[cpp.md](../../guide/cpp.md).

| header | contents |
|---|---|
"""
# Parts of a comment that are marked already, or become links: code, documents, headers.
MARKED = re.compile(r"(`[^`]+`|\bdocs/[\w/]+\.md\b|(?:\bmarey/)?\b\w+\.h\b)")
# Words of a comment that are code: calls with a string, names with ::, calls, names with _, constants.
CODE = re.compile(
    r'(\w+\((?:"[^"]*"|[^()"])*"[^()]*\)|\b\w+(?:::~?\w+)+(?:\(\))?|\b\w+\(\)'
    r"|\b[a-zA-Z0-9]+_\w+(?:\.so)?\b|\bk[A-Z]\w+|\bnullopt\b)"
)


def prose(text: str) -> str:
    """A comment as Markdown."""
    paragraphs = []
    for paragraph in text.split("\n\n"):
        lines = paragraph.split("\n")
        if all(line.startswith("    ") for line in lines):
            paragraphs.append(code([line[4:] for line in lines]))
        else:
            paragraphs.append("".join(map(marked, MARKED.split(" ".join(lines)))))
    result = "\n\n".join(paragraphs)
    return result[:1].upper() + result[1:]


def marked(part: str) -> str:
    if part.startswith("`"):
        return part
    if part.startswith("docs/"):
        return f"[{Path(part).name}](../../{part.removeprefix('docs/')})"
    if MARKED.fullmatch(part):
        name = Path(part).name
        return f"[{part}]({Path(name).stem}.md)" if (HEADERS / name).exists() else f"`{part}`"
    return "".join(f"`{word}`" if index % 2 else escaped(word) for index, word in enumerate(CODE.split(part)))


def escaped(text: str) -> str:
    return re.sub(r"([*\\])", r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;"))


def code(lines: list[str]) -> str:
    return "```cpp\n" + "\n".join(lines) + "\n```"


def table(first: str, rows: list[Entry]) -> list[str]:
    def cell(entry: Entry) -> str:
        declaration = " ".join(entry.declarations[0].split())
        text = prose(entry.text).replace("|", "\\|").replace("\n", " ")
        return f"| `{declaration}` | {text} |"

    return ["\n".join([f"| {first} | meaning |", "|---|---|", *map(cell, rows)])]


def heading(entry: Entry) -> str:
    names = entry.names[:3]
    return ", ".join(f"`{name}`" for name in names) + (", ..." if len(entry.names) > 3 else "")


def render(entry: Entry, level: int) -> list[str]:
    hashes = "#" * level
    if entry.kind == Kind.NAMESPACE:
        return [f"{hashes} Namespace `{entry.names[0]}`", prose(entry.text)]
    parts = [f"{hashes} {heading(entry)}", code(entry.declarations), prose(entry.text)]
    if entry.kind in RECORDS:
        fields = [member for member in entry.members if member.kind in FIELDS]
        if fields:
            parts += table("value" if entry.kind == Kind.ENUM_DECL else "member", fields)
        for member in entry.members:
            if member.kind in RECORDS:
                parts += render(member, level + 1)
        for functions in together([member for member in entry.members if member.kind not in RECORDS | FIELDS]):
            parts += [code([line for member in functions for line in member.declarations]), prose(functions[-1].text)]
    return [part for part in parts if part]


def together(members: list[Entry]) -> list[list[Entry]]:
    """Groups members that follow one another without comments."""
    groups: list[list[Entry]] = []
    for member in members:
        if groups and not member.text and not groups[-1][-1].text:
            groups[-1].append(member)
        else:
            groups.append([member])
    return groups


def page(header: Header) -> str:
    parts = [f"# marey/{header.name}", prose(header.purpose), code([f"#include <marey/{header.name}>"])]
    if not header.entries:
        includes = [f"- [marey/{name}]({Path(name).stem}.md)" for name in header.includes()]
        parts += ["It includes:", "\n".join(includes)]
    macros = [entry for entry in header.entries if entry.kind == Kind.MACRO_DEFINITION]
    for entry in macros + [entry for entry in header.entries if entry.kind != Kind.MACRO_DEFINITION]:
        parts += render(entry, 2)
    return "\n\n".join(parts) + "\n"


def pages() -> dict[str, str]:
    """The pages by file name, the index first."""
    headers = read_headers()
    rows = [f"| [marey/{h.name}]({Path(h.name).stem}.md) | {prose(h.purpose)} |\n" for h in headers]
    return {"index.md": INDEX + "".join(rows)} | {f"{Path(h.name).stem}.md": page(h) for h in headers}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "cpp_api"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
