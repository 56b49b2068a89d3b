"""Hosts on one machine: network, host name and time namespaces, with links that delay one direction more."""

import os
import subprocess
import sys

import pytest
from running import environment, move_to_host, write

import marey

DELAYS_S = (0.003, 0.0005)  # of requests, and of answers
NEAR, FAR = "10.77.0.1", "10.77.0.2"
AHEAD_S = {"asking": 500, "answering": 2000}  # of the machine's clock

HOST = """
    import socket, sys, time
    from marey import _marey  # private: the clock exchange of MPI, without MPI
    def work(): pass
    mode, address, port, delays = sys.argv[1:]
    work()
    if mode == 'answering':
        with socket.create_server((address, int(port))) as server:
            print('ready', flush=True)
            stream, _ = server.accept()
            with stream:
                while _marey.answer_clock(stream.fileno()): pass
    else:
        if delays == 'relayed':
            import relay
            address, port = relay.start(address, int(port))
        with socket.create_connection((address, int(port))) as stream:
            for _ in range(10):
                _marey.ask_clock(stream.fileno())
                time.sleep(0.01)
    work()
"""

RELAY = f"""
    import socket, threading, time
    def carry(source, sink, delay_s):
        while data := source.recv(4096):
            time.sleep(delay_s)
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    def start(address, port):
        server = socket.create_server(('127.0.0.1', 0))
        def serve():
            near, _ = server.accept()
            far = socket.create_connection((address, port))
            for stream in (near, far): stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=carry, args=(far, near, {DELAYS_S[1]}), daemon=True).start()
            carry(near, far, {DELAYS_S[0]})
        threading.Thread(target=serve, daemon=True).start()
        return server.getsockname()
"""


def is_done(*command):
    """Whether the command exists and succeeds."""
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


class Network:
    """Two network namespaces with a link between them. Where tc has netem, it delays; otherwise a relay does."""

    def __init__(self):
        self.prefix = f"marey{os.getpid()}"
        self.asking, self.answering = f"{self.prefix}a", f"{self.prefix}b"
        self.is_delayed = False

    def __enter__(self):
        try:
            self._create()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _create(self):
        for name in (self.asking, self.answering):
            if not is_done("ip", "netns", "add", name):
                pytest.skip("network namespaces are not allowed here")
        link = ["ip", "link", "add", "name", "veth0", "netns", self.asking, "type", "veth", "peer", "name", "veth0"]
        assert is_done(*link, "netns", self.answering)
        delayed = []
        for name, address, delay in ((self.asking, NEAR, DELAYS_S[0]), (self.answering, FAR, DELAYS_S[1])):
            assert is_done("ip", "-n", name, "address", "add", f"{address}/24", "dev", "veth0")
            for device in ("lo", "veth0"):
                assert is_done("ip", "-n", name, "link", "set", device, "up")
            netem = ["tc", "-n", name, "qdisc", "add", "dev", "veth0", "root", "netem", "delay", f"{delay}s"]
            delayed.append(is_done(*netem))
        self.is_delayed = all(delayed)

    def __exit__(self, *_):
        for name in (self.asking, self.answering):
            is_done("ip", "netns", "delete", name)

    def start(self, folder, mode):
        """Record one end on a host of its own, with a clock of its own."""
        delays = "netem" if self.is_delayed else "relayed"
        command = ["ip", "netns", "exec", getattr(self, mode), "unshare", "--uts", "--time"]
        command += [f"--monotonic={AHEAD_S[mode]}", "sh", "-c", f'hostname {mode} && exec "$@"', "sh", sys.executable]
        command += ["-m", "marey", "run", "-q", "-o", f"{mode}.marey", "program.py", mode, FAR, "7700", delays]
        return subprocess.Popen(command, cwd=folder, env=environment(), stdout=subprocess.PIPE, text=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for network and time namespaces")
def test_the_truth_is_within_the_bound_on_links_that_delay_one_direction_more(tmp_path):
    if not is_done("unshare", "--uts", "--time", "--monotonic=1", "true") or not is_done("ip", "netns"):
        pytest.skip("namespaces are not allowed here")
    write(tmp_path, HOST)
    write(tmp_path, RELAY, "relay.py")
    with Network() as network:
        answering = network.start(tmp_path, "answering")
        assert answering.stdout.readline() == "ready\n"
        asking = network.start(tmp_path, "asking")
        assert asking.wait(100) == 0 and answering.wait(100) == 0
        answering.stdout.close()
        asking.stdout.close()
    paths = [tmp_path / "answering.marey", tmp_path / "asking.marey"]
    for path in paths:
        move_to_host(path, path.stem)
    trace = marey.merge_traces([marey.load(path) for path in paths])
    assert trace.problems == []
    clocks = {row["host"]: row for row in trace.tables["clocks"].to_pandas().to_dict("records")}
    assert sorted(row["method"] for row in clocks.values()) == ["exchange", "reference"]
    (fitted,) = (row for row in clocks.values() if row["method"] == "exchange")
    truth_s = AHEAD_S[fitted["reference"]] - AHEAD_S[fitted["host"]]
    assert abs(fitted["offset_ns"] - truth_s * 10**9) <= fitted["error_ns"]
    # Nothing shows which direction is slower, so that the bound is at least half of what both take.
    assert fitted["error_ns"] >= sum(DELAYS_S) / 2 * 1e9 * 0.99
    assert fitted["error_ns"] < 1e9
