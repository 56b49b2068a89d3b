"""Warnings that never interrupt the profiled program."""

import sys
import warnings


def warn(text, category=UserWarning, stacklevel=3):
    """Issue a warning, or print it to standard error where warnings are errors (``-W error``).

    Marey does not raise an exception in the program for something that deserves only a warning.
    """
    try:
        warnings.warn(text, category, stacklevel=stacklevel)
    except category:
        print(f"marey: {text}", file=sys.stderr)
