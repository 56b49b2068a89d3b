"""Warnings that never stop the program that is profiled."""

import sys
import warnings


def warn(text, category=UserWarning, stacklevel=3):
    """Warns. Where warnings are errors (``-W error``) the text goes to standard error instead: Marey does not raise
    into a program for something that is only worth a warning.
    """
    try:
        warnings.warn(text, category, stacklevel=stacklevel)
    except category:
        print(f"marey: {text}", file=sys.stderr)
