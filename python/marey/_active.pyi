"""The profilers and emitters that are running."""

from typing import Any

running: set[Any]

def is_enabled() -> bool: ...
