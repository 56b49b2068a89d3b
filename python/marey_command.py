#!python
"""Installed as bin/marey: runs the command in the package's folder.

It does not import the package, because libmarey would then record this script whenever MAREY is set.
"""

import importlib.util
import os
import runpy
import sys

spec = importlib.util.find_spec("marey")
if spec is None:
    sys.exit(f"marey: the marey package is not installed for {sys.executable}")
for folder in spec.submodule_search_locations:
    path = os.path.join(folder, "launch", "command.py")
    if os.path.exists(path):
        sys.exit(runpy.run_path(path)["main"](spec.submodule_search_locations, sys.argv))
sys.exit(f"marey: the package in {', '.join(spec.submodule_search_locations)} is incomplete")
