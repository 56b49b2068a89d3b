#!python
"""The command kymo of this Python environment: installed as bin/kymo, it runs the one in the package's folder.

It does not import the package: that would load libkymo, which would record this script when KYMO asks for a recording.
"""

import importlib.util
import os
import runpy
import sys

spec = importlib.util.find_spec("kymo")
if spec is None:
    sys.exit(f"kymo: {sys.executable} has no package kymo")
for folder in spec.submodule_search_locations:
    path = os.path.join(folder, "_command.py")
    if os.path.exists(path):
        sys.exit(runpy.run_path(path)["main"](spec.submodule_search_locations, sys.argv))
sys.exit(f"kymo: the package in {', '.join(spec.submodule_search_locations)} is not whole")
