"""PyTorch's own pattern matcher and evaluation find in Marey's recordings what they find in PyTorch's."""

import json

import pytest
import torch
import torch.profiler
from torch import nn
from torch.profiler import _utils

import marey.torch

matcher = pytest.importorskip("torch.profiler._pattern_matcher", reason="PyTorch 2.14 removed it")
PROFILERS = (torch.profiler.profile, marey.torch.profile)


def recorded(profile, program, **options):
    with profile(**{"with_stack": True, "record_shapes": True, **options}) as prof:
        program()
    return prof


def found(kind, program, *arguments):
    """The names of the events that a pattern finds, which are the same with both profilers."""
    theirs, ours = (
        [event.name for event in kind(recorded(profile, program), *arguments).matched_events()] for profile in PROFILERS
    )
    assert ours == theirs
    return ours


def loop_over_rows():
    x = torch.ones(100, 100)
    for i in range(100):
        x[i] = i


def optimizer_step(foreach):
    net = nn.Linear(4, 4)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1, foreach=foreach)

    def step():
        net(torch.ones(2, 4)).sum().backward()
        optimizer.step()

    return step


def gradients_after(set_to_none):
    net = nn.Linear(3, 3)
    optimizer = torch.optim.Adam(net.parameters())

    def step():
        net(torch.ones(1, 3)).sum().backward()
        optimizer.zero_grad(set_to_none=set_to_none)

    return step


def convolution(has_bias):
    net = nn.Sequential(nn.Conv2d(3, 3, 3, 1, 1, bias=has_bias), nn.BatchNorm2d(3))
    return lambda: net(torch.randn(1, 3, 8, 8))


def loader(workers):
    return lambda: next(iter(torch.utils.data.DataLoader(torch.ones(4, 3), num_workers=workers)))


def half_precision(size):
    x = torch.ones(size, size, dtype=torch.bfloat16)
    return lambda: x @ x


@pytest.mark.parametrize(
    "kind, program, count",
    [
        ("ForLoopIndexingPattern", loop_over_rows, 1),
        ("OptimizerSingleTensorPattern", optimizer_step(False), 1),
        ("OptimizerSingleTensorPattern", optimizer_step(True), 0),
        ("GradNotSetToNonePattern", gradients_after(False), 1),
        ("GradNotSetToNonePattern", gradients_after(True), 0),
        ("Conv2dBiasFollowedByBatchNorm2dPattern", convolution(True), 1),
        ("Conv2dBiasFollowedByBatchNorm2dPattern", convolution(False), 0),
        ("SynchronizedDataLoaderPattern", loader(0), 1),
        ("SynchronizedDataLoaderPattern", loader(1), 0),
        ("MatMulDimInFP16Pattern", half_precision(201), 1),
        ("MatMulDimInFP16Pattern", half_precision(200), 0),
    ],
)
def test_pytorchs_patterns_are_found(kind, program, count):
    assert len(found(getattr(matcher, kind), program)) == count


def test_pytorchs_pattern_of_names_finds_operators():
    x = torch.ones(4, 4)
    assert found(matcher.NamePattern, lambda: [x @ x for _ in range(5)], "aten::mm") == ["aten::mm"] * 5


def test_pytorchs_report_has_equal_source_locations(tmp_path, capsys):
    step = optimizer_step(False)
    reports = []
    for number, (profile, options) in enumerate(zip(PROFILERS, ({}, {"call_lines": True}))):
        folder = tmp_path / str(number)
        folder.mkdir()
        matcher.report_all_anti_patterns(recorded(profile, step, **options), json_report_dir=str(folder))
        reports.append(json.loads((folder / "torchtidy_report.json").read_text()))
    assert reports[0] == reports[1]
    (file,) = reports[1]
    assert file.endswith("test_patterns.py")
    assert capsys.readouterr().out.count("Optimizer Single Tensor Pattern: 1 events matched.") == 2


def test_pytorchs_evaluation_reads_the_tree():
    program = half_precision(64)
    on_cpu = {"with_stack": False, "activities": [torch.profiler.ProfilerActivity.CPU]}
    theirs, ours = (_utils.BasicEvaluation(recorded(profile, program, **on_cpu).profiler) for profile in PROFILERS)
    assert [key.event.name for key in ours.metrics] == [key.event.name for key in theirs.metrics]
    for key, metrics in ours.metrics.items():
        children = sum(child.duration_time_ns for child in key.event.children)
        assert metrics.self_time_ns == key.event.duration_time_ns - children
    assert ours.cuda_events == theirs.cuda_events == []
