"""``marey.steps``: marks the iterations of a loop as steps."""

from __future__ import annotations

from typing import Generic, TypeVar

from marey._marey import async_range, is_recording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_T = TypeVar("_T")


class steps(Generic[_T]):
    """Mark each iteration of a loop as a step: ``for batch in marey.steps(batches):``.

    A step lasts from one item to the next; so the time to read the next item is part of it, as in the loop. Steps are
    recorded while a session runs. It can be put around a progress bar (``marey.steps(tqdm(batches))``) or inside one
    (``tqdm(marey.steps(batches))``), which then sees the number of items.

    Args:
        iterable: The items of the loop.
        name: The name of the steps; each has its number, as in "ProfilerStep#3".
        start: The number of the first one.
    """

    def __init__(self, iterable: Iterable[_T], name: str = "ProfilerStep", start: int = 0) -> None:
        if not isinstance(name, str):
            raise TypeError(f"steps: the name must be a str, not {type(name).__name__}")
        if not hasattr(iterable, "__iter__") and not hasattr(iterable, "__getitem__"):
            raise TypeError(f"steps: expected an iterable, got {type(iterable).__name__}")
        self._iterable = iterable
        self._name = name
        self._start = start

    def __len__(self) -> int:
        return len(self._iterable)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[_T]:
        number = self._start
        step = None
        try:
            for item in self._iterable:
                if step is not None:
                    step.end()
                step = self._open(number)
                number += 1
                yield item
        finally:
            if step is not None:
                step.end()

    def _open(self, number: int) -> async_range | None:
        return async_range(f"{self._name}#{number}", is_step=True) if is_recording() else None
