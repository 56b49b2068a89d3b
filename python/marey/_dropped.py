"""Ends a profiler that is deleted while it runs."""

from marey import _context
from marey._warnings import warn


def end(profiler):
    """End it, since nothing can stop it any more. Warn if it records: its records are in the capture file, or lost."""
    session, profiler._session = profiler._session, None
    if session is not None:
        _context.remove(profiler._carried)
        session.discard()
    profiler._close()
    if session is None:
        return
    text = "a profiler was deleted while it was running: call stop() or use a with statement"
    warn(text, ResourceWarning, stacklevel=4)
