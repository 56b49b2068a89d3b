"""The extension: ranges, marks, sessions and traces of libmarey."""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from os import PathLike
from traceback import StackSummary
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, final

from marey.results.event_list import EventList
from marey.results.suspended_calls import SuspendedCall, Task
from marey.results.trace import TraceTable
from marey.results.tree import _ProfilerEvent
from marey.results.view import Viewer
from marey.sql.database import Result

_Future = TypeVar("_Future")
_F = TypeVar("_F", bound=Callable[..., Any])
_P = ParamSpec("_P")
_R = TypeVar("_R")
__version__: str

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

def begin_part(call: Any, range: record_function, is_first: bool, /) -> None: ...
def end_part(call: Any, range: record_function, is_last: bool, /) -> None: ...
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

def message_instant(name: str, message: str, place: str, /) -> None: ...
def counter(name: str, value: float, /) -> None:
    """Record the current value of a counter."""

def step_mark(step: int, /) -> None: ...
def thread_name(name: str, /) -> None:
    """Set the name of the calling thread in traces."""

def send_token() -> bytes:
    """Record that a message is sent now, and return 24 bytes to send with it."""

def receive_token(token: bytes, /) -> None:
    """Record that the message with this token has been received."""

def is_recording() -> bool:
    """Return whether a range on this thread would be recorded now."""
@final
class async_range:
    def __new__(cls, name: str, is_step: bool = False) -> async_range: ...
    def end(self) -> None: ...

class parts:
    def __await__(self) -> Generator[Any, Any, Any]: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...
    def send(self, value: Any, /) -> Any: ...
    def throw(self, *error: Any) -> Any: ...
    def close(self) -> None: ...

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

class Error(RuntimeError):
    """Raised by functions that fail. Recording itself never raises."""

class late_range:
    def __init__(self, nests: bool, name: str) -> None: ...
    @property
    def is_open(self) -> bool: ...
    def end(self, name: str, values: dict[Any, Any]) -> None: ...
    def begin_part(self, call: Any) -> None: ...
    def end_part(self, call: Any, name: str, is_first: bool, is_last: bool) -> None: ...

