"""Finds the code that a test suite is about. It counts as the program, even where it is installed as a library."""

from __future__ import annotations

import os
import re

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

_LIBRARY = re.compile(r"/(?:site|dist)-packages(?:/|$)|/lib/python3[.\d]*(?:/|$)")


def tested(config: pytest.Config) -> list[str]:
    """Return patterns for the tested packages and the test modules.

    Raise pytest.UsageError if a package that the user names does not exist.
    """
    names = list(config.option.marey_package or ())
    packages = [module for name in names for module in _modules_of(name)] if names else _project(config.rootpath)
    return [*packages, *_tests_in_libraries(config)]


def _modules_of(name: str) -> list[str]:
    """Return the modules of a distribution, or the module itself."""
    from importlib.util import find_spec

    found = _installed(name)
    if found:
        return found
    try:
        if find_spec(name.partition(".")[0]) is not None:
            return [name]
    except ValueError:
        pass
    raise pytest.UsageError(f"--marey-package: there is no installed package {name!r}")


def _installed(distribution: str) -> list[str]:
    """Return the top-level modules of a distribution; none if it is not installed."""
    from importlib import metadata

    try:
        files = metadata.distribution(distribution).files or ()
    except (metadata.PackageNotFoundError, ValueError):
        return []
    tops = {file.parts[0].removesuffix(".py") for file in files if file.suffix == ".py"}
    return sorted(name for name in tops if name.isidentifier())


def _project(root: Path) -> list[str]:
    """Return the top-level modules of the project in a folder: of its distribution, and of its source folders."""
    if _LIBRARY.search(root.as_posix()):
        return []
    name = _project_name(root)
    found = set(_installed(name)) if name else set()
    for folder in (root, root / "src", root / "lib"):
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        found.update(entry.name for entry in entries if os.path.isfile(os.path.join(entry.path, "__init__.py")))
    return sorted(name for name in found if name.isidentifier())


def _project_name(root: Path) -> str:
    """Return the name of the project that a folder contains; "" if it is not known."""
    import configparser
    import tomllib

    try:
        with open(root / "pyproject.toml", "rb") as file:
            settings = tomllib.load(file)
        name = settings.get("project", {}).get("name") or settings.get("tool", {}).get("poetry", {}).get("name")
        if isinstance(name, str):
            return name
    except (OSError, ValueError, AttributeError):
        pass
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(root / "setup.cfg", encoding="utf-8")
        return parser.get("metadata", "name", fallback="")
    except (configparser.Error, UnicodeDecodeError):
        return ""


def _tests_in_libraries(config: pytest.Config) -> list[str]:
    """Return patterns for the tests that are installed themselves: ``pytest --pyargs numpy``."""
    found = []
    for argument in config.args:
        place = str(argument).partition("::")[0]
        path = os.path.abspath(os.path.join(str(config.invocation_params.dir), place))
        if os.path.exists(path):
            if _LIBRARY.search(path):
                found.append(re.sub(r"[][*?]", "?", path))
        elif getattr(config.option, "pyargs", False) and place.partition(".")[0].isidentifier():
            found.append(place.partition(".")[0])
    return found
