"""Callbacks for ``on_trace_ready``."""

from collections.abc import Callable
from os import PathLike
from typing import Any

def tensorboard_trace_handler(
    dir_name: str | PathLike[str],
    worker_name: str | None = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[Any], None]: ...
