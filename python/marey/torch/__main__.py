"""``python -m marey.torch``: compiles the observer in advance, for example in a container image."""

import sys

from marey._marey import Error
from marey.torch._observer import build

try:
    print(build())
except Error as error:
    sys.exit(f"marey: {error}")
