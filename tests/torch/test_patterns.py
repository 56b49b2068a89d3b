"""Detection of patterns that waste time."""

import json

import pytest
import torch
from torch import nn

from marey.torch import profile
from marey.torch.patterns import (
    Conv2dBiasFollowedByBatchNorm2dPattern,
    ExtraCUDACopyPattern,
    ForLoopIndexingPattern,
    FP32MatMulPattern,
    GradNotSetToNonePattern,
    MatMulDimInFP16Pattern,
    NamePattern,
    OptimizerSingleTensorPattern,
    Pattern,
    SynchronizedDataLoaderPattern,
    report_all_anti_patterns,
    source_code_location,
)


def recorded(program, **options):
    with profile(**{"with_stack": True, "record_shapes": True, **options}) as prof:
        program()
    return prof


def count(kind, program, **options):
    return len(kind(recorded(program, **options)).matched_events())


def test_operators_are_found_by_name():
    """upstream: test_profiler_name_pattern"""
    x = torch.ones(4, 4)

    def products():
        for _ in range(5):
            x @ x
            x + x

    pattern = NamePattern(recorded(products, with_stack=False), "aten::mm")
    found = pattern.matched_events()
    assert [event.name for event in found] == ["aten::mm"] * 5
    assert pattern.summary(found) == "Matched Name Event: 5 events matched."
    assert pattern.report(found[0]).startswith("Matched Name Event: aten::mm\n")


def test_siblings_and_ancestors_of_a_node_are_found():
    """upstream: test_profiler_pattern_match_helper"""

    def program():
        y = torch.ones(4, 4) @ torch.ones(4, 4)
        y + 1

    pattern = Pattern(recorded(program, with_stack=False))
    roots = pattern.event_tree
    assert pattern.siblings_of(roots[0]) == ([], roots[1:]) and pattern.next_of(roots[0]) == roots[1]
    assert pattern.prev_of(roots[0]) is None and pattern.next_of(roots[-1]) is None
    first, second = roots[0].children[:2]
    assert pattern.siblings_of(second)[0] == [first] and pattern.prev_of(second) == first
    assert pattern.root_of(second) == roots[0] == pattern.go_up_until(second, lambda event: event.parent is None)
    assert pattern.go_up_until(second, lambda event: False) is None
    with pytest.raises(NotImplementedError):
        pattern.match(first)


def test_each_loop_over_elements_is_found_once():
    """upstream: test_profiler_for_loop_indexing_pattern"""
    x = torch.ones(100, 100)

    def writes():
        for i in range(100):
            x[i] = i

    def adds():
        y = 0
        for i in range(100):
            y += x[i]
        torch.zeros(3)

    def multiplies():
        y = x
        for _ in range(100):
            y = y @ x

    def fills_rows():
        for i in range(100):
            x[i, :] = torch.arange(100) + i

    def nine_times():
        for i in range(9):
            x[i] = i

    for expected, program in ((1, writes), (1, adds), (0, multiplies), (1, fills_rows), (0, nine_times)):
        assert count(ForLoopIndexingPattern, program, with_stack=False) == expected, program.__name__
    both = ForLoopIndexingPattern(recorded(lambda: (writes(), fills_rows()), with_stack=False))
    found = both.matched_events()
    assert len(found) == 2 and all(map(both.match, found)) and not both.match(both.next_of(found[0]))


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.SGD, torch.optim.AdamW])
def test_single_tensor_optimizers_are_found(kind):
    """upstream: test_profiler_optimizer_single_tensor_pattern"""
    net = nn.Linear(4, 4)

    def program(foreach):
        optimizer = kind(net.parameters(), lr=0.1, foreach=foreach)

        def step():
            net(torch.ones(2, 4)).sum().backward()
            optimizer.step()

        return step

    assert count(OptimizerSingleTensorPattern, program(False)) == 1
    assert count(OptimizerSingleTensorPattern, program(True)) == 0


def test_data_loaders_without_workers_are_found():
    """upstream: test_profiler_synchronized_dataloader_pattern"""
    data = torch.ones(4, 3)

    def program(workers):
        return lambda: next(iter(torch.utils.data.DataLoader(data, num_workers=workers)))

    assert count(SynchronizedDataLoaderPattern, program(0)) == 1
    assert count(SynchronizedDataLoaderPattern, program(1)) == 0


def test_zero_filled_gradients_are_found():
    """upstream: test_profiler_grad_not_set_to_none_pattern"""
    net = nn.Linear(3, 3)
    optimizer = torch.optim.Adam(net.parameters())

    def program(zero):
        def step():
            net(torch.ones(1, 3)).sum().backward()
            zero()

        return step

    for expected, zero in (
        (0, lambda: optimizer.zero_grad()),
        (0, lambda: optimizer.zero_grad(set_to_none=True)),
        (1, lambda: optimizer.zero_grad(set_to_none=False)),
        (0, lambda: net.zero_grad()),
        (1, lambda: net.zero_grad(set_to_none=False)),
    ):
        assert count(GradNotSetToNonePattern, program(zero)) == expected


