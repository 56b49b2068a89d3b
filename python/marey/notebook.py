"""IPython and Jupyter: ``%load_ext marey``, then ``%marey f(x)`` or ``%%marey`` at the top of a cell.

A recorded cell runs as any other: IPython executes its text without the line of the magic. A statement in front of it
starts the recording, and an event after it stops it. So `await`, tracebacks, interrupts and results are unchanged.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from marey._marey import Trace

_USAGE = "%%marey [--c-calls | --no-calls] [--torch] [--gpu] [--view]"
_OPTIONS = frozenset(("--c-calls", "--no-calls", "--torch", "--gpu", "--view", "--calls"))  # the last one: until 0.3
# The notebook's own code. It is left out with everything that it calls.
_OWN = "IPython codeop ipykernel ipywidgets comm traitlets tornado zmq jupyter_client jupyter_core".split()
_HIDDEN = tuple(pattern for name in _OWN for pattern in (f"{name}/*", f"*/{name}/*.py(*", f"{name}.py(*"))

_recorder: _Recorder | None = None


def load_ipython_extension(shell: Any) -> None:
    """Add the magics to a shell (``%load_ext marey``)."""
    global _recorder
    if _recorder is None:
        _recorder = _Recorder(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Remove them (``%unload_ext marey``)."""
    global _recorder
    if _recorder is not None:
        _recorder.remove()
        _recorder = None


class _UsageError(ValueError):
    pass


def parse_options(line: str) -> set[str]:
    """Return the options in the line of a magic. Raise _UsageError if one is unknown."""
    words = line.split()
    unknown = [word for word in words if word not in _OPTIONS]
    if unknown:
        raise _UsageError(f"unknown option {unknown[0]!r}; usage: {_USAGE}")
    return set(words)


def split_cell(cell: str) -> tuple[set[str], str] | None:
    """Return the options and the code of a recorded cell; None if it is another cell, or its options are wrong.

    The code keeps its line numbers, unless another cell magic follows: that has to be in the first line.
    """
    text = cell.lstrip("\n")
    first, _, rest = text.partition("\n")
    for magic in ("%%marey", "%marey"):
        words = first.partition(magic)
        if words[0] or not words[1] or words[2][:1] not in ("", " ", "\t"):
            continue
        if magic == "%marey":  # in other cells it is a magic function
            return (set(), words[2].strip() + "\n") if words[2].strip() and not rest.strip() else None
        try:
            options = parse_options(words[2])
        except _UsageError:
            return None
        return options, rest if rest.startswith("%%") else "\n" + rest
    return None


