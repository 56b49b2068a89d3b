"""Records the processes that multiprocessing starts for the tasks of a session.

Each such process records into its own capture, which survives if the process is killed; the session reads the
captures when it stops. No function is replaced: processes inherit a picklable object through the configuration that
multiprocessing passes on, whatever the start method.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile

from marey import _marey
from marey._imports import record_with
from marey._warnings import warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from marey._marey import Session

    Followed = tuple["Follower", "Follower | None"]  # the follower, and the one that it replaced

CONFIGURATION_KEY = "marey"
MAX_BYTES = 64 << 20  # per process

recorders: dict[
    str, str
] = {}  # package that records a framework -> the framework's module; for record_with() in child processes


class Follower:
    """The settings that a child process needs to record; created again in each child process."""

    def __init__(self, folder: str, options: dict[str, Any], recorders: dict[str, str]) -> None:
        self.folder = folder
        self.options = options
        self.recorders = recorders
        self.pid = 0  # of the process that records
        # Called by multiprocessing in the processes that it forks, including those forked by its server.
        sys.modules["multiprocessing.util"].register_after_fork(self, Follower.begin)

    def __reduce__(self) -> tuple[Any, ...]:
        return arrive, (self.folder, self.options, self.recorders)

    def begin(self) -> None:
        """In the new process: record until it ends."""
        if self.pid != os.getpid():
            self.pid = os.getpid()
            self.session = _marey.Session()
            try:
                path = os.path.join(self.folder, f"{self.pid}.marey")
                self.session.start(output=path, max_bytes=MAX_BYTES, **self.options)
            except _marey.Error:  # the parent's session has ended
                return
        # A forked process has discarded the functions registered before.
        finalize = sys.modules["multiprocessing.util"].Finalize
        self.finalizer = finalize(None, self.session.discard, exitpriority=-1000)


def arrive(folder: str, options: dict[str, Any], recorders: dict[str, str]) -> Follower:
    """Unpickle a Follower; in a process that is just starting, start to record."""
    import multiprocessing.util  # noqa: F401

    follower = Follower(folder, options, recorders)
    if getattr(sys.modules["multiprocessing.process"].current_process(), "_inheriting", False):
        follower.begin()
        for recorder, module in recorders.items():
            record_with(recorder, module)
    return follower


def follow(options: dict[str, Any]) -> Followed | None:
    """Record processes started from now on.

    Return the argument for `take_in`, or None if multiprocessing is not in use yet.
    """
    if "multiprocessing.process" not in sys.modules:
        return None
    import multiprocessing.util  # noqa: F401

    follower = Follower(tempfile.mkdtemp(prefix="marey-"), options, dict(recorders))
    configuration = sys.modules["multiprocessing.process"].current_process()._config
    outer = configuration.get(CONFIGURATION_KEY)
    configuration[CONFIGURATION_KEY] = follower
    return follower, outer


def take_in(followed: Followed, session: Session) -> None:
    """Undo `follow` and add the records of the processes so far to the session."""
    follower, outer = followed
    configuration = sys.modules["multiprocessing.process"].current_process()._config
    if configuration.get(CONFIGURATION_KEY) is follower:
        if outer is None:
            del configuration[CONFIGURATION_KEY]
        else:
            configuration[CONFIGURATION_KEY] = outer
    for name in sorted(os.listdir(follower.folder)):
        if not name.endswith(".marey"):
            continue
        try:
            _marey.add_capture(session, os.path.join(follower.folder, name))
        except _marey.Error as error:
            warn(f"the records of a child process are lost: {error}")
    shutil.rmtree(follower.folder, ignore_errors=True)
