"""What happens to a profiler that is dropped while it runs."""

from marey import _context
from marey._warnings import warn


def end(profiler):
    """Ends it, since nobody can stop it any more, and warns. What it has recorded is in its capture file or lost."""
    session, profiler._session = profiler._session, None
    if session is not None:
        _context.remove(profiler._carried)
        session.discard()
    profiler._close()
    warn("a profiler was dropped while it was running: nobody has called its stop()", ResourceWarning, stacklevel=4)
