"""Finds avoidable costs in a recording: the names of ``torch.profiler._pattern_matcher``.

from marey.torch.patterns import report_all_anti_patterns

with marey.torch.profile(record_shapes=True, with_stack=True, call_lines=True) as prof:
    train()
report_all_anti_patterns(prof)
"""

from marey.torch._pattern import Pattern, input_dtypes, input_shapes, source_code_location
from marey.torch._pattern_report import report_all_anti_patterns
from marey.torch._patterns import (
    Conv2dBiasFollowedByBatchNorm2dPattern,
    ExtraCUDACopyPattern,
    ForLoopIndexingPattern,
    FP32MatMulPattern,
    GradNotSetToNonePattern,
    MatMulDimInFP16Pattern,
    NamePattern,
    OptimizerSingleTensorPattern,
    SynchronizedDataLoaderPattern,
)

__all__ = [
    "Conv2dBiasFollowedByBatchNorm2dPattern",
    "ExtraCUDACopyPattern",
    "FP32MatMulPattern",
    "ForLoopIndexingPattern",
    "GradNotSetToNonePattern",
    "MatMulDimInFP16Pattern",
    "NamePattern",
    "OptimizerSingleTensorPattern",
    "Pattern",
    "SynchronizedDataLoaderPattern",
    "input_dtypes",
    "input_shapes",
    "report_all_anti_patterns",
    "source_code_location",
]
