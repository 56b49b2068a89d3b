#!/usr/bin/env python3
"""make_table_goldens.py: write the output of PyTorch's own classes for table_cases.json to tests/data/golden/table/.

Needs torch (2.13.0 wrote the committed files): python -m venv V && V/bin/pip install torch==2.13.0 && V/bin/python THIS.
A case with a "quirk" is one where upstream is wrong or fails; `fixed_table` corrects the table builder for it. The quirks
are listed in docs/reference/torch_quirks.md.
"""

import inspect
import json
import pathlib

from torch.autograd import DeviceType, profiler_util
from torch.autograd.profiler_util import EventList, FunctionEvent

TESTS = pathlib.Path(__file__).resolve().parent.parent
DEVICES = {"cpu": DeviceType.CPU, "cuda": DeviceType.CUDA, "xpu": DeviceType.XPU, "hpu": DeviceType.HPU}


def patched_table(*changes):
    """Upstream's table builder with parts of its source code replaced."""
    text = inspect.getsource(profiler_util._build_table)
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    scope = dict(vars(profiler_util))
    exec(text, scope)  # an installed function with a few edits
    return scope["_build_table"]


FLOPS_CELL = """        if with_flops:
            if evt.flops <= 0:
                row_values.append("--")
            else:
                row_values.append(f"{evt.flops * flops_scale:8.3f}")  # type: ignore[possibly-undefined]
"""
STACK_LINE = "*(empty_headers + [trim_path(entry, src_column_width)])"


def fixed_table(quirk):
    """Upstream's table builder, with the quirk fixed."""
    if quirk == "Q16":  # FLOPs after the source, as in the headings
        return patched_table(
            (FLOPS_CELL, ""),
            (
                "        append(row_format.format(*row_values))\n",
                FLOPS_CELL + "        append(row_format.format(*row_values))\n",
            ),
            (
                'empty_headers = [""] * (len(headers) - 1)',
                'empty_headers = [""] * (len(headers) - 1 - bool(with_flops))',
            ),
            (STACK_LINE, STACK_LINE[:-1] + ' + [""] * bool(with_flops))'),
            ('            empty_headers.append("")\n', '            empty_headers = [""] * len(headers)\n'),
        )
    if quirk == "Q18":  # every device is summed, and every device name is a sort key
        return patched_table(
            ("                DeviceType.XPU,\n", "                DeviceType.XPU,\n                DeviceType.HPU,\n"),
            ('.replace("cuda", "device")', '.replace("cuda", "device").replace("hpu", "device")'),
        )
    return UPSTREAM_TABLE


UPSTREAM_TABLE = profiler_util._build_table


def thread_number(options, quirk):
    """Q14: threads of different nodes are different threads."""
    thread = options.get("thread", 1)
    return thread + 1000 * options.get("node", 0) if quirk == "Q14" else thread


def make_events(case):
    quirk = case.get("quirk")
    reports = case.get("memory", [])
    owned = [False] * len(reports)
    by_id, launches, events = {}, [], []
    for number, (name, start, end, *rest) in enumerate(case["events"]):
        options = rest[0] if rest else {}
        device = options.get("device", "cpu")
        memory = {"cpu": 0, "device": 0}
        if device == "cpu" and not options.get("is_async"):
            for i, report in enumerate(reports):  # Q13: only reports of its own thread
                same = report.get("thread", 1) == options.get("thread", 1) and report.get("node", -1) == options.get(
                    "node", -1
                )
                if same and start <= report["time"] < end and not report.get("oom"):
                    owned[i] = True
                    memory["cpu" if report.get("device", "cpu") == "cpu" else "device"] += report["bytes"]
        event = FunctionEvent(
            id=number,
            name=profiler_util._rewrite_name(name, with_wildcard=True),
            thread=thread_number(options, quirk),
            start_us=start / 1000,
            end_us=end / 1000,
            overload_name=options.get("overload", ""),
            fwd_thread=options.get("forward_thread"),
            input_shapes=options.get("shapes", []),
            stack=options.get("stack", []),
            scope=options.get("scope", 0),
            use_device=case.get("device"),
            cpu_memory_usage=memory["cpu"],
            device_memory_usage=memory["device"],
            is_async=options.get("is_async", False),
            sequence_nr=options.get("sequence", -1),
            node_id=options.get("node", -1),
            device_type=DEVICES[device],
            flops=options.get("flops", 0 if quirk == "Q17" else None),
            is_user_annotation=options.get("is_user_annotation", False),
        )
        events.append(event)
        by_id[options.get("id")] = event
        launches += [(event, kernel) for kernel in options.get("launches", [])]
    for event, kernel in launches:
        event.append_kernel(kernel, 0, by_id[kernel].time_range.elapsed_us())
    for i, report in enumerate(reports):
        if owned[i]:
            continue
        is_cpu = report.get("device", "cpu") == "cpu"
        taken = 0 if report.get("oom") else report["bytes"]
        events.append(
            FunctionEvent(
                id=len(events),
                name="[OutOfMemory]" if report.get("oom") else "[memory]",
                thread=thread_number(report, quirk),
                start_us=report["time"] / 1000,
                end_us=report["time"] / 1000,
                overload_name="",
                input_shapes=[],
                stack=[],
                use_device=case.get("device"),
                node_id=report.get("node", -1),
                cpu_memory_usage=taken if is_cpu else 0,
                device_memory_usage=0 if is_cpu else taken,
                flops=0 if quirk == "Q17" else None,
            )
        )
    events.sort(key=lambda event: [event.time_range.start, -event.time_range.end])
    return events


def table_of(case):
    with_flops = any(len(event) > 3 and "flops" in event[3] for event in case["events"])
    events = EventList(
        make_events(case), use_device=case.get("device"), profile_memory="memory" in case, with_flops=with_flops
    )
    events._build_tree()
    if case["view"] == "averages":
        group = case.get("group", {})
        events = events.key_averages(
            group_by_input_shapes=group.get("shapes", False),
            group_by_stack_n=group.get("stack", 0),
            group_by_overload_name=group.get("overload", False),
        )
    profiler_util._build_table = fixed_table(case.get("quirk"))
    try:
        return events.table(**case.get("table", {}))
    finally:
        profiler_util._build_table = UPSTREAM_TABLE


def main():
    cases = json.loads((TESTS / "parity" / "table_cases.json").read_text(encoding="utf-8"))
    folder = TESTS / "golden" / "table"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.txt"):
        old.unlink()
    for case in cases:
        (folder / (case["name"] + ".txt")).write_text(table_of(case), encoding="utf-8")
    print(f"{len(cases)} tables in {folder}")


if __name__ == "__main__":
    main()
