"""The patterns that Marey can find."""

from __future__ import annotations

import re

from marey.results.tree import breadth_first, depth_first
from marey.torch import _pattern_gains
from marey.torch._pattern import Pattern, input_devices, input_dtypes, input_shapes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from marey.results.tree import _ProfilerEvent

_TUNING = "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html"


def _function(event: _ProfilerEvent) -> Any:
    """Return ("torch/optim/sgd.py", "SGD.step") for a Python call; ("", "") for anything else."""
    head, separator, function = event.name.partition("): ")
    return (head.rpartition("(")[0], function) if separator else ("", "")


def _is_method(event: _ProfilerEvent, name: str, file: str | None = None) -> bool:
    """Return whether the event is a call of a function with that name, in any class."""
    own_file, function = _function(event)
    return function.rpartition(".")[2] == name and (file is None or own_file.endswith(file))


class NamePattern(Pattern):
    """Nodes whose names match a regular expression."""

    name = "Matched Name Event"

    def __init__(self, prof: Any, name: str, should_benchmark: bool = False) -> None:
        super().__init__(prof, should_benchmark)
        self.description = f"Matched Name Event: {name}"
        self._expression = re.compile(name)

    def match(self, event: _ProfilerEvent) -> bool:
        return self._expression.search(event.name) is not None


class ExtraCUDACopyPattern(Pattern):
    """A tensor that is filled on the CPU and then moved to a device: it could be created there."""

    name = "Extra CUDA Copy Pattern"
    description = (
        "Filled a CPU tensor and immediately moved it to GPU. "
        "Please initialize it on the device: torch.zeros(10, device=...)."
    )
    url = f"{_TUNING}#create-tensors-directly-on-the-target-device"
    needs_shapes = needs_stack = True
    _FILLS = ("aten::fill_", "aten::zero_", "aten::normal_", "aten::uniform_")

    def match(self, event: _ProfilerEvent) -> bool:
        if event.name != "aten::to":
            return False
        copy = event
        for name in ("aten::_to_copy", "aten::copy_"):
            children = copy.children
            if not children or children[-1].name != name:
                return False
            copy = children[-1]
        to, source = (input_dtypes(copy) + (None, None))[:2]
        if to is None or to != source or len(set(input_devices(copy)[:2])) != 2:
            return False
        before = event.parent and self.prev_of(event.parent)
        while before is not None and before.children:
            before = before.children[-1]
        return before is not None and before.name in self._FILLS

    def benchmark(self, events: list[_ProfilerEvent]) -> Any:
        return _pattern_gains.of_making_on_the_device(events)


class ForLoopIndexingPattern(Pattern):
    """A loop over the elements of a tensor that does the same with each."""

    name = "For Loop Indexing Pattern"
    description = "For loop indexing detected. Vectorization recommended."
    least_repetitions = 10
    _INDEXING = "aten::select"

    def match(self, event: _ProfilerEvent) -> bool:
        before, after = self.siblings_of(event)
        return event in self._loops([*before, event, *after])

    def matched_events(self) -> list[_ProfilerEvent]:
        """Return the first indexing of each loop."""
        if self.skip:
            return []
        found = [event for roots in self.tid_root.values() for event in self._loops(roots)]
        for event in breadth_first(self.event_tree):
            found += self._loops(event.children)
        return found

    def _loops(self, together: list[_ProfilerEvent]) -> Iterator[_ProfilerEvent]:
        """Yield the first indexing of each loop in a sequence of sibling nodes."""
        names = [event.name for event in together]
        places = [place for place, name in enumerate(names) if name == self._INDEXING]
        bodies = [names[start:end] for start, end in zip(places, [*places[1:], len(names)])]
        if not bodies:
            return
        first = 0
        for number, body in enumerate(bodies[1:] + [[]], 1):
            if body == bodies[first]:
                continue
            # After the last iteration, the program continues with something else.
            is_last = bool(body) and body[: len(bodies[first])] == bodies[first]
            if number - first + is_last >= self.least_repetitions:
                yield together[places[first]]
            first = number + is_last
            if first >= len(bodies):
                return


class FP32MatMulPattern(Pattern):
    """Matrix products in float32 on a GPU that supports TensorFloat-32, with TensorFloat-32 disabled."""

    name = "FP32 MatMul Pattern"
    description = (
        "You are currently using GPU that supports TF32. "
        "Please enable TF32 by setting 'torch.backends.cuda.matmul.allow_tf32 = True'"
    )
    url = "https://pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-devices"
    needs_shapes = True

    @property
    def skip(self) -> bool:
        import torch

        if super().skip or torch.version.hip is not None:
            return True
        numbers = [int(number) for arch in torch.cuda.get_arch_list() for number in re.findall(r"_(\d+)", arch)]
        return not numbers or min(numbers) < 80

    def match(self, event: _ProfilerEvent) -> bool:
        if event.name != "aten::mm" or event.extra_fields.allow_tf32_cublas:
            return False
        device = (input_devices(event) + (None,))[0]
        return device is not None and device.startswith("cuda") and input_dtypes(event)[0] == "float32"

    def report(self, event: _ProfilerEvent) -> str:
        return self.description

    def benchmark(self, events: list[_ProfilerEvent]) -> Any:
        return _pattern_gains.of_tf32(events)


