"""docs_hooks.py: what MkDocs does with the documents beyond its configuration, mkdocs.yml.

The documents are written for two readers: someone in the repository, where a link to [run.md](run.md) or to a source
file is useful, and someone on the site, where titles are. On the site:

- the C++ API pages are generated (cpp_api.py), and CONTRIBUTING.md, CHANGELOG.md and SECURITY.md are pages;
- a link whose text is a file name shows the title of that page;
- a link to a file of the repository that is not on the site becomes plain code;
- lists and tables are converted from CommonMark to Python-Markdown, which needs more indentation.

Every public name of the Python package must be on the page of the Python API; otherwise the build fails.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))
import cpp_api

ROOT = Path(__file__).resolve().parents[1]
CPP_FOLDER = "reference/cpp"
PYTHON_PAGE = "reference/api_python.md"
PACKAGE = ROOT / "build/release/python/marey"  # with the stubs that the build writes
PYTHON_MODULES = ("__init__.pyi", "profiler.py", "torch/__init__.py")
COPIED = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md"}
ON_SITE = COPIED | {"include/marey": f"{CPP_FOLDER}/index.md"}

FENCE = re.compile(r"\s*(```|~~~)")
ITEM = re.compile(r"( *)([-*+]|\d+[.)])( +)(?=\S)")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
ATTRIBUTES = re.compile(r"^<!-- attributes: (\S+) (\w+) -->$", re.MULTILINE)
CODE_SPAN = re.compile(r"(`+)(.+?)\1")

generated: dict[str, str] = {}  # pages by their paths on the site


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    generated.clear()
    for name, text in cpp_api.pages().items():
        generated[f"{CPP_FOLDER}/{name}"] = text
    for source, page in COPIED.items():
        generated[page] = (ROOT / source).read_text(encoding="utf-8")
    headers = [{f"marey/{Path(path).stem}.h": path} for path in generated if path.startswith(CPP_FOLDER)]
    for part in config.nav:
        for entry in next(iter(part.values())) if isinstance(next(iter(part.values())), list) else []:
            if isinstance(entry, dict) and entry.get("C++ API") == f"{CPP_FOLDER}/index.md":
                entry["C++ API"] = [f"{CPP_FOLDER}/index.md", *headers[1:]]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path, text in generated.items():
        files.append(File.generated(config, path, content=text))
    check_python_names((Path(config.docs_dir) / PYTHON_PAGE).read_text(encoding="utf-8"))
    return files


def check_python_names(page: str) -> None:
    """Every name in the `__all__` of a public module must be on the page."""
    missing = []
    for module in PYTHON_MODULES:
        tree = ast.parse((PACKAGE / module).read_text(encoding="utf-8"))
        (names,) = [
            ast.literal_eval(statement.value)
            for statement in tree.body
            if isinstance(statement, ast.Assign) and statement.targets[0].id == "__all__"
        ]
        prefix = ".".join(["marey", *Path(module).with_suffix("").parts]).removesuffix(".__init__")
        missing += [
            f"{prefix}.{name}"
            for name in names
            if not name.startswith("_") and not re.search(rf"\b{re.escape(prefix)}\.{name}\b", page)
        ]
    if missing:
        raise PluginError(f"docs/{PYTHON_PAGE} lacks public names: {', '.join(missing)}")


def attributes(module: str, name: str) -> str:
    """The attributes of a class with their types, or the members of an enumeration with their values, as a table."""
    tree = ast.parse((PACKAGE / module).read_text(encoding="utf-8"))
    (cls,) = [statement for statement in tree.body if isinstance(statement, ast.ClassDef) and statement.name == name]
    typed = {s.target.id: ast.unparse(s.annotation) for s in cls.body if isinstance(s, ast.AnnAssign)}
    typed = {key: text for key, text in typed.items() if not text.startswith("InitVar")}
    values = {s.targets[0].id: ast.unparse(s.value) for s in cls.body if isinstance(s, ast.Assign)}
    rows = [f"| `{key}` | `{text}` |" for key, text in (typed or values).items() if not key.startswith("_")]
    return "\n".join([f"| {'attribute' if typed else 'member'} | {'type' if typed else 'value'} |", "|---|---|", *rows])


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    def link(match: re.Match[str]) -> str:
        image, text, target = match.groups()
        path, _, anchor = target.partition("#")
        if image or not path or ":" in path:
            return match.group(0)
        uri = os.path.normpath(os.path.join(os.path.dirname(source_of(page)), path))
        on_site = ON_SITE.get(uri) or (uri.removeprefix("docs/") if uri.startswith("docs/") else None)
        file = files.get_file_from_path(on_site) if on_site else None
        if file is None:
            return match.group(0) if on_site or not (ROOT / uri).exists() else f"`{uri}`"
        if text.strip("`") in (path, os.path.basename(path)) or text == uri:
            text = title_of(on_site)
        relative = os.path.relpath(on_site, os.path.dirname(page.file.src_uri) or ".")
        return f"[{text}]({relative}#{anchor})" if anchor else f"[{text}]({relative})"

    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation"]
    markdown = ATTRIBUTES.sub(lambda match: attributes(*match.groups()), markdown)
    prose = outside_code(markdown, lambda line: outside_spans(line, link))
    return "\n".join(indented_lists(prose.split("\n")))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Docstrings name documents by their paths."""

    def link(match: re.Match[str]) -> str:
        folder = os.path.dirname(page.file.src_uri)
        title = title_of(match[1]).replace("`", "")
        return f'<a href="{os.path.relpath(match[1], folder).removesuffix(".md")}.html">{title}</a>'

    return re.sub(r"\bdocs/(\w+/\w+\.md)\b", link, html) if page.file.src_uri == PYTHON_PAGE else html


