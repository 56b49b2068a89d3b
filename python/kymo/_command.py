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
    """The options of Python in ``python OPTIONS -m kymo ARGUMENTS``, which a program that is run gets too."""
    words = original[1 : len(original) - len(arguments) + 1]
    if words and words[-1] == "kymo":
        words.pop()  # of "-m kymo"
    if not words:
        return []
    last = words.pop().removesuffix("kymo").removesuffix("m")  # "-m", "-mkymo", "-Om"
    return words if last in ("", "-") else [*words, last]


def main(folders, arguments, options=()):
    """Becomes the command kymo. Returns, with a text or an exit code, only when it cannot or need not."""
    if arguments[1:] == ["--cmake-dir"]:
        path = find(folders, "lib", "cmake", "kymo")
        if path is None:
            return "kymo: this package has no CMake files"
        print(path)
        return 0
    path = find(folders, "bin", "kymo")
    if path is None:
        return "kymo: this package was built without the command, because fmt or CLI11 was not found"
    # So that `kymo run x.py` starts the interpreter that this belongs to.
    os.environ["KYMO_PYTHON"] = sys.executable
    os.environ["KYMO_PYTHON_OPTIONS"] = "\n".join(options)
    start = find(folders, "_start")
    if start is not None:
        os.environ["KYMO_PACKAGE"] = os.path.dirname(start)
    if sys.stdout is not None:  # it was closed when we began
        sys.stdout.flush()
    os.execv(path, ["kymo", *arguments[1:]])
