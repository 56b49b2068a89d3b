"""The small types around events: times, kernels, metadata, and tables of names and memory records."""

from bisect import bisect_left, bisect_right
from collections import defaultdict, namedtuple

from marey._marey import Error, readable_symbol
from marey._warnings import warn


class Interval:
    """From start to end, microseconds."""

    __slots__ = ("start", "end")

    def __init__(self, start, end):
        self.start = start
        self.end = end

    def elapsed_us(self):
        """How long it is."""
        return self.end - self.start

    def __repr__(self):
        return f"Interval(start={self.start}, end={self.end})"

    def __eq__(self, other):
        if not isinstance(other, Interval):
            return NotImplemented
        return self.start == other.start and self.end == other.end

    __hash__ = None


Kernel = namedtuple("Kernel", ["name", "device", "duration"])

# What is known of device work: the field, and the key under which traces have it.
_METADATA_KEYS = {
    "registers_per_thread": "registers per thread",
    "shared_memory": "shared memory",
    "grid": "grid",
    "block": "block",
    "priority": "priority",
    "blocks_per_sm": "blocks per SM",
    "warps_per_sm": "warps per SM",
    "occupancy": "occupancy",
    "est_occupancy_pct": "est. achieved occupancy %",
    "queued": "queued",
    "graph_id": "graph id",
    "graph_node_id": "graph node id",
    "stream": "stream",
    "context": "context",
    "channel": "channel",
    "channel_type": "channel_type",
    "bytes": "bytes",
    "bandwidth_gb_s": "memory bandwidth (GB/s)",
    "collective_name": "Collective name",
    "dtype": "dtype",
    "in_msg_nelems": "In msg nelems",
    "out_msg_nelems": "Out msg nelems",
    "in_split_size": "In split size",
    "out_split_size": "Out split size",
    "global_rank_start": "Global rank start",
    "global_rank_stride": "Global rank stride",
    "group_size": "Group size",
    "process_group_name": "Process Group Name",
    "process_group_desc": "Process Group Description",
    "group_ranks": "Process Group Ranks",
    "rank": "Rank",
    "src_rank": "Src Rank",
    "dst_rank": "Dst Rank",
    "seq": "Seq",
    "is_async": "Is asynchronized op",
}
_FLOATS = {"blocks_per_sm", "warps_per_sm", "est_occupancy_pct", "bandwidth_gb_s"}
_TEXTS = {
    "collective_name",
    "dtype",
    "in_split_size",
    "out_split_size",
    "process_group_name",
    "process_group_desc",
    "group_ranks",
}
_JSON = {"grid", "block", "occupancy"}

EventMetadata = namedtuple("EventMetadata", list(_METADATA_KEYS))


def _metadata_value(field, value):
    """A value as its field has it; traces may have it as text."""
    if not isinstance(value, str):
        return value
    if field in _TEXTS:
        return value.strip('"')
    if field == "is_async":
        return value in ("1", "true")
    if field in _JSON:
        import json

        return json.loads(value)
    return float(value) if field in _FLOATS else int(value)


def event_metadata(values):
    """EventMetadata of a dict with the keys of traces; None where it has none of them."""
    if not values:
        return None
    found = {field: values.get(key) for field, key in _METADATA_KEYS.items()}
    if all(value is None for value in found.values()):
        return None
    return EventMetadata(**{field: _metadata_value(field, value) for field, value in found.items()})


def format_time(time_us):
    """As tables have it: 1.234ms."""
    if time_us >= 1e6:
        return f"{time_us / 1e6:.3f}s"
    if time_us >= 1e3:
        return f"{time_us / 1e3:.3f}ms"
    return f"{time_us:.3f}us"


def _formatted(name):
    return property(lambda self: format_time(getattr(self, name)), doc=f"{name} as text.")


def old_name(old, new):
    """A property that warns and gives what is now called ``new``."""

    def get(self):
        warn(f"`{old}` is deprecated. Use `{new}` instead.", FutureWarning)
        return getattr(self, new)

    return property(get, doc=f"The old name of {new}.")


class FormattedTimesMixin:
    """Times per call, and times as text. A class has ``*_time_total`` and ``count`` of its own."""

    cpu_time_str = _formatted("cpu_time")
    device_time_str = _formatted("device_time")
    cpu_time_total_str = _formatted("cpu_time_total")
    device_time_total_str = _formatted("device_time_total")
    self_cpu_time_total_str = _formatted("self_cpu_time_total")
    self_device_time_total_str = _formatted("self_device_time_total")

    @property
    def cpu_time(self):
        """Microseconds of one call."""
        return 0.0 if self.count == 0 else 1.0 * self.cpu_time_total / self.count

    @property
    def device_time(self):
        """Microseconds of the device for one call."""
        return 0.0 if self.count == 0 else 1.0 * self.device_time_total / self.count

    cuda_time = old_name("cuda_time", "device_time")


class StringTable(defaultdict):
    """Symbols and their readable forms, made when asked for. Names of one character stay: they would read as types."""

    def __missing__(self, key):
        self[key] = readable_symbol(key) if len(key) > 1 else key
        return self[key]


class MemRecordsAcc:
    """Memory records by time. A record is a sequence whose first item has ``start_ns()``."""

    def __init__(self, mem_records):
        self._mem_records = mem_records
        order = sorted((record[0].start_ns(), index) for index, record in enumerate(mem_records))
        self._start_nses = [start for start, _ in order]
        self._indices = [index for _, index in order]

    def in_interval(self, start_ns, end_ns):
        """The records that start in the interval, both ends included."""
        first = bisect_left(self._start_nses, start_ns)
        last = bisect_right(self._start_nses, end_ns)
        for index in self._indices[first:last]:
            yield self._mem_records[index]


class EnforceUnique:
    """Raises when a key is seen twice."""

    def __init__(self):
        self.seen = set()

    def see(self, *key):
        if key in self.seen:
            raise Error(f"duplicate key: {key}")
        self.seen.add(key)
