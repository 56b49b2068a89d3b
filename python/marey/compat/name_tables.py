"""Tables of names and memory records, as PyTorch's own modules use them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict

from marey._marey import Error, readable_symbol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any


class StringTable(defaultdict[str, str]):
    """A dict from symbols to demangled names, filled on first use.

    Names of one character are kept because they would be demangled as types.
    """

    def __missing__(self, key: str) -> str:
        self[key] = readable_symbol(key) if len(key) > 1 else key
        return self[key]


class MemRecordsAcc:
    """Memory records ordered by time. A record is a sequence whose first item has ``start_ns()``."""

    def __init__(self, mem_records: Sequence[Any]) -> None:
        self._mem_records = mem_records
        order = sorted((record[0].start_ns(), index) for index, record in enumerate(mem_records))
        self._start_nses = [start for start, _ in order]
        self._indices = [index for _, index in order]

    def in_interval(self, start_ns: int, end_ns: int) -> Iterator[Any]:
        """Yield the records that start in the interval, both ends included."""
        first = bisect_left(self._start_nses, start_ns)
        last = bisect_right(self._start_nses, end_ns)
        for index in self._indices[first:last]:
            yield self._mem_records[index]


class EnforceUnique:
    """Raises an error if a key is seen twice."""

    seen: set[tuple[Any, ...]]

    def __init__(self) -> None:
        self.seen = set()

    def see(self, *key: Any) -> None:
        """Add a key. Raises ``marey.Error`` if it was added before."""
        if key in self.seen:
            raise Error(f"duplicate key: {key}")
        self.seen.add(key)