class Trace:
    """A finished recording. Immutable."""

    def __init__(self) -> None: ...
    def __len__(self) -> int:
        """Return the number of ranges."""

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
    def _realtime_offset_ns(self) -> int: ...
    @property
    def _first_id(self) -> int: ...
    @property
    def _metadata(self) -> dict[Any, Any]: ...
    @property
    def _problems(self) -> list[Any]: ...
    def _with_metadata(self, key: str, json: str) -> Trace: ...
    def _filtered(
        self, exclude: Sequence[str], fold_imports: bool, exclude_running: bool, hide: Sequence[str] = []
    ) -> Trace: ...
    def _selected(self, begin_ns: int, end_ns: int, tracks: Sequence[int]) -> Trace: ...
    def _info(self) -> str: ...
    def _save(self, path: str | PathLike[Any]) -> None: ...
    def _export(self, path: str | PathLike[Any], format: str) -> None: ...
    def _export_memory_timeline(self, path: str, device: str) -> None: ...
    def _symbolized(self, debug_dirs: Sequence[str]) -> Trace: ...
    def flame_graph(self, title: str = "", count: str = "", width: float = 1600.0) -> str:
        """Return a flame graph as SVG text: names merged by their call paths."""

    def timeline(self) -> str:
        """Return every track against time as SVG text."""

    def _export_stacks(self, path: str, metric: str) -> None: ...
    @property
    def window_ns(self) -> int:
        """The length of the recording in nanoseconds."""

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the recording as a dict."""

    def with_metadata(self, key: str, value: Any) -> Trace:
        """Return a trace with one more metadata entry; `value` is anything that JSON can represent."""

    def filtered(
        self, exclude: str | Iterable[str] = (), fold_imports: bool = False, exclude_running: bool = False
    ) -> Trace:
        """Return a trace without some ranges; the ranges inside them stay.

        `exclude`: shell patterns for names, functions and files. `fold_imports`: show each import of a Python
        module as one range ``import NAME``, as the commands do. `exclude_running`: leave out the Python calls that
        were running when the session started.
        """

    @property
    def problems(self) -> list[tuple[str, str, int]]:
        """Losses, damage and limits of the trace: a list of (code, text, count)."""

    def info(self) -> dict[str, Any]:
        """Return everything except the events: processes, threads, window, clock, costs, problems."""

    def events(self, **options: Any) -> EventList:
        """Return its events as an ``EventList`` in order of time."""

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        *,
        group_by_thread: bool = False,
        percentiles: bool = False,
        **options: Any,
    ) -> EventList:
        """Group its ranges by name and return an ``EventList`` of ``FunctionEventAvg``; `options` as in events()."""

    def tree(self) -> list[_ProfilerEvent]:
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

    def ranks(self, step: str = "", input: str = "dataloader") -> dict[str, Any]:
        """Compare the ranks of this trace, if it has several; like ``marey.ranks``."""

    @property
    def tables(self) -> dict[str, TraceTable]:
        """Its tables by name, as described in docs/reference/tables.md."""

    def to_arrow(self, table: str = "ranges") -> Any:
        """Return one of its tables as a ``pyarrow.Table``."""

    def to_pandas(self, table: str = "ranges") -> Any:
        """Return one of its tables as a ``pandas.DataFrame``."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def __arrow_c_schema__(self) -> Any: ...
    def sql(self, query: str, timeout: float | None = None) -> Result:
        """Run SQL over its tables on DuckDB and return an Arrow table, with df() for pandas and pl() for Polars.

        Args:
            query: One or more statements, separated by semicolons; the last one gives the rows.
            timeout: Seconds after which to stop.
        """

    def duckdb(self) -> Any:
        """Return a new DuckDB connection with all its tables. It cannot read files or the network."""

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

    def view(self, port: int = 0, browser: bool = True, source: str | PathLike[str] | Iterable[str] = ()) -> Viewer:
        """Show the trace in the browser, like ``marey view``. Returns at once.

        The result has the address (`url`) and `close()`; the viewer also stops when the program ends.

        Args:
            port: The port to listen on, on the loopback interface only; 0 for any free one.
            browser: Open the page in a browser.
            source: A folder, or folders, with source files that the page may show besides the working directory.
        """

    def to_html(self) -> str:
        """Return the page of ``view()`` with the data inside: the text of one HTML file that needs no server."""

    def __repr__(self) -> str: ...
    def _repr_html_(self) -> str:
        """Return a summary and a flame graph as HTML without scripts, for notebooks."""

def load(path: str | PathLike[Any], format: str = "", session: int = 0) -> Trace: ...
def join_traces(traces: Sequence[Trace]) -> Trace:
    """Join traces that follow one another into one trace."""

def merge_traces(traces: Sequence[Trace]) -> Trace:
    """Merge traces of several processes into one trace; they may overlap."""

def load_merged(paths: Sequence[str | PathLike[Any]], any_tree: bool = False) -> Trace: ...
def output_target(path: str | PathLike[Any]) -> str: ...
def list_sessions(path: str | PathLike[Any]) -> list[Any]: ...