def test_a_bias_before_batch_normalisation_is_found():
    """upstream: test_profiler_conv2d_bias_followed_by_batchnorm2d_pattern"""
    x = torch.randn(1, 3, 8, 8)
    for expected, layers in (
        (1, (nn.Conv2d(3, 3, 3, 1, 1), nn.BatchNorm2d(3))),
        (0, (nn.Conv2d(3, 3, 3, 1, 1, bias=False), nn.BatchNorm2d(3))),
        (0, (nn.Conv2d(3, 3, 3, 1, 1), nn.ReLU(), nn.BatchNorm2d(3))),
        (0, (nn.Conv2d(3, 3, 3, 1, 1),)),
    ):
        net = nn.Sequential(*layers)
        assert count(Conv2dBiasFollowedByBatchNorm2dPattern, lambda net=net: net(x)) == expected


def test_half_precision_matmuls_with_unaligned_sizes_are_found():
    """upstream: test_profiler_matmul_dim_fp16_pattern"""
    for expected, sizes, dtype in (
        (1, (201, 201), torch.bfloat16),
        (1, (3, 97, 97), torch.bfloat16),
        (0, (200, 200), torch.bfloat16),
        (0, (201, 201), torch.float32),
    ):
        x = torch.ones(sizes, dtype=dtype)
        assert count(MatMulDimInFP16Pattern, lambda x=x: x @ x) == expected
    x = torch.ones(9, 9, dtype=torch.bfloat16)
    pattern = MatMulDimInFP16Pattern(recorded(lambda: (x @ x, x @ x)), should_benchmark=True)
    found = pattern.matched_events()
    assert list(pattern.benchmark(found)) == [((9, 9), (9, 9))]
    assert pattern.summary(found).startswith(f"{pattern.name}: 2 events matched. Total Estimated Speedup: ")


def test_tensors_filled_on_the_cpu_and_moved_immediately_are_found():
    """upstream: test_profiler_extra_cuda_copy_pattern, _benchmark (the other device is PyTorch's meta device)"""
    kept = torch.ones(4)
    for expected, program in (
        (1, lambda: torch.ones(4).to("meta")),
        (1, lambda: torch.zeros(4).to("meta")),
        (1, lambda: torch.empty(4).fill_(5).to("meta")),
        (1, lambda: torch.full((4,), 2.0).to("meta")),
        (1, lambda: torch.rand(4).to("meta")),
        (0, lambda: torch.ones(4).to("cpu", torch.float64)),
        (0, lambda: torch.ones(4, device="meta")),
        (0, lambda: kept.to("meta")),
        (0, lambda: torch.ones(4).to("meta", torch.float64)),
    ):
        assert count(ExtraCUDACopyPattern, program) == expected
    pattern = ExtraCUDACopyPattern(recorded(lambda: torch.ones(4).to("meta")), should_benchmark=True)
    (share,) = pattern.benchmark(pattern.matched_events()).values()
    assert share > 0


def test_float32_matmuls_are_not_reported_without_a_gpu():
    """upstream: test_profiler_fp32_matmul_pattern"""
    x = torch.ones(4, 4)
    assert count(FP32MatMulPattern, lambda: x @ x) == 0


def test_patterns_that_need_missing_data_are_skipped():
    def program():
        nn.Sequential(nn.Conv2d(3, 3, 3), nn.BatchNorm2d(3))(torch.randn(1, 3, 8, 8))

    assert Conv2dBiasFollowedByBatchNorm2dPattern(recorded(program, record_shapes=False)).skip
    prof = recorded(program)
    assert not Conv2dBiasFollowedByBatchNorm2dPattern(prof).skip
    assert len(Conv2dBiasFollowedByBatchNorm2dPattern(prof.trace).matched_events()) == 1  # any trace can be searched


def test_the_report_has_source_locations_and_is_merged_into_a_file(tmp_path, capsys):
    """upstream: test_profiler_pattern_matcher_json_report"""
    x = torch.ones(100, 100)
    net = nn.Sequential(nn.Linear(100, 100), nn.ReLU(), nn.Linear(100, 10))
    optimizer = torch.optim.Adam(net.parameters(), foreach=False)

    def train():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), torch.zeros(100, dtype=torch.long))
        loss.backward()
        optimizer.step()

    (tmp_path / "torchtidy_report.json").write_text('{"other.py": []}')
    prof = recorded(train, call_lines=True)
    report_all_anti_patterns(prof, json_report_dir=tmp_path)
    printed = capsys.readouterr().out
    assert "TorchTidy Report" in printed and "Optimizer Single Tensor Pattern: 1 events matched." in printed
    report = json.loads((tmp_path / "torchtidy_report.json").read_text())
    assert report.pop("other.py") == []
    (file,) = report
    assert file.endswith("test_patterns.py")
    (finding,) = report[file]
    assert set(finding) == {"line_number", "name", "url", "message"}
    (event,) = OptimizerSingleTensorPattern(prof).matched_events()
    assert source_code_location(event) == f"{file}:{finding['line_number']}"
    line = train.__code__.co_firstlineno + 4
    assert finding["line_number"] == line and f"[Source Code Location] {file}:{line}" in printed


def test_a_report_without_source_locations_is_written(tmp_path, capsys):
    x = torch.ones(9, 9, dtype=torch.bfloat16)
    report_all_anti_patterns(recorded(lambda: x @ x, with_stack=False).trace, json_report_dir=tmp_path)
    report = json.loads((tmp_path / "torchtidy_report.json").read_text())
    assert [finding["line_number"] for finding in report[""]] == [0]
    assert "No source code location found" in capsys.readouterr().out
