#!/usr/bin/env python3
"""extension_stub.py FOLDER: writes the type stubs of the Python package; the build runs it.

_marey.pyi comes from nanobind's stub generator, and __init__.pyi from the list of public names in __init__.py, which
loads most of them lazily. Run it with an interpreter that imports the package.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from textwrap import indent

from nanobind.stubgen import ReplacePattern, StubGen, load_pattern_file

import marey
from marey import _marey
from marey.results import trace

PATTERNS = Path(__file__).with_suffix(".pat")
# The types that C++ signatures give for what may be anything.
LOOSE = {
    "Callable": "Callable[..., Any]",
    "Iterable": "Iterable[Any]",
    "dict": "dict[Any, Any]",
    "list": "list[Any]",
    "object": "Any",
    "tuple": "tuple[Any, ...]",
}


class Generator(StubGen):
    def put_docstr(self, docstr: str) -> None:
        """Write the docstring of a public name: editors and the documentation site read it in the stub."""
        if self.prefix.split(".")[2] not in marey.__all__:
            return self.write_ln("...")
        first, *rest = inspect.cleandoc(docstr).split("\n")  # Python 3.13 and later keep no indentation
        self.write_ln(f'"""{first}' + ("" if rest else '"""'))
        for line in rest:
            self.write_ln(line)
        if rest:
            self.write_ln('"""')


def extension_stub() -> str:
    for member in vars(trace._Members).values():  # the members that Python adds to marey.Trace
        function = member.fget if isinstance(member, property) else member
        if callable(function):
            function.__module__ = _marey.__name__
    patterns = [*load_pattern_file(str(PATTERNS)), *map(submodule, ("itt", "nvtx", "torch"))]
    generator = Generator(_marey, include_private=True, patterns=patterns)
    generator.put(_marey)
    loose = re.compile(rf"(?<=: |> )({'|'.join(LOOSE)})(?=[,):]| [=|])")
    text = generator.get().replace("os.PathLike", "PathLike[Any]")
    lines = [line if line.startswith("class ") else loose.sub(tighten, line) for line in text.split("\n")]
    return '"""The extension: ranges, marks, sessions and traces of libmarey."""\n\n' + "\n".join(lines)


def tighten(match: re.Match[str]) -> str:
    return LOOSE[match[1]]


def submodule(name: str) -> ReplacePattern:
    """A module inside the extension, as a class with static methods."""
    generator = Generator(getattr(_marey, name), include_docstrings=False)
    generator.put(getattr(_marey, name))
    functions = re.sub(r"^def ", "@staticmethod\ndef ", generator.output, flags=re.MULTILINE)
    lines = f"class {name}:\n{indent(functions, '    ')}".rstrip().split("\n")
    return ReplacePattern(re.compile(rf"^marey\._marey\.{name}$"), [*lines, ""], 0)


def package_stub() -> str:
    lines = ['"""Marey: a tracing profiler for C++, Python and PyTorch programs."""', ""]
    for home, names in marey._HOMES.items():
        module = f"marey.{home}" if home else "marey"
        lines += [f"from {module} import {name} as {name}" for name in names.split()]
    return "\n".join([*lines, f"__all__ = {marey.__all__!r}", ""])


def main() -> None:
    folder = Path(sys.argv[1])
    for name, text in (("_marey.pyi", extension_stub()), ("__init__.pyi", package_stub())):
        path = folder / name
        path.unlink(missing_ok=True)  # a link to a stub in the sources, as older versions had them
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
