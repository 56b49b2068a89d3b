"""record.py PROFILER WORKLOAD DEVICE: run a workload under one profiler and print its results as JSON."""

import collections
import gzip
import json
import os
import re
import sys
import tempfile

import frameworks
import torch
import torch.profiler
from workloads import training

STEPS = 2
OWN_FILES = ("workloads.py", "record.py", "frameworks.py")


def make_options(which, stacks):
    """Options for stacks, or else for shapes, memory and FLOPs."""
    if not stacks:
        return {"record_shapes": True, "profile_memory": True, "with_flops": True}
    verbose = {"experimental_config": torch._C._profiler._ExperimentalConfig(verbose=True)}
    return {"with_stack": True, **(verbose if which == "torch" else {})}


def run(which, name, device, stacks):
    """Run the workload in this process. Return its events, the exported trace and the table."""
    options = make_options(which, stacks)
    with tempfile.TemporaryDirectory() as folder:
        if name in frameworks.FRAMEWORKS:
            if which == "marey":
                import marey.torch

                marey.torch.patch()
            events, path, table = frameworks.run(name, options, folder)
        else:
            prof = run_steps(which, name, device, options)
            events, path = prof.events(), os.path.join(folder, "trace.json")
            prof.export_chrome_trace(path)
            table = prof.key_averages().table(sort_by="cpu_time_total", row_limit=-1)
        with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
            return events, json.load(file)["traceEvents"], table


def run_steps(which, name, device, options):
    if which == "marey":
        from marey.torch import profile
    else:
        from torch.profiler import profile
    activities = [torch.profiler.ProfilerActivity.CPU]
    if device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    step = training(name, device)
    step()
    if device == "cuda":
        torch.cuda.synchronize()
    with profile(activities=activities, **options) as prof:
        for _ in range(STEPS):
            step()
        if device == "cuda":
            torch.cuda.synchronize()
    return prof


def is_operator(event):
    """Whether the event is an operator, not a Python call, an allocation, a CUDA call or CUPTI's own work."""
    if getattr(event, "is_python_function", False) or event.device_type.name != "CPU":
        return False
    others = r"\[memory\]|cuda[A-Z]|cu[A-Z]|Activity Buffer Request|Lazy Function Loading|Buffer Flush"
    return not re.match(others, event.name)


def rows_of(events):
    """Operators in the exported trace, and the forward-backward arrows."""
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


def counts_in(table):
    """Names and numbers of calls in printed tables; other columns are times, or depend on the device."""
    found, column = [], None
    for line in table.splitlines():
        cells = re.split(r"  +", line.strip())
        if "# of Calls" in cells:
            column = cells.index("# of Calls")
        elif column is not None and len(cells) > column and cells[column].isdigit():
            found.append([cells[0], cells[column]])
    return found


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
    events, trace, table = run(which, name, device, False)
    events = [event for event in events if is_operator(event)]
    rows, links = rows_of(trace)
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
        "table": counts_in(table),
    }
    for key in arguments:
        result[key] = [
            [row["name"], row.get("args", {}).get(key, [])] for row in sorted(rows, key=lambda row: row["ts"])
        ]
    with_stacks, _, _ = run(which, name, device, True)
    result["lines"] = [[event.name, user_lines(event)] for event in with_stacks if is_operator(event)]
    return result


if __name__ == "__main__":
    torch.set_num_threads(1)
    output = os.dup(1)
    os.dup2(2, 1)  # what frameworks print does not belong to the result
    text = json.dumps(facts(*sys.argv[1:4]))
    with os.fdopen(output, "w") as file:
        file.write(text)
