"""``ExecutionTraceObserver``: the graph of ranges with inputs and outputs, as a JSON file in Chakra's schema."""

import os
from abc import ABC, abstractmethod

from marey._marey import Error, ExecutionTrace, execution_trace_request
from marey._warnings import warn


class _ITraceObserver(ABC):
    """What a profiler starts and stops with each of its cycles."""

    @abstractmethod
    def start(self):
        pass

    @abstractmethod
    def stop(self):
        pass

    @abstractmethod
    def cleanup(self):
        pass


class ExecutionTraceObserver(_ITraceObserver):
    """Writes a node for each range that begins between start() and stop().

    A node's ``rf_id`` is the range's ``Record function id`` in a Chrome trace that is recorded meanwhile. One observer
    can be registered at a time in a process.
    """

    def __init__(self):
        self._trace = None  # while registered
        self.output_file_path = ""
        self.resources_dir = ""
        self.extra_resources_collection = False

    def __del__(self):
        if getattr(self, "_trace", None) is not None:
            self.unregister_callback()

    # ---- the file

    def register_callback(self, output_file_path):
        """Makes the file, with its first node. Harmless when registered already. Gives the observer."""
        if self._trace is None:
            path = os.fspath(output_file_path)
            self._trace = ExecutionTrace(path)
            self.output_file_path = path
        return self

    def unregister_callback(self):
        """Stops and completes the file; one that is to end in .gz is compressed now. Harmless when not registered."""
        trace, self._trace = self._trace, None
        if trace is None:
            return
        try:
            trace.finish()
        except Error as error:
            warn(f"the execution trace is not complete: {error}")
        if not self.extra_resources_collection:
            return
        folder = self.get_resources_dir(can_create=True)
        if folder is None:
            warn(f"no folder could be made for the resources of {self.output_file_path}")
        else:
            self._save_resources(folder)

    def _save_resources(self, folder):
        """For those who have some."""

    @property
    def is_registered(self):
        """Whether there is a file to write to."""
        return self._trace is not None

    def get_output_file_path(self):
        """Where it writes; None before register_callback()."""
        return self.output_file_path or None

    # ---- recording

    def start(self):
        """Begins to record. Nothing happens when it is not registered, or runs."""
        if self._trace is not None:
            self._trace.start()

    def stop(self):
        """Ends recording; start() may follow. Ranges that are open get their node when they end."""
        if self._trace is not None:
            self._trace.stop()

    def cleanup(self):
        """The same as unregister_callback()."""
        self.unregister_callback()

    def is_running(self):
        return self._trace is not None and self._trace.is_running

    # ---- what belongs to the trace

    def set_extra_resource_collection(self, val):
        """Whether a folder is kept beside the file for what belongs to the trace."""
        self.extra_resources_collection = bool(val)
        if self.extra_resources_collection:
            self.get_resources_dir(can_create=True)

    def get_resources_dir(self, can_create=False):
        """That folder; None when there is none, or none is wanted."""
        if not self.extra_resources_collection or not self.output_file_path:
            return None
        if not self.resources_dir:
            self.resources_dir = self.get_resources_dir_for_et_path(self.output_file_path, can_create) or ""
        return self.resources_dir or None

    @staticmethod
    def get_resources_dir_for_et_path(trace_path, create_dir=False):
        """The folder that goes with a trace: ``x_resources`` for ``x.json`` and ``x.json.gz``. None: none is there."""
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
            warn(f"the folder {folder} cannot be made: {error}")
            return None
        return folder

    @classmethod
    def build_execution_trace_obs_from_env(cls):
        """An observer that is registered, if the environment asks for one (``MAREY_EXECUTION_TRACE``), or None."""
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
            warn(f"no execution trace is written: {error}")
            return None
        observer.set_extra_resource_collection(with_resources)
        return observer