class _Recorder:
    """Records cells of one shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._requested: set[str] | None = None  # the options of the cell that is about to run
        self._running: tuple[Any, set[str]] | None = None  # a profiler and the options of its cell
        self._shown_by: Any = None  # the showtraceback that other code has given the shell
        self._view: Any = None
        numbers = getattr(shell.compile, "_filename_map", None)
        self._numbers = numbers if isinstance(numbers, dict) else {}  # of cells, by the names of their files
        if isinstance(numbers, dict):
            from marey import _marey

            _marey.name_cells(numbers)
        shell.register_magic_function(self._magic, "line_cell", "marey")
        shell.input_transformer_manager.cleanup_transforms.append(self._transform_lines)
        shell.ast_transformers.append(self)
        shell.events.register("pre_run_cell", self._before_cell)
        shell.events.register("post_run_cell", self._after_cell)

    def remove(self) -> None:
        if self._view is not None:
            self._view.close()
        self._shell.magics_manager.magics["line"].pop("marey", None)
        self._shell.magics_manager.magics["cell"].pop("marey", None)
        self._shell.input_transformer_manager.cleanup_transforms.remove(self._transform_lines)
        self._shell.ast_transformers.remove(self)
        self._shell.events.unregister("pre_run_cell", self._before_cell)
        self._shell.events.unregister("post_run_cell", self._after_cell)

    # ---- what IPython calls, in this order

    @staticmethod
    def _transform_lines(lines: list[str]) -> list[str]:
        """Take the magic off a cell. IPython also calls this while the user types."""
        found = split_cell("".join(lines))
        return lines if found is None else found[1].splitlines(keepends=True)

    def _before_cell(self, info: Any) -> None:
        found = split_cell(info.raw_cell)
        self._requested = None if found is None else found[0]

    def visit(self, tree: Any) -> Any:
        """Put a call of begin() in front of a cell that is recorded. A syntax error is found before."""
        if self._requested is not None:
            import ast

            call = "__import__('marey.notebook', fromlist=['begin']).begin()"
            tree.body[:0] = ast.parse(call).body
            ast.fix_missing_locations(tree)
        return tree

    def begin(self, file: str) -> None:
        """Start the recording of the running cell, whose code is in `file`."""
        options, self._requested = self._requested, None
        if options is None or self._running is not None:
            return
        from marey._marey import Error

        try:
            # Kernels differ in when they increase the shell's own count.
            profiler = _profiler(options, f"In[{self._numbers.get(file, self._shell.execution_count)}]")
            profiler.start()
        except (Error, ImportError, ValueError) as error:
            print(f"marey: not recording: {error}", file=sys.stderr)
            return
        self._running = profiler, options
        self._shown_by = vars(self._shell).get("showtraceback")  # rich sets it, for one
        self._shell.showtraceback = self._show_traceback

    def _show_traceback(self, *args: Any, **options: Any) -> None:
        """Stand in for the shell's method while a cell is recorded: the recording ends before IPython's own work."""
        from marey._marey import Error

        try:
            if self._running is not None:
                self._running[0].stop()
        except Error:
            pass  # reported after the cell
        self._restore_traceback()
        self._shell.showtraceback(*args, **options)

    def _restore_traceback(self) -> None:
        if vars(self._shell).get("showtraceback") == self._show_traceback:
            del self._shell.showtraceback
            if self._shown_by is not None:
                self._shell.showtraceback = self._shown_by

    def _after_cell(self, _result: Any) -> None:
        self._requested = None
        running, self._running = self._running, None
        if running is None:
            return
        self._restore_traceback()
        from marey._marey import Error

        profiler, options = running
        try:
            profiler.stop()
            trace = profiler.trace._filtered([], True, True, list(_HIDDEN))
        except Error as error:
            print(f"marey: the recording is lost: {error}", file=sys.stderr)
            return
        self._shell.user_ns["_marey"] = trace
        self._show(trace, "--view" in options)

    # ---- results

    def _show(self, trace: Trace, with_view: bool) -> None:
        import html

        from IPython import display as ipython

        from marey._marey import Error
        from marey.results.notebook_page import inline_flame_graph, summary_html, summary_text

        text = "<code>_marey</code> is the trace; <code>_marey.view()</code> shows it in the browser"
        if with_view or hasattr(self._shell, "kernel"):  # on a terminal, links are not shown
            try:
                if self._view is not None:
                    self._view.close()
                self._view = trace.view(browser=with_view)
                link = f'<a href="{html.escape(self._view.url)}" target="_blank">Open the viewer</a>'
                text = f"{link} (until the next recorded cell); <code>_marey</code> is the trace"
            except Error as error:
                print(f"marey: no viewer: {error}", file=sys.stderr)
        page = f"{summary_html(trace)}<p>{text}</p>"
        display: Any = ipython.display
        display({"text/plain": summary_text(trace), "text/html": page}, raw=True)
        if len(trace):
            display({"image/svg+xml": inline_flame_graph(trace)}, raw=True)

    def _magic(self, line: str, cell: str | None = None) -> Any:
        """Record a statement or a cell, then show its summary and flame graph.

        %marey STATEMENT
        %%marey [--calls | --no-calls] [--torch] [--gpu] [--view]

        The result is `_marey`, a marey.Trace. --calls records calls into C functions too, --no-calls only marked
        ranges, --torch PyTorch operators, --gpu GPU work; --view opens the viewer.
        """
        # IPython calls this where the magic is not at the top of its cell: inside another one, or in a block.
        from IPython.core.error import UsageError

        if cell is None and not line.strip():
            raise UsageError(f"usage: %marey STATEMENT, or {_USAGE}")
        if cell is not None:
            try:
                parse_options(line)
            except _UsageError as error:
                raise UsageError(str(error)) from None
        result = self._shell.run_cell(f"%marey {line}" if cell is None else f"%%marey {line}\n{cell}")
        return result.result if cell is None else None


def begin() -> None:
    """Start the recording of the running cell; IPython runs it as the cell's first statement."""
    if _recorder is not None:
        _recorder.begin(sys._getframe(1).f_code.co_filename)


def _profiler(options: set[str], name: str) -> Any:
    """Return a profiler for the options of a cell; `name`: of its trace.

    Raise ImportError if --torch is given and PyTorch is missing.
    """
    if "--calls" in options:
        from marey._warnings import warn

        warn("%%marey --calls is now --c-calls: it records calls into C functions", FutureWarning)
    c_calls = bool(options & {"--c-calls", "--calls"})
    calls = c_calls or not options & {"--no-calls", "--torch", "--gpu"}
    settings: dict[str, Any] = {"threads": "tasks", "with_stack": calls, "custom_trace_id_callback": lambda: name}
    if calls:
        settings.update(c_calls=c_calls or sys.version_info >= (3, 12))
    if "--gpu" in options:
        settings["use_device"] = "cuda"
    if "--torch" in options:
        from importlib import import_module

        return import_module("marey.torch").profile(**settings)
    from marey.recording.profile import profile

    return profile(**settings)