class OptimizerSingleTensorPattern(Pattern):
    """An optimizer that processes one parameter after the other."""

    name = "Optimizer Single Tensor Pattern"
    description = (
        "Detected optimizer running with single tensor implementation. "
        "Please enable multi tensor implementation by passing 'foreach=True' into optimizer."
    )
    needs_stack = True
    optimizers_with_foreach = ("adam", "sgd", "adamw")

    def match(self, event: _ProfilerEvent) -> bool:
        return any(_is_method(event, f"_single_tensor_{name}") for name in self.optimizers_with_foreach)


class SynchronizedDataLoaderPattern(Pattern):
    """A data loader that loads in the process that waits for the data."""

    name = "Synchronized DataLoader Pattern"
    description = (
        "Detected DataLoader running with synchronized implementation. "
        "Please enable asynchronous dataloading by setting num_workers > 0 when initializing DataLoader."
    )
    url = f"{_TUNING}#enable-async-data-loading-and-augmentation"
    needs_stack = True
    _FILE = "torch/utils/data/dataloader.py"

    def match(self, event: _ProfilerEvent) -> bool:
        if not _is_method(event, "__iter__", self._FILE):
            return False
        made = next((child for child in event.children if _is_method(child, "_get_iterator", self._FILE)), None)
        if made is None:
            return False
        return not any(_is_method(child, "check_worker_number_rationality", self._FILE) for child in made.children)


class GradNotSetToNonePattern(Pattern):
    """Gradients that are filled with zeros although they could be released."""

    name = "Gradient Set To Zero Instead of None Pattern"
    description = (
        "Detected gradient set to zero instead of None. Please add 'set_to_none=True' when calling zero_grad()."
    )
    url = f"{_TUNING}#disable-gradient-calculation-for-validation-or-inference"
    needs_stack = True

    def match(self, event: _ProfilerEvent) -> bool:
        if not _is_method(event, "zero_grad"):
            return False
        return any(
            node.name in ("aten::zero_", "aten::_foreach_zero_") and getattr(node.parent, "name", None) != "aten::zeros"
            for node in depth_first(event.children)
        )


class Conv2dBiasFollowedByBatchNorm2dPattern(Pattern):
    """A convolution with a bias that the following normalization removes."""

    name = "Enabling Bias in Conv2d Followed By BatchNorm Pattern"
    description = "Detected bias enabled in Conv2d that is followed by BatchNorm2d. Please set 'bias=False' in Conv2d."
    url = f"{_TUNING}#disable-bias-for-convolutions-directly-followed-by-a-batch-norm"
    needs_shapes = needs_stack = True

    def match(self, event: _ProfilerEvent) -> bool:
        if event.name != "aten::conv2d" or len(dtypes := input_dtypes(event)) < 3 or dtypes[2] is None:
            return False
        module = self.go_up_until(event, lambda node: node.name.startswith("nn.Module: Conv2d"))
        following = None if module is None else self._next_module(module)
        return following is not None and following.name.startswith("nn.Module: BatchNorm2d")

    def _next_module(self, module: _ProfilerEvent) -> _ProfilerEvent | None:
        return next((node for node in self.siblings_of(module)[1] if node.name.startswith("nn.Module: ")), None)


class MatMulDimInFP16Pattern(Pattern):
    """Matrix products in half precision with sizes that are not multiples of eight."""

    name = "Matrix Multiplication Dimension Not Aligned Pattern"
    description = "Detected matmul with dimension not aligned. Please use matmul with aligned dimension."
    url = f"{_TUNING}#use-mixed-precision-and-amp"
    needs_shapes = needs_stack = True
    multiple = 8

    def match(self, event: _ProfilerEvent) -> bool:
        if event.name not in ("aten::mm", "aten::bmm", "aten::addmm"):
            return False
        if (input_dtypes(event) + (None,))[0] not in ("float16", "bfloat16"):
            return False
        return any(size % self.multiple for shape in input_shapes(event) for size in shape[-2:])

    def benchmark(self, events: list[_ProfilerEvent]) -> Any:
        return _pattern_gains.of_aligned_sizes(events, self.multiple)
