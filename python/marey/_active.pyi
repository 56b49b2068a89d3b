"""Which profilers and emitters run."""

from typing import Any

running: set[Any]

def is_enabled() -> bool: ...
