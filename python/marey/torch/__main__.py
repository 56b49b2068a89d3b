"""``python -m marey.torch``: compiles the observer now, for a machine or an image that is being set up."""

import sys

from marey._marey import Error
from marey.torch._observer import build

try:
    print(build())
except Error as error:
    sys.exit(f"marey: {error}")
