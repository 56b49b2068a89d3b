"""Defaults of ``marey.profile`` from files: [tool.marey.profile] in pyproject.toml, [profile] in marey.toml.

The same files hold the defaults of the command (src/cli/command_line.cpp), which always reads them. A program has to
ask: ``marey.profile(config=True)``.
"""

from __future__ import annotations

import functools
import os

from marey._enumerations import ProfilerActivity, RecordScope
from marey._marey import CALL_OPTIONS, Error, check_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Function = TypeVar("Function", bound=Callable[..., None])

_known: dict[str, tuple[int, dict[str, Any]]] = {}  # path -> when it was changed, and its table
_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(["enabled", "record_shapes", "profile_memory", "with_stack", "with_flops"], (bool,)),
    **dict.fromkeys(["with_modules", "acc_events"], (bool,)),
    **dict.fromkeys(["threads", "use_device"], (str,)),
    "c_calls": (bool, str),
    "post_processing_timeout_s": (int, float),
}
_NAMES = {"activities": ProfilerActivity, "scopes": RecordScope}
_OBJECTS = (
    "name output schedule on_trace_ready experimental_config execution_trace_observer custom_trace_id_callback "
    "activity_filters use_cpu use_cuda use_kineto"
).split()


def with_file_defaults(function: Function) -> Function:
    """Decorate ``profile.__init__``: with ``config``, keywords that are not given, or None, come from the files."""

    @functools.wraps(function)
    def __init__(self: Any, *args: Any, **given: Any) -> None:
        given = {key: value for key, value in given.items() if value is not None}
        found = _defaults() if given.get("config") else {}
        with_stack = given.get("with_stack", found.get("with_stack"))
        for key, value in found.items():
            # Options that select calls count only if calls are recorded; `enabled` may be positional.
            if (with_stack or key not in CALL_OPTIONS) and not (args and key == "enabled"):
                given.setdefault(key, value)
        function(self, *args, **given)

    return __init__  # type: ignore[return-value]


def _defaults() -> dict[str, Any]:
    found: dict[str, Any] = {}
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    for path, section in (
        (os.path.join(config, "marey.toml"), ("profile",)),
        (_pyproject(), ("tool", "marey", "profile")),
    ):
        found.update(_table(path, section) if path else {})
    return found


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
    options = {key: _checked(key, value, path) for key, value in options.items()}
    _known[path] = (changed, options)
    return options


def _checked(key: str, value: Any, path: str) -> Any:
    """Return the value of an option as marey.profile takes it."""
    where = f"{path}: {key} for marey.profile"
    if key in _OBJECTS:
        raise Error(f"{where}: cannot be set in a file")
    kinds = _KINDS.get(key)
    if kinds is not None and type(value) not in kinds:
        raise Error(f"{where}: expected {' or '.join(kind.__name__ for kind in kinds)}, not {value!r}")
    if key not in _NAMES:
        try:
            return value if kinds is not None else check_options(**{key: value})[key]
        except (Error, TypeError, ValueError) as error:
            raise Error(f"{path}: {error}") from None
    members = {member.name.upper(): member for member in _NAMES[key]}
    items = value if isinstance(value, list) else [value]
    unknown = [item for item in items if not isinstance(item, str) or item.upper() not in members]
    if unknown:
        raise Error(f"{where}: unknown name {unknown[0]!r}; known names: {', '.join(members)}")
    return [members[item.upper()] for item in items]
