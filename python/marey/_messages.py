"""Links the messages that multiprocessing carries between processes: queues, pipes, pools and executors.

A message that a recorded thread sends contains a token. Its pickle is one that any Python reads, with or without Marey:
it makes a pair and takes the second item.
"""

from __future__ import annotations

import operator
import sys

from marey import _marey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MARK = b"marey token "


class _Message:
    """Pickles to `value`, with a token in front of it."""

    __slots__ = ("token", "value")

    def __init__(self, token: bytes, value: Any) -> None:
        self.token = token
        self.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        return operator.getitem, ((MARK + self.token, self.value), 1)


def follow() -> None:
    """Put tokens on messages from now on; once multiprocessing has been imported."""
    pickler = sys.modules["multiprocessing.reduction"].ForkingPickler
    if getattr(pickler, "marey_tokens", False):
        return
    dumps, loads = _marey.with_tokens(pickler.__dict__["dumps"].__func__, pickler.loads, _Message, MARK)
    pickler.dumps = classmethod(dumps)
    pickler.loads = staticmethod(loads)
    pickler.marey_tokens = True
