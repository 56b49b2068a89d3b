"""Measures the speedup without a pattern: for each `input_shapes`, the fraction of time that remains."""

from __future__ import annotations

from marey.results.tree import depth_first
from marey.torch._pattern import input_devices, input_dtypes, input_shapes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from marey.results.tree import _ProfilerEvent


def _seconds(statement: str, **names: Any) -> float:
    import torch.utils.benchmark

    return float(torch.utils.benchmark.Timer(statement, globals={"torch": torch, **names}).timeit(10).mean)


def _shares(events: list[_ProfilerEvent], measure: Callable[[_ProfilerEvent], Any]) -> Any:
    """Measure each distinct shape once."""
    shares = {}
    for event in events:
        shape = input_shapes(event)
        if shape not in shares:
            shares[shape] = measure(event)
    return shares


def _device(event: _ProfilerEvent) -> Any:
    """Return the device of the first input."""
    return input_devices(event)[0]


def _copy_of(event: _ProfilerEvent) -> Any:
    """Return the copy made by an ``aten::to``: its inputs are on both devices."""
    return next(node for node in depth_first([event]) if node.name == "aten::copy_")


def of_making_on_the_device(events: list[_ProfilerEvent]) -> Any:
    def measure(event: _ProfilerEvent) -> Any:
        names = {"shape": input_shapes(event)[0], "device": _device(_copy_of(event))}
        moved = _seconds("torch.ones(shape).to(device)", **names)
        return _seconds("torch.ones(shape, device=device)", **names) / moved

    return _shares(events, measure)


def _matrices(event: _ProfilerEvent, multiple: int = 1) -> Any:
    import torch

    dtype = getattr(torch, input_dtypes(event)[0] or "")
    pair = [shape for shape in input_shapes(event) if len(shape) >= 2][-2:]
    sizes = [[-(-size // multiple) * multiple for size in shape] for shape in pair]
    return {name: torch.randn(size, device=_device(event), dtype=dtype) for name, size in zip(("a", "b"), sizes)}


def of_tf32(events: list[_ProfilerEvent]) -> Any:
    import torch

    def measure(event: _ProfilerEvent) -> Any:
        switches, names = torch.backends.cuda.matmul, _matrices(event)
        before, seconds = switches.fp32_precision, {}
        try:
            for precision in ("ieee", "tf32"):
                switches.fp32_precision = precision
                seconds[precision] = _seconds("torch.matmul(a, b)", **names)
        finally:
            switches.fp32_precision = before
        return seconds["tf32"] / seconds["ieee"]

    return _shares(events, measure)


def of_aligned_sizes(events: list[_ProfilerEvent], multiple: int) -> Any:
    def measure(event: _ProfilerEvent) -> Any:
        as_it_is = _seconds("torch.matmul(a, b)", **_matrices(event))
        return _seconds("torch.matmul(a, b)", **_matrices(event, multiple)) / as_it_is

    return _shares(events, measure)
