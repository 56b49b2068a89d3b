"""The viewer: a server on this machine and a page in the browser."""

from __future__ import annotations

import atexit

from marey import _marey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

_open_viewers: set[Viewer] = set()  # until they are closed: a viewer that the caller drops stays open


class Viewer:
    """A running viewer. `url` is the address of its page; it contains a secret."""

    def __init__(self, trace: _marey.Trace, name: str, port: int, source_dirs: list[str]) -> None:
        self._native = _marey.open_view(trace, name, port, source_dirs)
        self.url = self._native.url
        if not _open_viewers:
            atexit.register(_close_all)
        _open_viewers.add(self)

    def close(self) -> None:
        """Stop the server. The page shows what it has, but cannot ask for more."""
        _open_viewers.discard(self)
        self._native.close()

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<marey.Viewer {self.url}>"


def view_trace(
    trace: _marey.Trace, name: str, port: int, browser: bool, source: str | PathLike[str] | Iterable[str]
) -> Viewer:
    """Start a viewer and open its page."""
    import os

    folders = [source] if isinstance(source, (str, os.PathLike)) else source
    view = Viewer(trace, name, port, [os.fsdecode(folder) for folder in folders])
    if browser:
        import webbrowser

        webbrowser.open(view.url)
    return view


def _close_all() -> None:
    for view in list(_open_viewers):
        view.close()
