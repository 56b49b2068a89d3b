"""read_with_trace_tools.py TRACE: prints as JSON what HolisticTraceAnalysis and TensorBoard's plugin find in a trace.

Runs in the environment of tools/trace_tools_env.sh, which has neither PyTorch nor Marey.
"""

import json
import sys


def read_with_hta(path):
    from hta.common.trace import Trace

    trace = Trace(trace_files={0: path})
    trace.parse_traces(use_multiprocessing=False)
    trace.align_and_filter_trace(include_last_profiler_step=True)
    events = trace.get_trace(0)
    texts = trace.symbol_table.get_sym_table()
    return {
        "categories": {texts[number]: count for number, count in events["cat"].value_counts().items()},
        "steps": sorted(texts[number] for number in events["name"] if texts[number].startswith("ProfilerStep")),
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