class Context:
    def __init__(self) -> None: ...
    @staticmethod
    def current() -> Context: ...
    @property
    def is_empty(self) -> bool: ...
    def run(self, function: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    def adopt(self) -> None: ...

def active_options() -> dict[Any, Any]: ...
def add_capture(session: Session, path: str) -> None: ...
def follow(variable: Any | None) -> None: ...
def with_tokens(dumps: Any, loads: Any, wrap: Any, mark: bytes) -> tuple[Any, ...]: ...
def range_rows(trace: Trace) -> list[Any]: ...
def marked_ranges(trace: Trace) -> list[Any]: ...
def suspended_calls(trace: Trace) -> list[Any]: ...
def tasks(trace: Trace) -> list[Any]: ...

class Session:
    """A recording session, as used by marey.profile."""

    def __init__(self) -> None: ...
    def start(self, *, c_calls: bool | str = True, **options: Any) -> None:
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

def check_options(**options: Any) -> dict[str, Any]: ...

CALL_OPTIONS: tuple[Any, ...] = ...

def path_of_rank(path: str, rank: int) -> str: ...
def environment_rank() -> int: ...
def hold_tracer() -> None: ...
def release_tracer() -> None: ...
def set_node_id(node: int) -> None:
    """Set the node or rank of this process, as shown in traces and averages."""

def node_id() -> int:
    """Return the value of set_node_id(), or -1."""

class Averages:
    def __len__(self) -> int: ...
    def row(self, arg: int, /) -> dict[Any, Any]: ...
    def total(self) -> dict[Any, Any]: ...
    def group(self, arg0: bool, arg1: int, arg2: bool, arg3: bool, /) -> Averages: ...
    def text(self, *args: Any) -> str: ...
    def without_calls(self) -> Averages: ...
    def without_flops(self) -> Averages: ...
    def json(self, *args: Any) -> str: ...
    @property
    def self_cpu_time_total(self) -> float: ...
    @property
    def self_device_time_total(self) -> float: ...
    @property
    def has_flops(self) -> bool: ...
    @property
    def has_memory(self) -> bool: ...
    @property
    def device(self) -> Any: ...

def known_waits() -> list[Any]: ...
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
def averages_of_events(events: list[Any], device: int, has_memory: bool) -> Averages: ...
def table_columns() -> dict[Any, Any]: ...
def device_of(trace: Trace) -> str | None: ...
def has_memory(trace: Trace) -> bool: ...
def is_table_key(arg: str, /) -> bool: ...
def stack_metrics() -> list[str]: ...
def export_stacks(
    trace: Trace, path: str, metric: str = "self_cpu_time_total", append_name: bool = False, by_thread: bool = False
) -> None: ...
def write_chrome_json(trace: Trace, path: str) -> None: ...

class EventRow:
    __prefix__: Any

    __new__: Any

    _rows: EventRows

    _index: int

    _is_changed: bool

    __doc__: Any

    __module__: Any

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

    __suffix__: Any

class EventRows:
    def __init__(
        self,
        trace: Trace,
        event_type: Any,
        interval_type: Any,
        device_type: Any,
        use_device: Any | None,
        with_flops: bool,
    ) -> None: ...
    def __len__(self) -> int: ...
    def event(self, arg: int, /) -> Any: ...
    def keep_event(self, arg0: int, arg1: Any, /) -> None: ...
    def is_changed(self) -> bool: ...
    @property
    def use_device(self) -> str | None: ...
    @property
    def with_flops(self) -> bool: ...
    @property
    def first_id(self) -> int: ...
    def time_range(self, arg: int, /) -> Any: ...
    def cpu_total_us(self, arg: int, /) -> float: ...
    def detail(self, arg: int, /) -> tuple[Any, ...]: ...
    def inputs(self, arg: int, /) -> tuple[Any, ...]: ...
    def ids(self, arg: int, /) -> tuple[Any, ...]: ...
    def module(self, arg: int, /) -> tuple[Any, ...]: ...
    def kernels(self, arg: int, /) -> list[Any]: ...
    def stack(self, arg: int, /) -> list[Any]: ...
    def category(self, arg: int, /) -> Any: ...
    def parent(self, arg: int, /) -> int | None: ...
    def children(self, arg: int, /) -> list[Any]: ...
    def event_of_range(self, arg: int, /) -> int | None: ...
    def self_ns(self, arg: int, /) -> int: ...
    def is_timed(self, arg: int, /) -> bool: ...
    def device_total_ns(self, arg: int, /) -> int: ...
    def bytes(self, arg: int, /) -> tuple[int, int, int, int]: ...
    def flops(self, arg: int, /) -> float | None: ...

def assemble(events: list[Any], device: int) -> Trace: ...
def readable_symbol(symbol: str) -> str: ...
def nesting(events: list[Any]) -> list[Any]: ...

class EventTree:
    def __init__(self, trace: Trace) -> None: ...
    def __len__(self) -> int: ...
    def roots(self) -> list[Any]: ...
    def parent(self, arg: int, /) -> int | None: ...
    def children(self, arg: int, /) -> list[Any]: ...
    def facts(self, arg: int, /) -> tuple[str, str, str, int, int, int]: ...
    def operation(self, arg: int, /) -> tuple[Any, ...]: ...
    def call_line(self, arg: int, /) -> int: ...
    def allocation(self, arg: int, /) -> tuple[Any, ...]: ...

class OpenView:
    @property
    def url(self) -> str: ...
    def close(self) -> None: ...

def html_report(trace: Trace, title: str) -> str: ...
def open_view(trace: Trace, name: str, port: int, source_dirs: Sequence[str]) -> OpenView: ...
def table_names() -> list[str]: ...
def arrow_stream(trace: Trace, table: str, columns: Sequence[str] = [], batch_rows: int = 0) -> Any: ...
def arrow_schema(trace: Trace, table: str) -> Any: ...
def table_csv(trace: Trace, table: str) -> str: ...

class ResultTable:
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def is_single(self) -> bool: ...
    def __len__(self) -> int: ...
    def columns(self) -> list[Any]: ...
    def value(self) -> Any: ...
    def __arrow_c_array__(self, requested_schema: Any | None = None) -> tuple[Any, ...]: ...

def result_names() -> list[str]: ...
def make_result(trace: Trace, name: str, device: int | None = None, rows: int | None = None) -> list[ResultTable]: ...
def rank_result(traces: Sequence[Trace], step_name: str, input_name: str) -> list[ResultTable]: ...
def read_ranks(paths: Sequence[str | PathLike[Any]], step_name: str, input_name: str) -> tuple[Any, ...]: ...
def report_allocation(
    address: int, bytes: int, total_allocated: int = 0, total_reserved: int = 0, device: str = "cpu"
) -> None:
    """Report that an allocator has allocated (bytes > 0) or freed (bytes < 0) memory."""

def report_out_of_memory(bytes: int, total_allocated: int = 0, total_reserved: int = 0, device: str = "cpu") -> None:
    """Report that an allocator could not allocate memory."""

def is_recording_memory() -> bool:
    """Return whether allocation reports of this thread are recorded."""

class ArrayIds:
    def __init__(self, arg: Trace, /) -> None: ...
    def of_array(self, arg: int, /) -> tuple[Any, ...]: ...
    def of_report(self, arg: int, /) -> tuple[Any, ...]: ...

class MemoryProfile:
    def __init__(self, trace: Trace) -> None: ...
    def blocks(self) -> list[Any]: ...
    def nodes(self) -> list[Any]: ...
    def timeline(self) -> list[Any]: ...
    def category(self, arg0: int, arg1: int, /) -> int: ...

class NvtxEmitter:
    def __init__(self, record_shapes: bool = False) -> None: ...
    def stop(self) -> None: ...

class IttEmitter:
    def __init__(self, record_shapes: bool = False) -> None: ...
    def stop(self) -> None: ...

class nvtx:
    @staticmethod
    def is_available() -> bool: ...
    @staticmethod
    def is_listening() -> bool: ...
    @staticmethod
    def mark(arg: str, /) -> None: ...
    @staticmethod
    def range_push(arg: str, /) -> int: ...
    @staticmethod
    def range_pop() -> int: ...
    @staticmethod
    def range_start(arg: str, /) -> int: ...
    @staticmethod
    def range_end(arg: int, /) -> None: ...

class itt:
    @staticmethod
    def is_available() -> bool: ...
    @staticmethod
    def mark(arg: str, /) -> None: ...
    @staticmethod
    def range_push(arg: str, /) -> int: ...
    @staticmethod
    def range_pop() -> int: ...
    @staticmethod
    def range_start(arg: str, /) -> int: ...
    @staticmethod
    def range_end(arg: int, /) -> None: ...

class ExecutionTrace:
    def __init__(self, path: str) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def save_elements_in(self, folder: str) -> None: ...
    def finish(self) -> None: ...
    @property
    def is_running(self) -> bool: ...

def execution_trace_request() -> tuple[Any, ...]: ...
def symbolize_tracebacks(arg: Iterable[Any], /) -> list[Any]: ...
def symbolize_addresses(arg: Sequence[int], /) -> list[Any]: ...
def symbolize_locations(locations: Iterable[Any], folder: str = "/usr/lib/debug") -> list[Any]: ...
def traceback_addresses(arg: Any, /) -> list[Any]: ...
def traceback_locations(arg: Any, /) -> list[Any]: ...
def has_native_lines() -> bool: ...
def dropped_tracebacks() -> int: ...
def unwind_counts() -> dict[Any, Any]: ...
def ask_clock(stream: int, exchanges: int = 8) -> int: ...
def answer_clock(stream: int) -> bool: ...
def host_name() -> Any: ...
def begin_without_calls() -> bool: ...
def begin_with_program(alone: bool) -> None: ...
def restart_recording() -> None: ...
def report_child_waits() -> None: ...
def check_tracer() -> None: ...
def finish_recording() -> None: ...
def finish_with_interpreter() -> None: ...
def name_cells(numbers: dict[Any, Any]) -> None: ...
def become_own_thread() -> None: ...
def count_as_program(patterns: Sequence[str]) -> None: ...

class ModuleTable:
    def __init__(self, trace: Trace) -> None: ...
    def find(self, arg: int, /) -> tuple[Any, ...] | None: ...
    def hierarchy(self, arg: int, /) -> Any: ...

def register_module_type(
    cls: Any,
    code: Any,
    name: Any | None,
    parameters: Any | None,
    gradients: Any | None,
    state: Any | None,
    children: Any | None,
    arrays: tuple[Any, ...],
    prefix: str,
    is_optimizer: bool,
) -> None:
    """Register a class whose objects' calls are recognized by their code object."""

def unregister_module_type(cls: Any) -> int:
    """Remove all registrations of a class and return their number."""

class torch:
    NEEDS_RANGES: int = 1

    NEEDS_INPUTS: int = 2

    NEEDS_OUTPUTS: int = 4

    NEEDS_OVERLOADS: int = 16

    LAYOUT: int = 1

    @staticmethod
    def library_path() -> str: ...
    @staticmethod
    def load(path: str) -> None: ...
    @staticmethod
    def is_loaded() -> bool: ...
    @staticmethod
    def hold(needs: int) -> None: ...
    @staticmethod
    def release(needs: int) -> None: ...
    @staticmethod
    def links_forward() -> bool: ...
    @staticmethod
    def records_waits() -> bool: ...
    @staticmethod
    def enter(shapes: bool) -> int: ...
    @staticmethod
    def leave(token: int) -> None: ...

class DeviceEvent:
    """A point in the queue of a device."""

    @property
    def device(self) -> int: ...

class RegisteredDevice:
    """A registered device."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> int: ...
    @property
    def has_activities(self) -> bool:
        """Whether it has an activity source."""

    def enabled(self) -> bool: ...
    def record(self) -> DeviceEvent: ...
    def elapsed(self, start: DeviceEvent, end: DeviceEvent) -> float:
        """Return the microseconds between two events. Waits for both."""

    def mark(self, arg: str, /) -> None: ...
    def range_push(self, arg: str, /) -> None: ...
    def range_pop(self) -> None: ...
    def on_each_device(self, arg: Callable[..., Any], /) -> None: ...
    def synchronize(self) -> None: ...

def find_device(name: str) -> RegisteredDevice | None:
    """Return the RegisteredDevice with that name, or None."""

def device_error(name: str) -> str:
    """Return why a device cannot be recorded and how to fix that; empty if it can."""

def registered_devices() -> list[str]:
    """Return the names of all registered devices."""

def time_on_device(range_name: str, is_timed: bool = True) -> None:
    """Set whether ranges with that name are timed with device events."""