def source_of(page: Page) -> str:
    """The path of a page's document in the repository."""
    sources = {page: source for source, page in COPIED.items()}
    return sources.get(page.file.src_uri, f"docs/{page.file.src_uri}")


def title_of(path: str) -> str:
    """The first heading of a page."""
    text = generated.get(path) or (ROOT / "docs" / path).read_text(encoding="utf-8")
    return re.search(r"^# (.+)$", text, re.MULTILINE).group(1)


def outside_code(text: str, change) -> str:
    lines, is_code = [], False
    for line in text.split("\n"):
        is_fence = FENCE.match(line) is not None
        is_code ^= is_fence
        lines.append(line if is_fence or is_code else change(line))
    return "\n".join(lines)


def outside_spans(line: str, link) -> str:
    """Change the links of a line. A | in a code span of a table needs no backslash here."""
    spans: list[str] = []

    def hide(match: re.Match[str]) -> str:
        spans.append(match.group(0).replace("\\|", "|") if line.startswith("|") else match.group(0))
        return f"\x00{len(spans) - 1}\x00"

    hidden = CODE_SPAN.sub(hide, line)
    hidden = re.sub(r"\x00(\d+)\x00", lambda m: spans[int(m[1])], LINK.sub(link, hidden))
    return re.sub(r"\x00(\d+)\x00", lambda m: spans[int(m[1])], hidden)


def indented_lists(lines: list[str]) -> list[str]:
    """Indent what is in a list item by four columns for each level, and put a blank line before each list."""
    changed: list[str] = []
    levels: list[int] = []  # the columns of the contents of the open items
    is_code = False
    for line in lines:
        is_fence = FENCE.match(line) is not None
        indent = len(line) - len(line.lstrip())
        if line.strip() and not is_code:
            item = ITEM.match(line)
            if item and item[2][0].isdigit() and item[2][:-1] != "1" and not levels and changed and changed[-1].strip():
                item = None  # a number at the start of a line of a paragraph
            is_lazy = not item and changed and changed[-1].strip() and levels and indent < levels[-1] and not is_fence
            before_depth = len(levels)
            while levels and indent < levels[-1] and not is_lazy:
                levels.pop()
            depth = len(levels)
            if item and (not levels or indent < levels[-1] + 4):
                begins_list = depth == before_depth  # otherwise it follows an item of its own list
                if changed and changed[-1].strip() and (begins_list or depth < before_depth - 1):
                    changed.append("")
                levels.append(item.end())
                marker = item.group(2) + " "
                changed.append("    " * depth + f"{marker:<4}" + line[item.end() :])
                continue
        inside = levels[-1] if levels else 0
        changed.append("    " * len(levels) + line[min(indent, inside) :] if line.strip() else "")
        is_code ^= is_fence
    return changed
