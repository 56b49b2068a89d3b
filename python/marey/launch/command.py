"""Finds and runs the command in the package.

Must not import the package: this file is also run by its path.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def find(folders: Iterable[str], *parts: str) -> str | None:
    """Return the path of a file or folder in the package, or None. An editable install has two folders."""
    for folder in folders:
        path = os.path.join(folder, *parts)
        if os.path.exists(path):
            return path
    return None


def interpreter_options(original: Sequence[str], arguments: Sequence[str]) -> list[str]:
    """Return the Python options in ``python OPTIONS -m marey ARGUMENTS``, for the program to run."""
    words = list(original[1 : len(original) - len(arguments) + 1])
    if words and words[-1] == "marey":
        words.pop()  # the "marey" in "-m marey"
    if not words:
        return []
    last = words.pop().removesuffix("marey").removesuffix("m")  # "-m", "-mmarey", "-Om"
    return words if last in ("", "-") else [*words, last]


def main(folders: Iterable[str], arguments: Sequence[str], options: Iterable[str] = ()) -> str | int:
    """Replace this process with the marey command.

    Return a message or an exit code only if that is not possible or not needed.
    """
    if arguments[1:] == ["--cmake-dir"]:
        path = find(folders, "lib", "cmake", "marey")
        if path is None:
            return "marey: this package has no CMake files"
        print(path)
        return 0
    path = find(folders, "bin", "marey")
    if path is None:
        return "marey: this package was built without the command, because fmt or CLI11 was not found"
    # `marey run x.py` must start the interpreter that this package belongs to.
    os.environ["MAREY_PYTHON"] = sys.executable
    os.environ["MAREY_PYTHON_OPTIONS"] = "\n".join(options)
    start = find(folders, "launch", "_start")
    if start is not None:
        os.environ["MAREY_PACKAGE"] = os.path.dirname(os.path.dirname(start))
    if sys.stdout is not None:  # None if it was closed when the process started
        sys.stdout.flush()
    os.execv(path, ["marey", *arguments[1:]])
