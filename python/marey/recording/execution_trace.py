"""``ExecutionTraceObserver``: writes the graph of ranges with inputs and outputs as Chakra JSON."""

from __future__ import annotations

import os

from marey._marey import Error, ExecutionTrace, execution_trace_request
from marey._warnings import warn


class ExecutionTraceObserver:
    """Writes a node for each range that begins between start() and stop().

    A node's ``rf_id`` is the range's ``Record function id`` in a Chrome trace recorded at the same time. Only one
    observer can be registered in a process at a time.
    """

    def __init__(self) -> None:
        self._trace: ExecutionTrace | None = None  # while registered
        self.output_file_path = ""
        self.resources_dir = ""
        self.extra_resources_collection = False

    def __del__(self) -> None:
        if getattr(self, "_trace", None) is not None:
            self.unregister_callback()

    # ---- the file

    def register_callback(self, output_file_path: str) -> ExecutionTraceObserver:
        """Create the file with its first node and return the observer. Does nothing if already registered."""
        if self._trace is None:
            path = os.fspath(output_file_path)
            self._trace = ExecutionTrace(path)
            self.output_file_path = path
            self._keep_resources()
        return self

    def unregister_callback(self) -> None:
        """Stop, and complete the file (compressed if its name ends in .gz). Does nothing if not registered."""
        trace, self._trace = self._trace, None
        if trace is None:
            return
        try:
            trace.finish()
        except Error as error:
            warn(f"the execution trace is incomplete: {error}")
        if not self.extra_resources_collection:
            return
        folder = self.get_resources_dir(can_create=True)
        if folder is None:
            warn(f"cannot create a folder for the resources of {self.output_file_path}")
        else:
            self._save_resources(folder)

    def _save_resources(self, folder: str) -> None:
        """Save the resources of the trace. Does nothing here; subclasses may override it."""

    @property
    def is_registered(self) -> bool:
        """Whether there is a file to write to."""
        return self._trace is not None

    def get_output_file_path(self) -> str | None:
        """Return the path of the file; None before register_callback()."""
        return self.output_file_path or None

    # ---- recording

    def start(self) -> None:
        """Start recording. Does nothing if it is not registered or already running."""
        if self._trace is not None:
            self._trace.start()

    def stop(self) -> None:
        """Stop recording; start() may follow. Ranges that are still open get their node when they end."""
        if self._trace is not None:
            self._trace.stop()

    def cleanup(self) -> None:
        """Do the same as unregister_callback()."""
        self.unregister_callback()

    def is_running(self) -> bool:
        """Return whether it is recording."""
        return self._trace is not None and self._trace.is_running

    # ---- resources of the trace

    def set_extra_resource_collection(self, val: bool) -> None:
        """Set whether a folder next to the file is kept for the resources of the trace."""
        self.extra_resources_collection = bool(val)
        self._keep_resources()

    def _keep_resources(self) -> None:
        folder = self.get_resources_dir(can_create=True)
        if self._trace is not None:
            self._trace.save_elements_in(folder or "")

    def get_resources_dir(self, can_create: bool = False) -> str | None:
        """Return that folder, or None if it does not exist or is not enabled."""
        if not self.extra_resources_collection or not self.output_file_path:
            return None
        if not self.resources_dir:
            self.resources_dir = self.get_resources_dir_for_et_path(self.output_file_path, can_create) or ""
        return self.resources_dir or None

    @staticmethod
    def get_resources_dir_for_et_path(trace_path: str, create_dir: bool = False) -> str | None:
        """Return the folder of a trace (``x_resources`` for ``x.json`` or ``x.json.gz``), or None if missing."""
        stem, suffix = os.path.splitext(os.fspath(trace_path))
        if suffix == ".gz":
            stem = os.path.splitext(stem)[0]
        folder = stem + "_resources"
        if os.path.isdir(folder):
            return folder
        if not create_dir:
            return None
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            warn(f"cannot create the folder {folder}: {error}")
            return None
        return folder

    @classmethod
    def build_execution_trace_obs_from_env(cls) -> ExecutionTraceObserver | None:
        """Return a registered observer if ``MAREY_EXECUTION_TRACE`` requests one, else None."""
        is_wanted, path, with_resources = execution_trace_request()
        if not is_wanted:
            return None
        if not path:
            import tempfile

            handle, path = tempfile.mkstemp(suffix=".et.json", prefix="marey_")
            os.close(handle)
        try:
            observer = cls().register_callback(path)
        except Error as error:
            warn(f"cannot write an execution trace: {error}")
            return None
        observer.set_extra_resource_collection(with_resources)
        return observer
