"""emit_nvtx and emit_itt with operators, tested with collectors that NVTX and ITT load like real tools; and the
execution trace."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

import marey
from marey.torch import ExecutionTraceObserver, emit_itt, emit_nvtx, profile

SOURCE = Path(__file__).resolve().parents[2]
COLLECTORS = Path(os.environ.get("MAREY_BUILD_DIR", SOURCE / "build" / "release")) / "tests"
needs_nvtx = pytest.mark.skipif(not marey.nvtx.is_available(), reason="built without the NVTX header")


def collected(program, name, variable, folder):
    """The lines that a collector received from a program."""
    library = COLLECTORS / f"{name}.so"
    if not library.exists():
        pytest.skip(f"{name} has not been built")
    lines = folder / "lines"
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, variable: str(library), "MAREY_TEST_COLLECTED": str(lines)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return lines.read_text().splitlines()


PROGRAM = """
    import torch
    from marey.torch import {name}
    x = torch.ones(2, 3, requires_grad=True)
    with {name}(record_shapes=True):
        torch.sigmoid(x).sum().backward()
    torch.ones(1)
"""


@needs_nvtx
def test_operators_and_backward_nodes_are_emitted_to_nvtx_with_numbers_and_sizes(tmp_path):
    """upstream: test_profiler_emit_nvtx, test_custom_module_input_op_ids (CUDA)"""
    lines = collected(PROGRAM.format(name="emit_nvtx"), "nvtx_collector", "NVTX_INJECTION64_PATH", tmp_path)
    pushed = [line.split(" push ")[1] for line in lines if " push " in line]
    (forward,) = [line for line in pushed if line.startswith("aten::sigmoid,")]
    (backward,) = [line for line in pushed if line.startswith("SigmoidBackward0,")]
    assert "seq = 0" in forward and "seq = 0" in backward
    assert "sizes = [[2, 3]]" in forward and "sizes = [[2, 3]]" in backward
    total = next(line for line in pushed if line.startswith("aten::sum, "))
    assert f"input_op_ids = [({forward.split('op_id = ')[1].split(',')[0]},0)" in total
    assert len(pushed) == len([line for line in lines if line.endswith(" pop")])
    assert not [line for line in pushed if line.startswith("aten::ones,")]


def test_operators_are_emitted_to_itt(tmp_path):
    """upstream: test_profiler_emit_itt, test_custom_module_input_op_ids (ITT)"""
    lines = collected(PROGRAM.format(name="emit_itt"), "itt_collector", "INTEL_LIBITTNOTIFY64", tmp_path)
    text = "\n".join(lines)
    assert "aten::sigmoid" in text and "SigmoidBackward0" in text and "seq = 0" in text


def test_a_disabled_emitter_does_nothing():
    for kind in (emit_nvtx, emit_itt):
        with kind(enabled=False):
            assert not torch.autograd.profiler._is_profiler_enabled


def test_the_execution_trace_has_operators_with_the_ids_of_the_trace(tmp_path):
    """upstream: test_execution_trace_with_kineto, test_execution_trace_alone"""
    path, observer = tmp_path / "graph.json", ExecutionTraceObserver()
    observer.register_callback(str(path))
    with profile(execution_trace_observer=observer) as prof:
        torch.ones(2, 3) @ torch.ones(3, 2)
    nodes = {node["name"]: node for node in json.loads(path.read_text())["nodes"]}
    product = nodes["aten::mm"]
    assert product["inputs"]["shapes"][:2] == [[2, 3], [3, 2]]
    assert product["outputs"]["shapes"] == [[2, 2]] and len(product["inputs"]["values"][0]) == 6
    rf_id = next(attr["value"] for attr in product["attrs"] if attr["name"] == "rf_id")
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    rows = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    (row,) = [row for row in rows if row.get("name") == "aten::mm" and row.get("ph") == "X"]
    assert row["args"]["Record function id"] == rf_id
