"""Queue depth and idle time of a device, computed from traces with known times."""

import json

import pytest
import torch

import marey
from marey.torch import profile
from marey.torch.evaluation import (
    BasicEvaluation,
    EventKey,
    Interval,
    argmax,
    index_of_first_match,
    source_code_location,
    traverse_bfs,
    traverse_dfs,
)


class TraceBuilder:
    """Builds a trace; times are in microseconds."""

    def __init__(self):
        self.rows = []
        self.launched = 0

    def add(self, name, start, end, category="cpu_op", **arguments):
        on_device = category == "kernel"
        if on_device:
            arguments |= {"device": 0, "stream": 7}
        row = {"ph": "X", "name": name, "cat": category, "ts": start, "dur": end - start, "args": arguments}
        self.rows.append({**row, "pid": 0 if on_device else 1, "tid": 7 if on_device else 1})

    def launch(self, at, start, end, name="gemm"):
        self.launched += 1
        self.add("cudaLaunchKernel", at, at + 1, "cuda_runtime", correlation=self.launched)
        self.add(name, start, end, "kernel", correlation=self.launched)

    def load(self, folder):
        path = folder / "made.json"
        path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": self.rows}))
        return marey.load(str(path))


@pytest.fixture
def evaluated(tmp_path):
    """Three queued kernels, then a wait for the CPU, then one more kernel."""
    made = TraceBuilder()
    made.add("CPU (before)", 0, 10)
    made.add("enqueues", 100, 130)
    for number in range(3):
        made.launch(100 + 10 * number, 200 + 100 * number, 300 + 100 * number)
    made.add("CPU (after)", 600, 700)
    made.launch(650, 660, 670)
    return BasicEvaluation(made.load(tmp_path))


def named(evaluation, name):
    (metrics,) = [metrics for key, metrics in evaluation.metrics.items() if str(key) == name]
    return metrics


def test_the_queue_depth_counts_launched_kernels_that_have_not_started(evaluated):
    """upstream: test_utils_compute_queue_depth"""
    assert [point.queue_depth for point in evaluated.queue_depth_list] == [1, 2, 3, 2, 1, 0, 1, 0]
    assert named(evaluated, "CPU (before)").queue_depth == 0
    assert named(evaluated, "enqueues").queue_depth == 1  # its launch starts at the same time
    assert len(evaluated.cuda_events) == 8


def test_idle_time_is_the_time_when_the_device_has_no_work(evaluated):
    """upstream: test_utils_compute_idle_time"""
    idle = {str(key): metrics.idle_time_ns for key, metrics in evaluated.metrics.items()}
    assert (idle["CPU (before)"], idle["enqueues"]) == (10_000, 0)
    assert idle["CPU (after)"] == 50_000 + 30_000  # before the launch, and after the kernel
    assert named(evaluated, "CPU (after)").fraction_idle_time == pytest.approx(0.8)


def test_self_time_excludes_children_but_not_device_work(evaluated):
    """upstream: test_utils_compute_self_time"""
    assert named(evaluated, "enqueues").self_time_ns == 30_000 - 3 * 1_000
    with profile() as prof:
        torch.nn.Linear(20, 30)(torch.randn(8, 20)).sum()
    for key, metrics in BasicEvaluation(prof).metrics.items():
        inside = sum(child.duration_time_ns for child in key.event.children)
        assert metrics.self_time_ns == metrics.duration_time_ns - inside
        assert metrics.duration_time_ns == key.event.duration_time_ns


def test_without_a_device_there_is_no_queue(capsys):
    """upstream: test_utils_compute_queue_depth_when_no_cuda_events"""
    with profile() as prof:
        torch.ones(4) + 1
    evaluation = BasicEvaluation(prof)
    assert evaluation.queue_depth_list == [] and evaluation.cuda_events == []
    assert all(metrics.idle_time_ns == metrics.queue_depth == 0 for metrics in evaluation.metrics.values())
    assert evaluation.get_optimizable_events(3) == [] and "No events to optimize" in capsys.readouterr().out


def test_copies_do_not_count_as_kernels(tmp_path):
    made = TraceBuilder()
    made.launch(0, 5, 9, name="Memcpy HtoD")
    assert BasicEvaluation(made.load(tmp_path)).queue_depth_list == []


def test_events_that_run_while_the_queue_drains_are_optimizable(tmp_path, capsys):
    """upstream: test_utils_get_optimizable_events"""
    made = TraceBuilder()
    made.add("train.py(3): step", 0, 2000, "python_function")
    for number in range(5):
        made.launch(10 + 2 * number, 100 + 10 * number, 110 + 10 * number)
    made.add("waits for long", 120, 1400)
    made.add("waits a little", 1400, 1450)
    made.launch(1500, 1510, 1520)
    evaluation = BasicEvaluation(made.load(tmp_path))
    found = evaluation.get_optimizable_events(2)
    assert [str(key) for key in found][0] == "waits for long" and len(found) == 2
    assert "waits a little" not in map(str, evaluation.rank_events(9))  # the queue was empty by then
    printed = capsys.readouterr().out
    assert "Event:                waits for long" in printed
    assert "Source code location: train.py(3): step" in printed and "Percentage idle time: " in printed


def test_overlapping_intervals_count_once():
    """upstream: test_utils_intervals_overlap"""

    class Node:
        id, start_time_ns, end_time_ns = 1, 10, 20

    intervals = [Interval(0, 12), Interval(11, 12), Interval(11, 13), Interval(18, 30), Interval(19, 20)]
    before = repr(intervals)
    assert EventKey(Node).intervals_overlap(intervals) == 3 + 2
    assert EventKey(Node).intervals_overlap([]) == 0 and repr(intervals) == before


def test_nodes_are_traversed_and_searched(tmp_path):
    """upstream: test_dfs, test_bfs"""
    made = TraceBuilder()
    for name, start, end in (("a", 0, 50), ("b", 1, 20), ("c", 2, 5), ("d", 30, 40), ("e", 60, 70)):
        made.add(name, start, end)
    roots = made.load(tmp_path).tree()
    assert "".join(node.name for node in traverse_dfs(roots)) == "abcde"
    assert "".join(node.name for node in traverse_bfs(roots)) == "aebdc"
    assert source_code_location(roots[0]) == "No source code location found"
    assert index_of_first_match([1, 5, 7, 5], lambda value: value == 5, start=2) == 3
    assert index_of_first_match([1, 5], lambda value: value == 5, end=1) is None
    assert (argmax([3, 9, 2, 9]), argmax([3, 9, 2, 8], start=2), argmax([], start=0)) == (1, 3, None)
