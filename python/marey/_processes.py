"""Follows a session's tasks into the processes that multiprocessing starts for them.

Each such process records into a capture of its own, which survives however it ends; the session takes them in when
it stops. Nothing is replaced: processes inherit a picklable object through the configuration that multiprocessing
hands on, whichever way it starts them.
"""

import os
import shutil
import sys
import tempfile

from marey import _marey
from marey._warnings import warn

CONFIGURATION_KEY = "marey"
MAX_BYTES = 64 << 20  # of one process


class Follower:
    """What a process needs to know to be followed; made anew in each that is."""

    def __init__(self, folder, options, with_torch):
        self.folder = folder
        self.options = options
        self.with_torch = with_torch  # whether operators of PyTorch are to be recorded
        self.pid = 0  # of the process that records for it
        # Called by multiprocessing in the processes that it forks, also from its server.
        sys.modules["multiprocessing.util"].register_after_fork(self, Follower.begin)

    def __reduce__(self):
        return arrive, (self.folder, self.options, self.with_torch)

    def begin(self):
        """In the new process: records until it ends."""
        if self.pid != os.getpid():
            self.pid = os.getpid()
            self.session = _marey.Session()
            try:
                path = os.path.join(self.folder, f"{self.pid}.marey")
                self.session.start(output=path, max_bytes=MAX_BYTES, **self.options)
            except _marey.Error:  # the session that it was for is over
                return
        # A forked process has thrown away what was registered before.
        finalize = sys.modules["multiprocessing.util"].Finalize
        self.finalizer = finalize(None, self.session.discard, exitpriority=-1000)


def arrive(folder, options, with_torch):
    """Unpickles a Follower; in a process that is just being started, it begins."""
    import multiprocessing.util  # noqa: F401

    follower = Follower(folder, options, with_torch)
    if getattr(sys.modules["multiprocessing.process"].current_process(), "_inheriting", False):
        follower.begin()
        if with_torch:
            from marey import _torch_import

            _torch_import.watch()
    return follower


def follow(options):
    """Has the processes followed that are made from here on; gives what `take_in` takes, or None where nothing uses
    multiprocessing yet."""
    if "multiprocessing.process" not in sys.modules:
        return None
    import multiprocessing.util  # noqa: F401

    follower = Follower(tempfile.mkdtemp(prefix="marey-"), options, _marey.torch.is_loaded())
    configuration = sys.modules["multiprocessing.process"].current_process()._config
    outer = configuration.get(CONFIGURATION_KEY)
    configuration[CONFIGURATION_KEY] = follower
    return follower, outer


def take_in(followed, session):
    """Ends `follow`, and gives the session what the processes have recorded so far."""
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
            warn(f"what a process of the program has recorded is lost: {error}")
    shutil.rmtree(follower.folder, ignore_errors=True)
