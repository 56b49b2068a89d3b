"""read_with_trace_tools.py TRACE: prints as JSON what HolisticTraceAnalysis and TensorBoard's plugin find in a trace.

Runs in the environment of tools/python_env.sh trace_tools, which has neither PyTorch nor Marey.
"""

import json
import os
import sys


def read_with_hta(path):
    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis(trace_files={0: os.path.abspath(path)}, include_last_profiler_step=True)
    events = analysis.t.get_trace(0)
    texts = analysis.t.symbol_table.get_sym_table()
    found = {
        "categories": {texts[number]: count for number, count in events["cat"].value_counts().items()},
        "steps": sorted(texts[number] for number in events["name"] if texts[number].startswith("ProfilerStep")),
    }
    if "kernel" in found["categories"]:
        found["gpu"] = gpu_answers(analysis)
    return found


def gpu_answers(analysis):
    """Return the times (in us) and counts that HTA's questions about a GPU give."""

    def by(table, keys, column):
        rows = table.reset_index()
        return {"/".join(str(row[key]) for key in keys): float(row[column]) for _, row in rows.iterrows()}

    temporal = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    kinds, _ = analysis.get_gpu_kernel_breakdown(visualize=False)
    idle, _ = analysis.get_idle_time_breakdown(ranks=[0], visualize=False)
    queues = analysis.get_queue_length_summary(ranks=[0])["queue_length"]
    launches = analysis.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)[0]
    annotations = analysis.get_gpu_user_annotation_breakdown(visualize=False)
    return {
        "temporal": {key: float(temporal[key]) for key in temporal.index if key.endswith("time(us)")},
        "kernels": by(kinds, ["kernel_type"], "sum"),
        "idle": by(idle, ["stream", "idle_category"], "idle_time"),
        "queue_changes": by(queues, ["stream"], "count"),
        "launches": {"count": len(launches), "gpu_duration": float(launches["gpu_duration"].sum())},
        "annotations": by(annotations, ["name"], "sum (us)"),
    }


def read_with_tensorboard(path):
    import torch_tb_profiler.io
    from torch_tb_profiler.profiler.data import RunProfileData

    with torch_tb_profiler.io.Cache() as cache:
        data = RunProfileData.parse("worker", "1", path, cache)
    data.process()
    data.analyze()
    return {
        "steps": data.steps_names,
        "operators": {operator.name: operator.calls for operator in data.op_list_groupby_name},
        "has_memory": data.memory_snapshot is not None,
    }


if __name__ == "__main__":
    found = {"hta": read_with_hta(sys.argv[1]), "tensorboard": read_with_tensorboard(sys.argv[1])}
    print("\n" + json.dumps(found))
