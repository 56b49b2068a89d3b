"""Comparing the clocks of the hosts of a distributed program, while a session records."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import socket
import threading
from typing import Any

import torch.distributed as dist

from marey import _marey
from marey._own_threads import OwnThread

PERIOD_S = 30.0  # between two bursts
_POLL_S = 0.5
_TIMEOUT_S = 5.0
_TOKEN_BYTES = 16


def host_name() -> str:
    """Return the name of this host; tests replace it."""
    return str(_marey.host_name())


class ClockComparison:
    """Asks rank 0's host for its clock, or answers; in a thread, over one connection per host.

    The ranks find each other through the default store, with calls that never wait: a program in which only some
    ranks record is not held up. Nothing listens as long as all ranks are on one host.
    """

    _count = 0  # of the comparisons of this process: equal on all ranks that record the same cycles

    def __init__(self) -> None:
        self._rank = int(dist.get_rank())
        self._most = int(dist.get_world_size())
        self._store: Any = dist.distributed_c10d._get_default_store()
        self._prefix = f"marey/clock/{ClockComparison._count}"
        ClockComparison._count += 1
        self._stopping = threading.Event()
        self.compared = threading.Event()  # set after the first burst, or if this rank makes none
        self._thread = OwnThread(self._run)

    def stop(self) -> None:
        """Make a last burst and close the connections."""
        self._stopping.set()
        self._thread.join(2 * _TIMEOUT_S)

    def _run(self) -> None:
        # The store may be gone, and a peer may be too: then there is no comparison, and recording goes on.
        with contextlib.suppress(_marey.Error, OSError, RuntimeError, ValueError, KeyError):
            self._answer() if self._rank == 0 else self._ask()
        self.compared.set()

    def _set(self, name: str, value: Any) -> None:
        self._store.set(f"{self._prefix}/{name}", json.dumps(value))

    def _wait_for(self, name: str) -> Any:
        """Return a value that another rank sets; None if this one stops first."""
        key = f"{self._prefix}/{name}"
        while not self._store.check([key]):
            if self._stopping.wait(_POLL_S):
                return None
        return json.loads(self._store.get(key))

    # ---- the other hosts

    def _ask(self) -> None:
        reference = self._wait_for("host")
        if reference is None or reference == host_name():
            return
        if self._store.add(f"{self._prefix}/ranks of {host_name()}", 1) != 1:
            return  # another rank of this host asks
        self._set("wanted", True)
        address = self._wait_for("address")
        if address is None:
            return
        with self._connected(address) as connection:
            connection.sendall(bytes.fromhex(address["token"]))
            is_last = False
            while not is_last:
                _marey.ask_clock(connection.fileno())
                self.compared.set()
                is_last = self._stopping.wait(PERIOD_S)
            _marey.ask_clock(connection.fileno())

    @staticmethod
    def _connected(address: dict[str, Any]) -> socket.socket:
        hosts = [os.environ.get("MASTER_ADDR", ""), *address["hosts"]]
        for host in hosts:
            with contextlib.suppress(OSError):
                return socket.create_connection((host, address["port"]), _TIMEOUT_S)
        raise OSError(f"no connection to {hosts}")

    # ---- the host of rank 0

    def _answer(self) -> None:
        self._set("host", host_name())
        if self._wait_for("wanted") is None:
            return
        token = secrets.token_bytes(_TOKEN_BYTES)
        with _listening() as server:
            hosts = [socket.gethostname()]
            with contextlib.suppress(OSError):
                hosts.append(socket.gethostbyname(hosts[0]))
            self._set("address", {"hosts": hosts, "port": server.getsockname()[1], "token": token.hex()})
            answering: list[OwnThread] = []
            while not self._stopping.is_set():
                ready, _, _ = select.select([server], [], [], _POLL_S)
                if not ready or len(answering) >= self._most:
                    continue
                connection, _ = server.accept()
                answering.append(OwnThread(self._serve, connection, token))
            for thread in answering:
                thread.join(_TIMEOUT_S)

    def _serve(self, connection: socket.socket, token: bytes) -> None:
        with connection, contextlib.suppress(OSError, _marey.Error):
            connection.settimeout(_TIMEOUT_S)
            given = b""
            while len(given) < _TOKEN_BYTES:
                part = connection.recv(_TOKEN_BYTES - len(given))
                if not part:
                    return
                given += part
            if not secrets.compare_digest(given, token):
                return
            while not self._stopping.is_set():
                ready, _, _ = select.select([connection], [], [], _POLL_S)
                if ready and not _marey.answer_clock(connection.fileno()):
                    return


def _listening() -> socket.socket:
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", 0))


def _is_allowed() -> bool:
    entries = (entry.partition("=") for entry in os.environ.get("MAREY", "").split(","))
    return not any(
        key.strip() == "clock_exchange" and value in ("off", "0", "no", "false") for key, _, value in entries
    )


def start() -> ClockComparison | None:
    """Start a comparison if this is one of several ranks, unless the variable MAREY has ``clock_exchange=off``."""
    if not _is_allowed() or not dist.is_available() or not dist.is_initialized() or dist.get_world_size() < 2:
        return None
    return ClockComparison()
