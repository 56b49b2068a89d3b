"""Runs the marey command (``python -m marey``); ``--cmake-dir`` prints where its CMake files are."""

import sys

import marey
from marey.launch.command import interpreter_options, main

if __name__ == "__main__":
    sys.exit(main(marey.__path__, sys.argv, interpreter_options(sys.orig_argv, sys.argv)))
