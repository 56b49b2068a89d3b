"""compare.py [FILE]: what PyTorch's profiler and marey.torch say of the same programs, as a table.

Sections of FILE about devices that this machine does not have stay as they are.
"""

import collections
import json
import platform
import subprocess
import sys
from pathlib import Path

import torch
from workloads import WORKLOADS

FOLDER = Path(__file__).resolve().parent


def record(which, name, device):
    command = [sys.executable, str(FOLDER / "record.py"), which, name, device]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return json.loads(done.stdout)


def _key(item):
    return json.dumps(item)


def equal_rows(theirs, ours, wanted=lambda row: True):
    """(how many rows of theirs are among ours, how many they have that are wanted)."""
    left = collections.Counter(map(_key, ours))
    rows = [row for row in theirs if wanted(row)]
    found = 0
    for row in rows:
        if left[_key(row)] > 0:
            left[_key(row)] -= 1
            found += 1
    return found, len(rows)


def plain(cell):
    """Numbers that are equal are written equally."""
    try:
        return json.loads(cell)
    except (TypeError, ValueError):
        return cell


def equal_values(theirs, ours):
    """Of operators in their order: whether every value that they give is ours."""
    pairs = [(one, other) for one, other in zip(theirs, ours) if any(one[1])]
    found = [
        one[0] == other[0] and all(plain(a) == plain(b) for a, b in zip(one[1], other[1]) if a != "")
        for one, other in pairs
    ]
    return sum(found), len(pairs)


def both_ways(theirs, ours):
    """Equal, also in what ours has beyond theirs."""
    found, count = equal_rows(theirs, ours)
    return found, max(count, len(ours))


def memory_within(theirs, ours, share=0.01):
    names = {*theirs, *ours}
    near = [name for name in names if abs(theirs.get(name, 0) - ours.get(name, 0)) <= share * abs(theirs.get(name, 0))]
    return len(near), len(names)


def comparisons(theirs, ours, device):
    """(what is compared, how many are equal, of how many)."""
    yield "operators, by name and count", *both_ways(theirs["names"], ours["names"])
    yield "parents of operators", *both_ways(theirs["parents"], ours["parents"])
    yield "input shapes", *both_ways(theirs["shapes"], ours["shapes"])
    yield "input shapes in the exported trace", *both_ways(theirs["Input Dims"], ours["Input Dims"])
    yield "input types", *both_ways(theirs["Input type"], ours["Input type"])
    yield "input strides", *both_ways(theirs["Input Strides"], ours["Input Strides"])
    yield "values of inputs, where PyTorch gives any", *equal_values(theirs["Concrete Inputs"], ours["Concrete Inputs"])
    yield "sequence numbers", *both_ways(theirs["sequence"], ours["sequence"])
    yield "forward-backward links", *both_ways(theirs["links"], ours["links"])
    with_stack = lambda row: row[1] != []
    yield "functions of the program in stacks", *equal_rows(theirs["lines"], ours["lines"], with_stack)
    yield "FLOPs, where PyTorch has a formula", *equal_rows(theirs["flops"], ours["flops"], lambda row: row[1] > 0)
    yield "memory by operator, within 1 %", *memory_within(theirs["memory"], ours["memory"])
    yield "memory of operators themselves, within 1 %", *memory_within(theirs["own_memory"], ours["own_memory"])
    if device == "cuda":
        yield "kernels by operator", *both_ways(theirs["kernels"], ours["kernels"])


def table(device):
    rows = collections.defaultdict(dict)
    for name in WORKLOADS:
        theirs, ours = record("torch", name, device), record("marey", name, device)
        for what, found, count in comparisons(theirs, ours, device):
            rows[what][name] = f"{found} of {count}" if found != count else f"all {count}"
    lines = ["| compared | " + " | ".join(WORKLOADS) + " |", "|---" * (len(WORKLOADS) + 1) + "|"]
    lines += ["| " + " | ".join([what, *(cells[name] for name in WORKLOADS)]) + " |" for what, cells in rows.items()]
    return "\n".join(lines)


INTRODUCTION = """# What marey.torch and torch.profiler say of the same program

Made by `make parity-torch`. Each workload is two training steps with Adam, run in a process of its own under each
profiler, once with shapes, memory and FLOPs and once with stacks. A cell says how many facts are equal, of those that
either has. Marey has more than PyTorch in three places: texts among the values of inputs, formulas of FLOPs, and stacks
of the operators that add up gradients.
"""


def kept_sections(file, devices):
    """The sections of an older file for devices that this machine does not have."""
    if file is None or not file.exists():
        return []
    sections = file.read_text().split("\n## ")[1:]
    return [f"\n## {section}" for section in sections if section.partition(":")[0].lower() not in devices]


def main():
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    version, python = torch.__version__.partition("+")[0], platform.python_version()
    text = INTRODUCTION
    for device in devices:
        text += f"\n## {device.upper()}: PyTorch {version}, Python {python}, {platform.machine()}\n\n{table(device)}\n"
    text += "".join(kept_sections(file, devices))
    print(text)
    if file is not None:
        file.write_text(text)


if __name__ == "__main__":
    main()
