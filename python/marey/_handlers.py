"""What to do with a trace when it is ready."""

from marey._marey import Error


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False, use_python_export=False):
    """For ``on_trace_ready``: writes each trace as ``<worker>.<time>.pt.trace.json`` (with ``.gz``) into a folder,
    which is made if need be. The worker is ``<host>_<pid>`` unless named. There is one
    exporter: `use_python_export` changes nothing.
    """

    def write(prof):
        import os
        import socket
        import time

        nonlocal worker_name
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise Error(f"cannot make the folder {os.fsdecode(dir_name)}: {error.strerror}") from error
        if not worker_name:
            worker_name = f"{socket.gethostname()}_{os.getpid()}"
        suffix = ".gz" if use_gzip else ""
        prof.export_chrome_trace(
            os.path.join(os.fsdecode(dir_name), f"{worker_name}.{time.time_ns()}.pt.trace.json{suffix}")
        )

    return write
