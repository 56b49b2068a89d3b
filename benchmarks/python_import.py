"""python_import.py: time that `import marey` adds to the start of an interpreter."""

import json
import os
import statistics
import subprocess
import sys
import time

ROUNDS = 21


def start(text):
    """Milliseconds from the start of an interpreter to its end."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", text], check=True, env=environment)
    return (time.perf_counter() - begin) * 1e3


def main():
    start("import marey")  # loads the files into memory and compiles them
    bare, with_marey = [], []
    for _ in range(ROUNDS):
        bare.append(start("pass"))
        with_marey.append(start("import marey"))
    added = statistics.median(b - a for a, b in zip(bare, with_marey))
    figure = {
        "name": "py_import",
        "value": added,
        "unit": "ms",
        "against": "bare interpreter",
        "against_value": statistics.median(bare),
        "target": "<= 6 ms",
    }
    print(json.dumps(figure))


if __name__ == "__main__":
    main()
