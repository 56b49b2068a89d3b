"""Explains why the extension is missing: it was built for another Python than the one that runs."""

import os
import re
import sys
from importlib.util import find_spec

_IMPLEMENTATIONS = {"cpython": "CPython", "pypy": "PyPy", "graalpy": "GraalPy"}


def explained(error: ImportError) -> ImportError:
    """Return an error that names both Pythons; the given one if the extension is there and cannot be loaded."""
    if find_spec("marey._marey") is not None:
        return error
    files = " ".join(os.listdir(os.path.dirname(__file__)))
    builds = sorted(f"{major}.{minor}" for major, minor in re.findall(r"_marey\.cpython-(\d)(\d+t?)", files))
    built_for = f"CPython {' and '.join(builds)}" if builds else "another Python"
    own = _IMPLEMENTATIONS.get(sys.implementation.name, sys.implementation.name)
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return ImportError(f"this Marey is for {built_for}; {sys.executable} is {own} {version}", name="marey._marey")
