"""Small types used by events: intervals, kernels, metadata, and tables of names and memory records."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

class Interval:
    start: float
    end: float
    def __init__(self, start: float, end: float) -> None: ...
    def elapsed_us(self) -> float: ...
    def __eq__(self, other: object) -> bool: ...

class Kernel(NamedTuple):
    name: str
    device: int
    duration: float

class EventMetadata(NamedTuple):
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

def event_metadata(values: Mapping[str, Any] | None) -> EventMetadata | None: ...
def format_time(time_us: float) -> str: ...
def old_name(old: str, new: str) -> property: ...

class FormattedTimesMixin:
    @property
    def cpu_time_str(self) -> str: ...
    @property
    def device_time_str(self) -> str: ...
    @property
    def cpu_time_total_str(self) -> str: ...
    @property
    def device_time_total_str(self) -> str: ...
    @property
    def self_cpu_time_total_str(self) -> str: ...
    @property
    def self_device_time_total_str(self) -> str: ...
    @property
    def cpu_time(self) -> float: ...
    @property
    def device_time(self) -> float: ...
    @property
    def cuda_time(self) -> float: ...

class StringTable(defaultdict[str, str]):
    def __missing__(self, key: str) -> str: ...

class MemRecordsAcc:
    def __init__(self, mem_records: Sequence[Any]) -> None: ...
    def in_interval(self, start_ns: int, end_ns: int) -> Iterator[Any]: ...

class EnforceUnique:
    seen: set[tuple[Any, ...]]
    def __init__(self) -> None: ...
    def see(self, *key: Any) -> None: ...
