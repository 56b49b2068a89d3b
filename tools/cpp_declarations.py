"""cpp_declarations.py: the public declarations in include/marey/*.h with their comments.

libclang finds the declarations; their text and their comments are taken from the source. Left out: namespace detail,
private members, undocumented special member functions, and undocumented names that mention internals.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from clang.cindex import AccessSpecifier, Cursor, Index, TranslationUnit
from clang.cindex import CursorKind as Kind

ROOT = Path(__file__).resolve().parents[1]
HEADERS = ROOT / "include" / "marey"

RECORDS = {Kind.CLASS_DECL, Kind.STRUCT_DECL, Kind.CLASS_TEMPLATE, Kind.ENUM_DECL}
FUNCTIONS = {Kind.FUNCTION_DECL, Kind.FUNCTION_TEMPLATE, Kind.CXX_METHOD, Kind.CONSTRUCTOR, Kind.CONVERSION_FUNCTION}
ALIASES = {Kind.VAR_DECL, Kind.TYPEDEF_DECL, Kind.TYPE_ALIAS_DECL, Kind.TYPE_ALIAS_TEMPLATE_DECL}
FIELDS = {Kind.FIELD_DECL, Kind.ENUM_CONSTANT_DECL}
HIDDEN = {AccessSpecifier.PRIVATE, AccessSpecifier.PROTECTED}

DELETED = re.compile(rb"[^;{]*=\s*delete")
SPECIAL = re.compile(r"=\s*default$|\boperator=\(|^(?:explicit )?(\w+)\((?:const )?\1\s*&&?")
INTERNAL = re.compile(r"\bdetail::(?!Site\b)|\bTraceData\b")  # MAREY_SITE makes a detail::Site
WIDTH = 96
EXPORT_MACRO = re.compile(r"\b(?:MAREY_API|MAREY_C_API) ")


@dataclass
class Entry:
    """One declaration, or several that one comment describes."""

    kind: Kind
    names: list[str]
    declarations: list[str]
    text: str  # the comment
    last: int  # its last line in the source
    is_above: bool = True  # the comment is above the declaration, not on its line
    members: list[Entry] = field(default_factory=list)

    def describes(self, name: str, kind: Kind) -> bool:
        """Whether the comment is also about the declaration on the next line: names have a word in common, or it
        mentions the first word of the name."""
        if not self.is_above or {self.kind, kind} & (RECORDS | FIELDS | {Kind.NAMESPACE}):
            return False
        own = words(name)
        is_mentioned = any(own[0] == word or (len(word) > 3 and own[0].startswith(word)) for word in words(self.text))
        return is_mentioned or not set(own).isdisjoint(words(" ".join(self.names)))


class Header:
    def __init__(self, path: Path):
        self.name = path.name
        self.source = path.read_bytes()
        self.lines = self.source.decode().splitlines()
        self.entries: list[Entry] = []
        opening = re.match(r"(?:// .*\n)+|/\*(?:.|\n)*?\*/", self.source.decode()).group(0)
        words = re.sub(r"^\s*(//|/?\*/?)\s?|\*/$", "", opening, flags=re.MULTILINE)
        self.purpose = " ".join(words.split()).partition(": ")[2]

    def includes(self) -> list[str]:
        return re.findall(r"^#include <marey/(\w+\.h)>", self.source.decode(), re.MULTILINE)

    # ---- comments

    def comment_above(self, line: int) -> str:
        found: list[str] = []
        above = line - 2
        while self.lines[above].lstrip().startswith("///"):
            found.insert(0, re.sub(r"^\s*/// ?", "", self.lines[above]))
            above -= 1
        if not found and self.lines[above].endswith("*/"):
            while "/*" not in self.lines[above]:
                found.insert(0, self.lines[above].strip(" */"))
                above -= 1
            if not self.lines[above].lstrip().startswith("/*"):
                return ""  # it follows the previous declaration on its line
            found.insert(0, self.lines[above].strip(" */"))
        return "\n".join(found)

    def comment_after(self, line: int) -> str:
        match = re.search(r"\S\s*(?:///<|/\*)\s*(.*?)\s*(?:\*/)?$", self.lines[line - 1])
        return match.group(1) if match else ""

    # ---- declarations

    def add(self, cursor: Cursor, into: list[Entry], scope: str = "") -> None:
        """Add a declaration, or those inside it. `scope` is the prefix of its name within namespace marey."""
        line = cursor.location.line
        if cursor.kind == Kind.NAMESPACE:
            if cursor.spelling == "detail":
                return
            scope = "" if cursor.spelling == "marey" else f"{scope}{cursor.spelling}::"
            if scope and (text := self.comment_above(line)):
                into.append(Entry(cursor.kind, [scope.removesuffix("::")], [], text, line))
        if cursor.access_specifier in HIDDEN:
            return
        if cursor.kind in {Kind.NAMESPACE, Kind.LINKAGE_SPEC, Kind.UNEXPOSED_DECL, Kind.UNION_DECL}:
            for child in cursor.get_children():
                self.add(child, into, scope)
        elif cursor.kind in RECORDS:
            self.add_record(cursor, into, scope)
        elif cursor.kind in FIELDS | FUNCTIONS | ALIASES | {Kind.MACRO_DEFINITION}:
            self.add_simple(cursor, into, scope)

    def add_record(self, cursor: Cursor, into: list[Entry], scope: str) -> None:
        first, last = cursor.extent.start.line, cursor.extent.end.line
        text = self.comment_above(first) or self.comment_after(last)
        if not cursor.is_definition():
            return
        whole = EXPORT_MACRO.sub("", self.text_of(cursor))
        name = scope + (re.sub(r"<.*|\(.*", "", cursor.spelling) or "enum")
        entry = Entry(cursor.kind, [name], [whole.partition("{")[0].strip() + ";"], text, last)
        if last > first:
            for child in cursor.get_children():
                self.add(child, entry.members, f"{name}::" if child.kind in RECORDS else "")
        if first == last or (entry.members and all(m.kind in FIELDS and not m.text for m in entry.members)):
            entry.declarations, entry.members = [whole + ";"], []
        if text or entry.members:
            into.append(entry)

    def add_simple(self, cursor: Cursor, into: list[Entry], scope: str) -> None:
        first, last = cursor.extent.start.line, cursor.extent.end.line
        above = self.comment_above(first)
        text = above or self.comment_after(last)
        declaration = EXPORT_MACRO.sub("", self.text_of(cursor)).removeprefix("inline ")
        if cursor.kind in FUNCTIONS:
            declaration = signature(declaration)
        if cursor.kind == Kind.TYPEDEF_DECL and "{" in declaration:
            return
        if cursor.kind == Kind.MACRO_DEFINITION:
            if cursor.spelling.startswith("MAREY_DETAIL_"):
                return
            declaration = re.match(r"\w+(\([^)]*\))?", declaration).group(0)
        is_deleted = cursor.kind in FUNCTIONS and DELETED.match(self.source, cursor.extent.start.offset)
        is_special = cursor.kind in FUNCTIONS and SPECIAL.search(declaration)
        if is_deleted or INTERNAL.search(declaration + text) or (is_special and not text):
            return
        name = scope + cursor.spelling + ("()" if cursor.kind in FUNCTIONS else "")
        if cursor.kind not in FIELDS | {Kind.MACRO_DEFINITION}:
            declaration += ";"
        before = into[-1] if into else None
        if before and not text and before.last == first - 1 and before.describes(name, cursor.kind):
            before.declarations.append(declaration)
            before.names += [name] if name not in before.names else []
            before.last = last
        elif text or cursor.kind != Kind.MACRO_DEFINITION:
            into.append(Entry(cursor.kind, [name], [declaration], text, last, bool(above or not text)))

    def text_of(self, cursor: Cursor) -> str:
        start = cursor.extent.start
        text = self.source[start.offset : cursor.extent.end.offset].decode()
        indent = len(self.lines[start.line - 1]) - len(self.lines[start.line - 1].lstrip())
        return re.sub(rf"\n {{{indent}}}", "\n", text)


def words(text: str) -> list[str]:
    """The words of a text, and those that its names consist of."""
    found = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", text)]
    return [word for word in found if word not in {"marey", "k", "is", "has", "and", "of"}] or [""]


def signature(text: str) -> str:
    """The declaration of a function, without its body and its member initializers."""
    depth = 0
    for index, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        before = text[:index].rstrip()
        begins_initializers = character == ":" and ":" not in text[index - 1] + text[index + 1] and ")" in before
        if depth == 0 and (begins_initializers or character == "{"):
            text = before
            break
    templates = re.match(r"(?:template <.*>\n|requires .*[^,\n]\n)*", text).group(0)
    return templates + wrapped(" ".join(text.removeprefix(templates).replace("inline ", "").split()).replace("( ", "("))


def wrapped(line: str) -> str:
    """Breaks a long line between parameters, and aligns them."""
    start = line.find("(") + 1
    lines = [""]
    for part in re.split(r"(?<=,) ", line):
        joined = f"{lines[-1]} {part}" if lines[-1].strip() else lines[-1] + part
        if len(joined) > WIDTH and lines[-1].strip():
            lines.append(" " * start + part)
        else:
            lines[-1] = joined
    return "\n".join(lines)


def system_folders() -> list[str]:
    """The compiler's folders with standard headers, which the libclang package does not contain."""
    command = [os.environ.get("CXX", "c++"), "-x", "c++", "-E", "-v", os.devnull]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    return re.findall(r"^ (/\S+)$", shown.partition("#include <...>")[2].partition("End of")[0], re.MULTILINE)


def read_headers() -> list[Header]:
    headers = {path: Header(path) for path in sorted(HEADERS.glob("*.h"))}
    text = "".join(f"#include <marey/{header.name}>\n" for header in headers.values())
    options = ["-std=c++20", f"-I{ROOT / 'include'}", *(f"-isystem{folder}" for folder in system_folders())]
    unit = Index.create().parse(
        "api.cpp", options, [("api.cpp", text)], TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
    )
    failures = [str(d) for d in unit.diagnostics if d.severity >= 3]
    if failures:
        raise RuntimeError("libclang cannot parse the headers:\n" + "\n".join(failures[:5]))
    for cursor in unit.cursor.get_children():
        header = headers.get(Path(cursor.location.file.name)) if cursor.location.file else None
        if header:
            header.add(cursor, header.entries)
    for header in headers.values():
        header.entries.sort(key=lambda entry: entry.last)  # libclang lists macros first
    return list(headers.values())
