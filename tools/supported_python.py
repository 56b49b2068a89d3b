"""supported_python.py: exits with one line on stderr if the interpreter that runs it cannot build the Python package.

The versions are those of ``requires-python`` in pyproject.toml. Every interpreter must be able to run this file, so it
uses no recent syntax and no other module of the project.
"""

import os
import re
import sys


def supported(text):
    """Return the first supported and the first unsupported version of a pyproject.toml, such as (3, 11) and (3, 16)."""
    found = re.search(r'^requires-python = ">=3\.(\d+),<3\.(\d+)"', text, re.MULTILINE)
    return (3, int(found.group(1))), (3, int(found.group(2)))


def objection(implementation, version, first, end):
    """Return why an interpreter cannot build the package; an empty text if it can."""
    wanted = f"CPython 3.{first[1]} to 3.{end[1] - 1}"
    name = f"{implementation} {'.'.join(str(part) for part in version[:3])}"
    if implementation != "CPython":
        return f"{name} is not supported: the package reads CPython's own structures (use {wanted})"
    if not first <= tuple(version[:2]) < end:
        return f"{name} is not supported: the package was checked on {wanted}"
    return ""


def main():
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with open(os.path.join(folder, "pyproject.toml")) as file:
        first, end = supported(file.read())
    implementation = getattr(sys, "implementation", None)
    names = {"cpython": "CPython", "pypy": "PyPy"}
    name = implementation.name if implementation else "Python"
    text = objection(names.get(name, name), sys.version_info, first, end)
    if text:
        sys.exit("marey: " + text)


if __name__ == "__main__":
    main()
