"""``python -m kymo``: the command kymo, and ``--cmake-dir`` for those who build against this package."""

import sys

import kymo
from kymo._command import interpreter_options, main

if __name__ == "__main__":
    sys.exit(main(kymo.__path__, sys.argv, interpreter_options(sys.orig_argv, sys.argv)))
