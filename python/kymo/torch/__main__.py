"""``python -m kymo.torch``: compiles the observer now, for a machine or an image that is being set up."""

import sys

from kymo._kymo import Error
from kymo.torch._observer import build

try:
    print(build())
except Error as error:
    sys.exit(f"kymo: {error}")
