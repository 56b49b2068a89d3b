"""Finds avoidable costs in a recording: the names of ``torch.profiler._pattern_matcher``.

from marey.torch.patterns import report_all_anti_patterns

with marey.torch.profile(record_shapes=True, with_stack=True, call_lines=True) as prof:
    train()
report_all_anti_patterns(prof)
"""

from __future__ import annotations

from marey.torch._pattern import NO_LOCATION, Pattern, input_dtypes, input_shapes, source_code_location
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from marey.results.tree import _ProfilerEvent

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

REPORTED = (
    ExtraCUDACopyPattern,
    FP32MatMulPattern,
    OptimizerSingleTensorPattern,
    SynchronizedDataLoaderPattern,
    GradNotSetToNonePattern,
    Conv2dBiasFollowedByBatchNorm2dPattern,
    MatMulDimInFP16Pattern,
)
_FILE = "torchtidy_report.json"
_FRAME = "-" * 40 + "TorchTidy Report" + "-" * 40


def _finding(pattern: Any, event: _ProfilerEvent) -> tuple[str, dict[str, Any]]:
    """Return (file, entry in the report)."""
    location = source_code_location(event)
    file, line = ("", 0) if location == NO_LOCATION else location.rsplit(":", 1)
    return file, {
        "line_number": int(line),
        "name": pattern.name,
        "url": pattern.url,
        "message": pattern.description,
    }


def _write(folder: str, findings: Any) -> None:
    """Write the findings; keep existing entries of other files."""
    import json
    import os

    path = os.path.join(folder, _FILE)
    known = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            known = json.load(file)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**known, **findings}, file, indent=4)


def report_all_anti_patterns(
    prof: Any, should_benchmark: bool = False, print_enable: bool = True, json_report_dir: str | None = None
) -> None:
    """Report the patterns that were found: each place once, and the number of matches for each pattern.

    Args:
        prof: A stopped profiler, or a ``marey.Trace``.
        should_benchmark: Whether to measure possible speedups, for patterns that support it.
        print_enable: Whether to print the report.
        json_report_dir: A folder for ``torchtidy_report.json``, which has for each file a list of findings with
            ``line_number``, ``name``, ``url`` and ``message``.
    """
    reported: dict[Any, Any] = {}
    summaries: list[str] = []
    findings: dict[str, list[dict[str, Any]]] = {}
    for pattern in (kind(prof, should_benchmark) for kind in REPORTED):
        events = pattern.matched_events()
        if not events:
            continue
        summaries.append(pattern.summary(events))
        for event in events:
            message = pattern.report(event)
            if message not in reported:
                file, reported[message] = _finding(pattern, event)
                findings.setdefault(file, []).append(reported[message])
    if json_report_dir is not None:
        _write(json_report_dir, findings)
    if print_enable:
        print("\n".join([_FRAME, "Matched Events:", *reported, "Summary:", *summaries, _FRAME]))
