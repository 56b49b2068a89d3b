"""record.py PROFILER WORKLOAD DEVICE: run a workload under one profiler and print its results as JSON."""

import collections
import json
import os
import re
import sys
import tempfile

import torch
import torch.profiler
from workloads import training

STEPS = 2
OWN_FILES = ("workloads.py", "record.py")


def make_profiler(which, device, stacks):
    """A profiler that records stacks, or else shapes, memory and FLOPs."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    if device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    options = {"with_stack": True} if stacks else {"record_shapes": True, "profile_memory": True, "with_flops": True}
    if which == "marey":
        from marey.torch import profile
    else:
        from torch.profiler import profile

        if stacks:
            options["experimental_config"] = torch._C._profiler._ExperimentalConfig(verbose=True)
    return profile(activities=activities, **options)


def run(which, name, device, stacks):
    step = training(name, device)
    step()
    if device == "cuda":
        torch.cuda.synchronize()
    with make_profiler(which, device, stacks) as prof:
        for _ in range(STEPS):
            step()
        if device == "cuda":
            torch.cuda.synchronize()
    return prof


def is_operator(event):
    """Whether the event is an operator, not a Python call, an allocation, a CUDA call or CUPTI's own work."""
    name = event.name
    if getattr(event, "is_python_function", False) or event.device_type.name != "CPU":
        return False
    return not re.match(r"\[|cuda[A-Z]|cu[A-Z]|Activity Buffer Request|Lazy Function Loading|Buffer Flush", name)


def rows_of(prof):
    """Operators in the exported trace, and the forward-backward arrows."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        prof.export_chrome_trace(path)
        with open(path) as file:
            events = json.load(file)["traceEvents"]
    operators = [row for row in events if row.get("cat") in ("cpu_op", "user_annotation") and row.get("ph") == "X"]
    places = collections.defaultdict(list)
    for row in operators:
        places[row["tid"], row["ts"]].append(row["name"])
    ends = collections.defaultdict(dict)
    for row in events:
        if row.get("cat") == "fwdbwd":
            names = places[row["tid"], row["ts"]]
            ends[row["id"]][row["ph"]] = names[0] if names else f"nothing at {row['ts']}"
    return operators, sorted([end.get("s"), end.get("f")] for end in ends.values())


def user_lines(event):
    """Names of the workload's functions on the operator's stack."""
    found = []
    for frame in event.stack or ():
        place, _, function = frame.rpartition(": ")
        file = os.path.basename(place.partition("(")[0])
        if file in OWN_FILES:
            found.append(f"{file}:{function.rpartition('.')[2]}")
    return found


def facts(which, name, device):
    prof = run(which, name, device, False)
    events = [event for event in prof.events() if is_operator(event)]
    rows, links = rows_of(prof)
    arguments = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
    # Numbers count from the first one of the process, which depends on what the compiler found in its cache.
    first = min((event.sequence_nr for event in events if event.sequence_nr >= 0), default=0)
    memory = collections.Counter()
    own_memory = collections.Counter()
    for event in events:
        memory[event.name] += event.cpu_memory_usage if device == "cpu" else event.device_memory_usage
        own_memory[event.name] += event.self_cpu_memory_usage if device == "cpu" else event.self_device_memory_usage
    result = {
        "names": [event.name for event in events],
        "shapes": [[event.name, event.input_shapes] for event in events],
        "sequence": [[event.name, max(event.sequence_nr - first, -1)] for event in events],
        "parents": [[event.name, event.cpu_parent.name if event.cpu_parent else None] for event in events],
        "flops": [[event.name, event.flops or 0] for event in events],
        "kernels": [[event.name, sorted(kernel.name for kernel in event.kernels)] for event in events],
        "memory": dict(memory),
        "own_memory": dict(own_memory),
        "links": links,
    }
    for key in arguments:
        result[key] = [
            [row["name"], row.get("args", {}).get(key, [])] for row in sorted(rows, key=lambda row: row["ts"])
        ]
    with_stacks = run(which, name, device, True)
    result["lines"] = [[event.name, user_lines(event)] for event in with_stacks.events() if is_operator(event)]
    return result


if __name__ == "__main__":
    torch.set_num_threads(1)
    json.dump(facts(*sys.argv[1:4]), sys.stdout)
