"""Warnings that never interrupt the profiled program."""

from __future__ import annotations

import sys
import warnings


def warn(text: str, category: type[Warning] = UserWarning, stacklevel: int = 3) -> None:
    """Issue a warning, or print it to standard error where warnings are errors (``-W error``).

    Marey does not raise an exception in the program for something that deserves only a warning.
    """
    try:
        warnings.warn(text, category, stacklevel=stacklevel)
    except category:
        print(f"marey: {text}", file=sys.stderr)
