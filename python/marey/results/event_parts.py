"""Small types used by events: intervals, kernels and metadata."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from marey._warnings import warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


@dataclass(slots=True)
class Interval:
    """A time interval in microseconds."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """Return the length of the interval."""
        return self.end - self.start


class Kernel(NamedTuple):
    """Device work launched by a call: its duration in microseconds."""

    name: str
    device: int
    duration: float


class EventMetadata(NamedTuple):
    """Facts about device work."""

    registers_per_thread: int | None
    shared_memory: int | None
    grid: list[int] | None
    block: list[int] | None
    priority: int | None
    blocks_per_sm: float | None
    warps_per_sm: float | None
    occupancy: Any
    est_occupancy_pct: float | None
    queued: int | None
    graph_id: int | None
    graph_node_id: int | None
    stream: int | None
    context: int | None
    channel: int | None
    channel_type: int | None
    hsa_queue: int | None
    bytes: int | None
    bandwidth_gb_s: float | None
    collective_name: str | None
    dtype: str | None
    in_msg_nelems: int | None
    out_msg_nelems: int | None
    in_split_size: str | None
    out_split_size: str | None
    global_rank_start: int | None
    global_rank_stride: int | None
    group_size: int | None
    process_group_name: str | None
    process_group_desc: str | None
    group_ranks: str | None
    rank: int | None
    src_rank: int | None
    dst_rank: int | None
    seq: int | None
    is_async: bool | None


# The keys of these facts in traces, where they are not the names of the fields with spaces.
_KEYS = {
    "est_occupancy_pct": "est. achieved occupancy %",
    "bandwidth_gb_s": "memory bandwidth (GB/s)",
    "process_group_desc": "Process Group Description",
    "group_ranks": "Process Group Ranks",
    "is_async": "Is asynchronized op",
} | {
    key.lower().replace(" ", "_"): key
    for key in (
        "blocks per SM,warps per SM,channel_type,hsa_queue,Collective name,In msg nelems,Out msg nelems,In split size,"
        "Out split size,Global rank start,Global rank stride,Group size,Process Group Name,Rank,Src Rank,Dst Rank,Seq"
    ).split(",")
}
_TEXTS = "collective_name dtype in_split_size out_split_size process_group_name process_group_desc group_ranks".split()


def _metadata_value(field: str, value: Any) -> Any:
    """Convert a value, which may be text in traces, to the type of its field."""
    if not isinstance(value, str):
        return value
    if field in _TEXTS:
        return value.strip('"')
    if field == "is_async":
        return value in ("1", "true")
    import json

    return json.loads(value)


def event_metadata(values: Mapping[str, Any] | None) -> EventMetadata | None:
    """Make EventMetadata from a dict with the keys of traces; None if it has none of them."""
    if not values:
        return None
    found = {field: values.get(_KEYS.get(field, field.replace("_", " "))) for field in EventMetadata._fields}
    if all(value is None for value in found.values()):
        return None
    return EventMetadata(**{field: _metadata_value(field, value) for field, value in found.items()})


def format_time(time_us: float) -> str:
    """Format a time as in tables: 1.234ms."""
    if time_us >= 1e6:
        return f"{time_us / 1e6:.3f}s"
    if time_us >= 1e3:
        return f"{time_us / 1e3:.3f}ms"
    return f"{time_us:.3f}us"


def _formatted(name: str) -> property:
    return property(lambda self: format_time(getattr(self, name)), doc=f"{name} as text.")


def old_name(old: str, new: str) -> property:
    """Make a property that warns about its deprecated name and returns the attribute ``new``."""

    def get(self: Any) -> Any:
        warn(f"`{old}` is deprecated. Use `{new}` instead.", FutureWarning)
        return getattr(self, new)

    return property(get, doc=f"The old name of {new}.")


class FormattedTimesMixin:
    """Times per call, and times as text, for a class with ``*_time_total`` and ``count`` attributes."""

    count: int
    if TYPE_CHECKING:

        @property
        def cpu_time_total(self) -> float: ...
        @property
        def device_time_total(self) -> float: ...

    cpu_time_str = _formatted("cpu_time")
    device_time_str = _formatted("device_time")
    cpu_time_total_str = _formatted("cpu_time_total")
    device_time_total_str = _formatted("device_time_total")
    self_cpu_time_total_str = _formatted("self_cpu_time_total")
    self_device_time_total_str = _formatted("self_device_time_total")

    @property
    def cpu_time(self) -> float:
        """The average CPU time of a call in microseconds."""
        return 0.0 if self.count == 0 else 1.0 * self.cpu_time_total / self.count

    @property
    def device_time(self) -> float:
        """The average device time of a call in microseconds."""
        return 0.0 if self.count == 0 else 1.0 * self.device_time_total / self.count

    cuda_time = old_name("cuda_time", "device_time")
