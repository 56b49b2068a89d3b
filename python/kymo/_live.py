"""Which profilers and emitters run."""

running = set()


def is_profiler_enabled():
    """Whether any profiler or emitter runs."""
    return bool(running)
