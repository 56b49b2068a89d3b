"""python_import.py: what `import kymo` adds to the start of an interpreter."""

import json
import os
import statistics
import subprocess
import sys
import time

ROUNDS = 21


def start(text):
    """Milliseconds from starting an interpreter to its end."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", text], check=True, env=environment)
    return (time.perf_counter() - begin) * 1e3


def main():
    start("import kymo")  # so that the files are in memory, and compiled
    bare, with_kymo = [], []
    for _ in range(ROUNDS):
        bare.append(start("pass"))
        with_kymo.append(start("import kymo"))
    added = statistics.median(b - a for a, b in zip(bare, with_kymo))
    figure = {
        "name": "py_import",
        "value": added,
        "unit": "ms",
        "against": "bare interpreter",
        "against_value": statistics.median(bare),
        "target": "<= 15 ms",
    }
    print(json.dumps(figure))


if __name__ == "__main__":
    main()
