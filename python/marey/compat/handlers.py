"""Callbacks for ``on_trace_ready``."""

from __future__ import annotations

from marey._marey import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike
    from typing import Any


def tensorboard_trace_handler(
    dir_name: str | PathLike[str],
    worker_name: str | None = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[Any], None]:
    """Return an ``on_trace_ready`` callback that writes each trace into a folder.

    Files are named ``<worker>.<time>.pt.trace.json``, with ``.gz`` if compressed. The folder is created if needed.

    Args:
        dir_name: The folder.
        worker_name: The worker; ``<host>_<pid>`` by default.
        use_gzip: Whether to compress the files.
        use_python_export: Ignored; there is only one exporter.
    """

    def write(prof: Any) -> None:
        import os
        import socket
        import time

        nonlocal worker_name
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise Error(f"cannot create the folder {os.fsdecode(dir_name)}: {error.strerror}") from error
        if not worker_name:
            worker_name = f"{socket.gethostname()}_{os.getpid()}"
        suffix = ".gz" if use_gzip else ""
        prof.export_chrome_trace(
            os.path.join(os.fsdecode(dir_name), f"{worker_name}.{time.time_ns()}.pt.trace.json{suffix}")
        )

    return write
