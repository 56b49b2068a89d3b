"""Defaults of ``marey.profile`` from files: [tool.marey.profile] in pyproject.toml, [profile] in marey.toml.

The same files hold the defaults of the command (src/cli/file_defaults.cpp).
"""

from __future__ import annotations

import os

from marey._marey import CALL_OPTIONS, Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_known: dict[str, tuple[int, dict[str, Any]]] = {}  # path -> when it was changed, and its table


def session_defaults(with_stack: bool) -> dict[str, Any]:
    """Return the defaults of session options. Those that select calls count only if calls are recorded."""
    found: dict[str, Any] = {}
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    for path, section in (
        (os.path.join(config, "marey.toml"), ("profile",)),
        (_pyproject(), ("tool", "marey", "profile")),
    ):
        found.update(_table(path, section) if path else {})
    return {key: value for key, value in found.items() if with_stack or key not in CALL_OPTIONS}


def _pyproject() -> str:
    """The nearest pyproject.toml, in the current folder or above it."""
    try:
        folder = os.getcwd()
    except OSError:  # it was removed
        return ""
    while True:
        path = os.path.join(folder, "pyproject.toml")
        if os.path.isfile(path):
            return path
        above = os.path.dirname(folder)
        if above == folder:
            return ""
        folder = above


def _table(path: str, section: tuple[str, ...]) -> dict[str, Any]:
    try:
        changed = os.stat(path).st_mtime_ns
        if path in _known and _known[path][0] == changed:
            return _known[path][1]
        with open(path, "rb") as file:
            content = file.read()
    except OSError:
        return {}
    table: Any = {}
    if b"profile" in content and (section[0] != "tool" or b"marey" in content):
        import tomllib

        try:
            table = tomllib.loads(content.decode("utf-8", "replace"))
        except tomllib.TOMLDecodeError as error:
            raise Error(f"{path}: {error}") from None
        for part in section:
            table = table.get(part, {}) if isinstance(table, dict) else {}
    options = {key.replace("-", "_"): value for key, value in table.items()} if isinstance(table, dict) else {}
    for key in ("output", "name"):
        if key in options:
            raise Error(f"{path}: {key} for marey.profile: cannot be set in a file")
    _known[path] = (changed, options)
    return options
