"""Where the package keeps its command and its CMake files. Imports nothing of the package: it is run by path too."""

import os
import sys


def find(folders, *parts):
    """The path of a part of the package, or None. An editable install has two folders."""
    for folder in folders:
        path = os.path.join(folder, *parts)
        if os.path.exists(path):
            return path
    return None


def interpreter_options(original, arguments):
    """The options of Python in ``python OPTIONS -m marey ARGUMENTS``, which a program that is run gets too."""
    words = original[1 : len(original) - len(arguments) + 1]
    if words and words[-1] == "marey":
        words.pop()  # of "-m marey"
    if not words:
        return []
    last = words.pop().removesuffix("marey").removesuffix("m")  # "-m", "-mmarey", "-Om"
    return words if last in ("", "-") else [*words, last]


def main(folders, arguments, options=()):
    """Becomes the command marey. Returns, with a text or an exit code, only when it cannot or need not."""
    if arguments[1:] == ["--cmake-dir"]:
        path = find(folders, "lib", "cmake", "marey")
        if path is None:
            return "marey: this package has no CMake files"
        print(path)
        return 0
    path = find(folders, "bin", "marey")
    if path is None:
        return "marey: this package was built without the command, because fmt or CLI11 was not found"
    # So that `marey run x.py` starts the interpreter that this belongs to.
    os.environ["MAREY_PYTHON"] = sys.executable
    os.environ["MAREY_PYTHON_OPTIONS"] = "\n".join(options)
    start = find(folders, "_start")
    if start is not None:
        os.environ["MAREY_PACKAGE"] = os.path.dirname(start)
    if sys.stdout is not None:  # it was closed when we began
        sys.stdout.flush()
    os.execv(path, ["marey", *arguments[1:]])
