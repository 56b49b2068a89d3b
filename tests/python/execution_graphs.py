"""Reads execution traces, and has programs that write some."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import marey

ROOT = "[pytorch|profiler|execution_trace|process]"
THREAD = "[pytorch|profiler|execution_trace|thread]"


def read(path):
    opened = gzip.open(path, "rt") if str(path).endswith(".gz") else open(path)
    with opened as file:
        return json.load(file)


def nodes_of(path):
    return read(path)["nodes"]


def named(nodes, name):
    (found,) = [node for node in nodes if node["name"] == name]
    return found


def attribute(node, name):
    (value,) = [each["value"] for each in node["attrs"] if each["name"] == name]
    return value


def run(program, **environment):
    variables = {**os.environ, "PYTHONPATH": str(Path(marey.__file__).parents[1]), **environment}
    return subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True)
