"""The extension: ranges, marks, sessions and traces of libmarey."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from traceback import StackSummary
from types import CodeType, TracebackType
from typing import Any, Literal, Self, TypeVar, final

from marey._event_list import EventList
from marey._suspended_calls import SuspendedCall, Task
from marey._trace import TraceTable

_Future = TypeVar("_Future")
_F = TypeVar("_F", bound=Callable[..., Any])

class Error(RuntimeError):
    """Raised by functions that fail. Recording itself never raises."""

class CapturedTraceback:
    """The stack of a thread at one moment, captured by extract()."""
    def __new__(cls) -> Self: ...
    @classmethod
    def extract(cls, *, cpp: bool = False, skip: int = 0) -> Self:
        """Capture the stack of the calling thread.

        The innermost frame is the caller of this function. Names and lines are looked up on first use.
        """
    def summary(self) -> StackSummary:
        """Return a traceback.StackSummary, outermost first."""
    def format(self) -> list[str]:
        """Return lines like those of traceback.format_list."""
    @staticmethod
    def format_all(tbs: Iterable[CapturedTraceback], /) -> list[list[str]]:
        """Return the result of format() for each, symbolized together."""
    def symbolize(self) -> list[dict[str, Any]]:
        """Return the frames, innermost first, as dicts: name, filename, line, python, inlined."""
    def cleanup(self) -> None:
        """Release the frames."""
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> Self: ...
    def __reduce__(self) -> tuple[type[Self], tuple[()]]: ...

def symbolize_tracebacks(tracebacks: Iterable[CapturedTraceback], /) -> list[list[dict[str, Any]]]: ...
def symbolize_addresses(addresses: Sequence[int], /) -> list[list[dict[str, Any]]]: ...
def symbolize_locations(
    locations: Iterable[tuple[str, str, int]], folder: str = "/usr/lib/debug"
) -> list[list[dict[str, Any]]]: ...
def traceback_addresses(traceback: CapturedTraceback, /) -> list[int]: ...
def traceback_locations(traceback: CapturedTraceback, /) -> list[tuple[str, str, int]]: ...
def dropped_tracebacks() -> int: ...
def has_native_lines() -> bool: ...
def unwind_counts() -> dict[str, int]: ...
@final
class record_function:
    """Mark a range: the block of a with statement, or every call of a decorated function.

    Args:
        name: The name of the range.
        args: A text recorded with the range.
        stack: The frames to record where it begins: True or "python", "cpp", or "both".
    """
    def __init__(self, name: str, args: str | None = None, *, stack: bool | str | None = False) -> None: ...
    @property
    def stack(self) -> bool | str:
        """The frames recorded with the range: False, "python", "cpp" or "both"."""
    @property
    def name(self) -> str:
        """The name of the range."""
    @property
    def args(self) -> str | None:
        """The text recorded with the range, or None."""
    def __enter__(self) -> record_function: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
    def __call__(self, func: _F) -> _F: ...
    def end_on_future(self, future: _Future, /) -> _Future:
        """End the range when the future is done instead of at the end of the block.

        Return a future with the same outcome that completes after the range has ended. Call it once for each entry.
        """
    def _call_end_callbacks_on_future(self, future: _Future, /) -> _Future: ...
    @property
    def run_callbacks_on_exit(self) -> bool:
        """False after end_on_future."""

@final
class record_function_fast:
    """A range object that is created once and entered any number of times.

    Its values and its stack are read only while they are recorded.
    """
    def __new__(
        cls,
        name: str,
        input_values: Sequence[Any] | None = None,
        keyword_values: Mapping[str, Any] | None = None,
        *,
        stack: bool | str | None = False,
    ) -> record_function_fast: ...
    def __enter__(self) -> record_function_fast: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...

def begin(name: str, /) -> None:
    """Begin a range that end() ends, for code that cannot use a with statement."""

def end() -> None:
    """End the innermost range that begin() opened on this thread."""

def instant(name: str, /) -> None:
    """Mark a point in time."""

def counter(name: str, value: float, /) -> None:
    """Record the current value of a counter."""

def step_mark(step: int, /) -> None: ...
def thread_name(name: str, /) -> None:
    """Set the name of the calling thread in traces."""

def is_recording() -> bool:
    """Return whether a range on this thread would be recorded now."""

class Trace:
    """A finished recording. Immutable."""
    def __len__(self) -> int: ...
    @property
    def name(self) -> str:
        """The name of the session."""
    @property
    def start_ns(self) -> int:
        """The start of the recording in nanoseconds on CLOCK_MONOTONIC_RAW."""
    @property
    def end_ns(self) -> int:
        """The end of the recording in nanoseconds on CLOCK_MONOTONIC_RAW."""
    @property
    def window_ns(self) -> int:
        """The length of the recording in nanoseconds."""
    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the recording as a dict."""
    @property
    def problems(self) -> list[tuple[str, str, int]]:
        """Losses, damage and limits of the trace: a list of (code, text, count)."""
    @property
    def tables(self) -> dict[str, TraceTable]:
        """Its tables by name, as described in docs/reference/tables.md."""
    def with_metadata(self, key: str, value: Any) -> Trace:
        """Return a trace with one more metadata entry; `value` is anything that JSON can represent."""
    def filtered(self, exclude: str | Iterable[str] = (), fold_imports: bool = False) -> Trace:
        """Return a trace without some ranges; the ranges inside them stay.

        `exclude`: shell patterns for names, functions and files. `fold_imports`: show each import of a Python
        module as one range ``import NAME``, as the commands do.
        """
    def info(self) -> dict[str, Any]:
        """Return everything except the events: processes, threads, window, clock, costs, problems."""
    def events(self, **options: Any) -> EventList:
        """Return its events as an ``EventList`` in order of time."""
    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        **options: Any,
    ) -> EventList:
        """Group its ranges by name and return an ``EventList`` of ``FunctionEventAvg``."""
    def flame_graph(self) -> str:
        """Return a flame graph as SVG text: names merged by their call paths."""
    def timeline(self) -> str:
        """Return every track against time as SVG text."""
    def tree(self) -> list[Any]:
        """Return its outermost ranges as nodes with children."""
    def suspended_calls(self) -> list[SuspendedCall]:
        """Return its generator, coroutine and async generator calls, each with all of its parts."""
    def tasks(self) -> list[Task]:
        """Return its asyncio tasks, with the time that each ran and waited."""
    def gpu_use(self, device: int | None = None, longest_gaps: int = 5) -> dict[str, Any]:
        """Return the activity and idle gaps of devices as a dict, like the output of ``marey gpu --json``.

        Args:
            device: The number of the device; all by default.
            longest_gaps: How many idle gaps of each device to list.
        """
    def to_arrow(self, table: str = "ranges") -> Any:
        """Return one of its tables as a ``pyarrow.Table``."""
    def to_pandas(self, table: str = "ranges") -> Any:
        """Return one of its tables as a ``pandas.DataFrame``."""
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def __arrow_c_schema__(self) -> Any: ...
    def save(self, path: str | PathLike[str]) -> None:
        """Write the whole trace; ``marey.load`` reads it back unchanged."""
    def symbolize(self, debug_dirs: Iterable[str | PathLike[str]] = ()) -> Trace:
        """Return the trace with names for the native frames of its stacks, like ``marey symbolize``.

        Args:
            debug_dirs: Folders with programs, libraries or debug files that have moved since the recording.
        """
    def export(self, path: str | PathLike[str], format: str | None = None) -> None:
        """Write another tool's format, selected by name or by the suffix of the path."""
    def export_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Write a Chrome JSON trace for the Perfetto UI or chrome://tracing (compressed: ".gz")."""
    def export_stacks(self, path: str | PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write folded stacks for flame graphs.

        Each stack of Python calls is a line "outer;inner microseconds".
        """
    def export_memory_timeline(self, path: str | PathLike[str], device: str = "cpu") -> None:
        """Write memory over time.

        The suffix of the path selects the form: ".html" is a page, "raw.json" or "raw.json.gz" has every change, and
        any other suffix has points of the timeline.
        """

class Session:
    """A recording session, as used by marey.profile."""
    def __init__(self) -> None: ...
    def start(
        self,
        *,
        name: str = "",
        output: str = "",
        max_bytes: int = ...,
        policy: Literal["stop", "drop", "ring"] = "stop",
        threads: Literal["all", "tasks"] = "all",
        scopes: int = 0,
        record_shapes: bool = False,
        concrete_inputs: bool = False,
        profile_memory: bool = False,
        with_flops: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        c_calls: bool | Literal["fast", "all"] = True,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        fold_libraries: bool = False,
        min_duration_us: float = 0,
        max_depth: int = 0,
        call_budget: int = 0,
        call_lines: bool = False,
        devices: Sequence[str] = (),
        device_activities: int = ...,
    ) -> None:
        """Start to record. marey.profile describes most of the options."""
    def stop(self) -> Trace:
        """Stop recording and return the trace."""
    def stop_for_pytorch(self, *, names: bool, forward_links: bool) -> Trace:
        """Stop recording and return the trace as PyTorch's profiler shows it. Call nothing afterwards."""
    def snapshot(self) -> Trace:
        """Return a trace of the records so far, without stopping."""
    def discard(self) -> None:
        """Stop recording without building a trace."""
    def add_metadata(self, key: str, json: str) -> None:
        """Add a JSON value, given as text, to the metadata of the trace."""
    def record_devices(self, is_wanted: bool) -> None:
        """Pause or resume the recording of device activity."""
    @property
    def is_running(self) -> bool:
        """Whether it is recording."""
    @property
    def output_path(self) -> str:
        """The path of the capture file, or an empty string."""
    @property
    def id(self) -> int:
        """The number of the session in this process."""

def load(*args: Any, **kwargs: Any) -> Trace: ...
def join_traces(traces: Sequence[Trace]) -> Trace:
    """Join traces that follow one another into one trace."""

def is_recording_memory() -> bool:
    """Return whether allocation reports of this thread are recorded."""

def node_id() -> int:
    """Return the value of set_node_id(), or -1."""

def check_call_patterns(patterns: Sequence[str], option: str) -> None: ...
def hold_tracer() -> None: ...
def release_tracer() -> None: ...
def begin_with_program(alone: bool) -> None: ...
def restart_recording() -> None: ...
def check_tracer() -> None: ...
def finish_recording() -> None: ...
def finish_with_interpreter() -> None: ...
def set_node_id(node: int) -> None:
    """Set the node or rank of this process, as shown in traces and averages."""

def report_allocation(
    address: int, bytes: int, total_allocated: int = 0, total_reserved: int = 0, device: str = "cpu"
) -> None:
    """Report that an allocator has allocated (bytes > 0) or freed (bytes < 0) memory."""

def report_out_of_memory(bytes: int, total_allocated: int = 0, total_reserved: int = 0, device: str = "cpu") -> None:
    """Report that an allocator could not allocate memory."""

# ---- devices

class DeviceEvent:
    """A point in the queue of a device."""
    @property
    def device(self) -> int:
        """The number of the device."""

class RegisteredDevice:
    """A registered device."""
    @property
    def name(self) -> str:
        """The name that ``use_device`` selects it by."""
    @property
    def type(self) -> int:
        """Its number in traces."""
    @property
    def has_activities(self) -> bool:
        """Whether it has an activity source."""
    def enabled(self) -> bool:
        """Return whether it can be used."""
    def record(self) -> DeviceEvent:
        """Record a point in the calling thread's current queue."""
    def elapsed(self, start: DeviceEvent, end: DeviceEvent) -> float:
        """Return the microseconds between two events. Waits for both."""
    def mark(self, name: str, /) -> None:
        """Mark a point in time in the device's own tools."""
    def range_push(self, name: str, /) -> None:
        """Begin a range in the device's own tools."""
    def range_pop(self) -> None:
        """End the innermost range that range_push() began."""
    def on_each_device(self, visit: Callable[[int], Any], /) -> None:
        """Call `visit` with the number of each device."""
    def synchronize(self) -> None:
        """Wait until every device has finished the work that it was given."""

def find_device(name: str) -> RegisteredDevice | None:
    """Return the RegisteredDevice with that name, or None."""

def device_error(name: str) -> str:
    """Return why a device cannot be recorded and how to fix that; empty if it can."""

def registered_devices() -> list[str]:
    """Return the names of all registered devices."""

def time_on_device(range_name: str, is_timed: bool = True) -> None:
    """Set whether ranges with that name are timed with device events."""

# ---- results

class EventRow:
    id: Any
    name: Any
    trace_name: Any
    overload_name: Any
    node_id: Any
    thread: Any
    scope: Any
    is_async: Any
    is_remote: Any
    device_type: Any
    device_index: Any
    device_resource_id: Any
    is_user_annotation: Any
    is_python_function: Any

class EventRows:
    def __init__(
        self,
        trace: Trace,
        event_type: Any,
        interval_type: Any,
        device_type: Any,
        use_device: str | None,
        with_flops: bool,
    ) -> None: ...
    def __len__(self) -> int: ...
    def event(self, event: int, /) -> Any: ...
    def keep_event(self, event: int, object: Any, /) -> None: ...
    def is_changed(self) -> bool: ...
    @property
    def use_device(self) -> str | None: ...
    @property
    def with_flops(self) -> bool: ...
    def time_range(self, event: int, /) -> Any: ...
    def cpu_total_us(self, event: int, /) -> float: ...
    def detail(self, event: int, /) -> tuple[Any, ...]: ...
    def inputs(self, event: int, /) -> tuple[Any, ...]: ...
    def ids(self, event: int, /) -> tuple[Any, ...]: ...
    def module(self, event: int, /) -> tuple[int, str]: ...
    def kernels(self, event: int, /) -> list[Any]: ...
    def stack(self, event: int, /) -> list[str]: ...
    def category(self, event: int, /) -> str: ...
    def parent(self, event: int, /) -> int | None: ...
    def children(self, event: int, /) -> list[int]: ...
    def event_of_range(self, range: int, /) -> int | None: ...
    def self_ns(self, event: int, /) -> int: ...
    def is_timed(self, event: int, /) -> bool: ...
    def device_total_ns(self, event: int, /) -> int: ...
    def bytes(self, event: int, /) -> tuple[int, int, int, int]: ...
    def flops(self, event: int, /) -> float | None: ...

class Averages:
    def __len__(self) -> int: ...
    def row(self, index: int, /) -> dict[str, Any]: ...
    def total(self) -> dict[str, Any]: ...
    def group(self, by_input_shape: bool, stack_entries: int, by_overload: bool, percentiles: bool, /) -> Averages: ...
    def text(self, form: str, options: dict[str, Any], /) -> str: ...
    def json(self, trace: Trace, options: dict[str, Any], /) -> str: ...
    def without_flops(self) -> Averages: ...
    @property
    def self_cpu_time_total(self) -> float: ...
    @property
    def self_device_time_total(self) -> float: ...
    @property
    def has_flops(self) -> bool: ...
    @property
    def has_memory(self) -> bool: ...
    @property
    def device(self) -> str | None: ...

class EventTree:
    def __init__(self, trace: Trace) -> None: ...
    def __len__(self) -> int: ...
    def roots(self) -> list[int]: ...
    def parent(self, node: int, /) -> int | None: ...
    def children(self, node: int, /) -> list[int]: ...
    def facts(self, node: int, /) -> tuple[Any, ...]: ...
    def operation(self, node: int, /) -> tuple[Any, ...]: ...
    def call_line(self, node: int, /) -> int: ...
    def allocation(self, node: int, /) -> tuple[Any, ...]: ...

class ArrayIds:
    def __init__(self, trace: Trace, /) -> None: ...
    def of_array(self, row: int, /) -> tuple[int | None, int | None]: ...
    def of_report(self, row: int, /) -> tuple[int | None, int | None]: ...

class MemoryProfile:
    def __init__(self, trace: Trace) -> None: ...
    def blocks(self) -> list[tuple[Any, ...]]: ...
    def nodes(self) -> list[tuple[Any, ...]]: ...
    def timeline(self) -> list[tuple[Any, ...]]: ...
    def category(self, allocation: int, version: int, /) -> int: ...

class ModuleTable:
    def __init__(self, trace: Trace) -> None: ...
    def find(self, range: int, /) -> tuple[Any, ...] | None: ...
    def hierarchy(self, range: int, /) -> str: ...

def register_module_type(
    cls: type,
    code: CodeType,
    name: Callable[[Any], str] | None,
    parameters: Any,
    gradients: Any,
    state: Any,
    children: Any,
    arrays: tuple[type, ...],
    prefix: str,
    is_optimizer: bool,
) -> None:
    """Register a class whose objects' calls are recognized by their code object."""

def unregister_module_type(cls: type) -> int:
    """Remove all registrations of a class and return their number."""

def key_averages(
    trace: Trace,
    by_input_shape: bool = False,
    stack_entries: int = 0,
    by_overload: bool = False,
    by_thread: bool = False,
    percentiles: bool = False,
    nesting: bool = False,
    flops: bool = False,
    memory: bool | None = None,
) -> Averages: ...
def list_ranges(trace: Trace, flops: bool = False, memory: bool | None = None) -> Averages: ...
def averages_of_rows(rows: list[tuple[Any, ...]], is_list: bool, device: int, has_memory: bool) -> Averages: ...
def table_columns() -> dict[str, str]: ...
def is_table_key(key: str, /) -> bool: ...
def device_of(trace: Trace) -> str | None: ...
def has_memory(trace: Trace) -> bool: ...
def stack_metrics() -> list[str]: ...
def export_stacks(
    trace: Trace,
    path: str,
    metric: str = "self_cpu_time_total",
    append_name: bool = False,
    by_thread: bool = False,
) -> None: ...
def write_chrome_json(trace: Trace, path: str) -> None: ...
def assemble(events: list[tuple[Any, ...]], device: int) -> Trace: ...
def nesting(events: list[tuple[Any, ...]]) -> list[int | None]: ...
def readable_symbol(symbol: str) -> str: ...
def __getattr__(name: str) -> Any: ...  # names that only the package itself uses
