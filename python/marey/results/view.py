"""The viewer: a server on this machine and a page in the browser."""

from __future__ import annotations

import atexit

from marey import _marey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

_open_views: set[View] = set()  # until they are closed: a view that the caller drops stays open


class View:
    """A running viewer. `url` is the address of its page; it contains a secret."""

    def __init__(self, trace: _marey.Trace, name: str, port: int, source_dirs: list[str]) -> None:
        self._native = _marey.open_view(trace, name, port, source_dirs)
        self.url = self._native.url
        if not _open_views:
            atexit.register(_close_all)
        _open_views.add(self)

    def close(self) -> None:
        """Stop the server. The page shows what it has, but cannot ask for more."""
        _open_views.discard(self)
        self._native.close()

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<marey.View {self.url}>"


def view_trace(
    trace: _marey.Trace, name: str, port: int, browser: bool, source: str | PathLike[str] | Iterable[str]
) -> View:
    """Start a viewer and open its page."""
    import os

    folders = [source] if isinstance(source, (str, os.PathLike)) else source
    view = View(trace, name, port, [os.fsdecode(folder) for folder in folders])
    if browser:
        import webbrowser

        webbrowser.open(view.url)
    return view


def _close_all() -> None:
    for view in list(_open_views):
        view.close()
