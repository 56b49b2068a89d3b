# extension_stub.pat: types of marey._marey that nanobind's stub generator cannot see: those of CPython's own interface.

^marey\._marey\.__prefix__$:
    \from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
    \from os import PathLike
    \from traceback import StackSummary
    \from types import TracebackType
    \from typing import Any, ParamSpec, Self, TypeVar, final
    \from marey.results.event_list import EventList
    \from marey.results.suspended_calls import SuspendedCall, Task
    \from marey.results.trace import TraceTable
    \from marey.results.tree import _ProfilerEvent
    \from marey.results.view import Viewer
    \from marey.sql.database import Result
    _Future = TypeVar("_Future")
    _F = TypeVar("_F", bound=Callable[..., Any])
    _P = ParamSpec("_P")
    _R = TypeVar("_R")
    __version__: str

^marey\._marey\.__version__$:

^marey\._marey\.CapturedTraceback$:
    class CapturedTraceback:
        \doc
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
        def _twin(self) -> Self: ...
        def __len__(self) -> int: ...
        def __bool__(self) -> bool: ...
        def __copy__(self) -> Self: ...
        def __deepcopy__(self, memo: dict[int, Any], /) -> Self: ...
        def __reduce__(self) -> tuple[type[Self], tuple[()]]: ...

^marey\._marey\.record_function$:
    @final
    class record_function:
        \doc
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

^marey\._marey\.record_function_fast$:
    @final
    class record_function_fast:
        \doc
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

^marey\._marey\.parts$:
    class parts:
        def __await__(self) -> Generator[Any, Any, Any]: ...
        def __iter__(self) -> Self: ...
        def __next__(self) -> Any: ...
        def send(self, value: Any, /) -> Any: ...
        def throw(self, *error: Any) -> Any: ...
        def close(self) -> None: ...

^marey\._marey\.(begin|instant)$:
    def \1(name: str, /) -> None:
        \doc

^marey\._marey\.end$:
    def end() -> None:
        \doc

^marey\._marey\.counter$:
    def counter(name: str, value: float, /) -> None:
        \doc

^marey\._marey\.begin_part$:
    def begin_part(call: object, range: record_function, is_first: bool, /) -> None: ...

^marey\._marey\.end_part$:
    def end_part(call: object, range: record_function, is_last: bool, /) -> None: ...

^marey\._marey\.EventRow\.(_index)$:
    \1: int

^marey\._marey\.EventRow\.(_rows)$:
    \1: EventRows

^marey\._marey\.EventRow\.(.*)$:
    \1: Any

^marey\._marey\.Error$:
    class Error(RuntimeError):
        """Raised by functions that fail. Recording itself never raises."""

^marey\._marey\.Context\.run$:
    def run(self, function: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        \doc

# Types that the C++ signatures give only as objects, lists, tuples and dicts.

^marey\._marey\.find_device$:
    def find_device(name: str) -> RegisteredDevice | None:
        \doc

^marey\._marey\.device_of$:
    def device_of(trace: Trace) -> str | None:
        \doc

^marey\._marey\.EventRows\.(use_device)$:
    @property
    def \1(self) -> str | None: ...

^marey\._marey\.EventRows\.(parent|event_of_range)$:
    def \1(self, arg: int, /) -> int | None: ...

^marey\._marey\.EventRows\.flops$:
    def flops(self, arg: int, /) -> float | None: ...

^marey\._marey\.EventRows\.bytes$:
    def bytes(self, arg: int, /) -> tuple[int, int, int, int]: ...

^marey\._marey\.EventTree\.facts$:
    def facts(self, arg: int, /) -> tuple[str, str, str, int, int, int]: ...

^marey\._marey\.EventTree\.parent$:
    def parent(self, arg: int, /) -> int | None: ...

^marey\._marey\.ModuleTable\.find$:
    def find(self, arg: int, /) -> tuple[Any, ...] | None: ...

^marey\._marey\.Averages\.(text)$:
    def \1(self, *args: Any) -> str: ...
