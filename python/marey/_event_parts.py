"""Small types used by events: intervals, kernels, metadata, and tables of names and memory records."""

from bisect import bisect_left, bisect_right
from collections import defaultdict, namedtuple

from marey._marey import Error, readable_symbol
from marey._warnings import warn


class Interval:
    """A time interval in microseconds."""

    __slots__ = ("start", "end")

    def __init__(self, start, end):
        self.start = start
        self.end = end

    def elapsed_us(self):
        """Return the length of the interval."""
        return self.end - self.start

    def __repr__(self):
        return f"Interval(start={self.start}, end={self.end})"

    def __eq__(self, other):
        if not isinstance(other, Interval):
            return NotImplemented
        return self.start == other.start and self.end == other.end

    __hash__ = None


Kernel = namedtuple("Kernel", ["name", "device", "duration"])

# Facts about device work: field name -> key in traces.
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
    """Convert a value, which may be text in traces, to the type of its field."""
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
    """Make EventMetadata from a dict with the keys of traces; None if it has none of them."""
    if not values:
        return None
    found = {field: values.get(key) for field, key in _METADATA_KEYS.items()}
    if all(value is None for value in found.values()):
        return None
    return EventMetadata(**{field: _metadata_value(field, value) for field, value in found.items()})


def format_time(time_us):
    """Format a time as in tables: 1.234ms."""
    if time_us >= 1e6:
        return f"{time_us / 1e6:.3f}s"
    if time_us >= 1e3:
        return f"{time_us / 1e3:.3f}ms"
    return f"{time_us:.3f}us"


def _formatted(name):
    return property(lambda self: format_time(getattr(self, name)), doc=f"{name} as text.")


def old_name(old, new):
    """Make a property that warns about its deprecated name and returns the attribute ``new``."""

    def get(self):
        warn(f"`{old}` is deprecated. Use `{new}` instead.", FutureWarning)
        return getattr(self, new)

    return property(get, doc=f"The old name of {new}.")


class FormattedTimesMixin:
    """Times per call, and times as text, for a class with ``*_time_total`` and ``count`` attributes."""

    cpu_time_str = _formatted("cpu_time")
    device_time_str = _formatted("device_time")
    cpu_time_total_str = _formatted("cpu_time_total")
    device_time_total_str = _formatted("device_time_total")
    self_cpu_time_total_str = _formatted("self_cpu_time_total")
    self_device_time_total_str = _formatted("self_device_time_total")

    @property
    def cpu_time(self):
        """The average CPU time of a call in microseconds."""
        return 0.0 if self.count == 0 else 1.0 * self.cpu_time_total / self.count

    @property
    def device_time(self):
        """The average device time of a call in microseconds."""
        return 0.0 if self.count == 0 else 1.0 * self.device_time_total / self.count

    cuda_time = old_name("cuda_time", "device_time")


class StringTable(defaultdict):
    """A dict from symbols to demangled names, filled on first use.

    Names of one character are kept because they would be demangled as types.
    """

    def __missing__(self, key):
        self[key] = readable_symbol(key) if len(key) > 1 else key
        return self[key]


class MemRecordsAcc:
    """Memory records ordered by time. A record is a sequence whose first item has ``start_ns()``."""

    def __init__(self, mem_records):
        self._mem_records = mem_records
        order = sorted((record[0].start_ns(), index) for index, record in enumerate(mem_records))
        self._start_nses = [start for start, _ in order]
        self._indices = [index for _, index in order]

    def in_interval(self, start_ns, end_ns):
        """Yield the records that start in the interval, both ends included."""
        first = bisect_left(self._start_nses, start_ns)
        last = bisect_right(self._start_nses, end_ns)
        for index in self._indices[first:last]:
            yield self._mem_records[index]


class EnforceUnique:
    """Raises an error if a key is seen twice."""

    def __init__(self):
        self.seen = set()

    def see(self, *key):
        """Add a key. Raises ``marey.Error`` if it was added before."""
        if key in self.seen:
            raise Error(f"duplicate key: {key}")
        self.seen.add(key)
