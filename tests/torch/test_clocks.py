"""Comparing the clocks of hosts while a distributed program records."""

import os
import subprocess
import sys

import pytest
import torch.distributed

import marey

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available() or not torch.distributed.is_gloo_available(),
    reason="PyTorch was built without gloo",
)

# The store and the connections are real; only the names of the hosts are not.
PROGRAM = """
import sys, torch, torch.distributed as dist
from marey.torch import _clocks, profile
dist.init_process_group("gloo")
rank = dist.get_rank()
if sys.argv[1] == "hosts":
    _clocks.host_name = lambda: f"node{rank // 2}"
with profile(output="app.marey", clock_exchange=sys.argv[2] == "on") as prof:
    for _ in range(3):
        dist.all_reduce(torch.ones(3))
    if prof._clocks is not None and rank != 0:
        assert prof._clocks.compared.wait(100)
    dist.barrier()  # rank 0 answers until all others are done
dist.destroy_process_group()
"""


def exchanges(tmp_path, *arguments, **environment):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=4", "program.py"]
    command += arguments
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    traces = [marey.load(tmp_path / f"app.rank{rank}.marey") for rank in range(4)]
    return [len(trace.tables["clock_exchanges"].to_csv().splitlines()) - 1 for trace in traces]


def test_one_rank_of_each_other_host_compares_its_clock_with_rank_0(tmp_path):
    counts = exchanges(tmp_path, "hosts", "on")
    assert counts[:2] == [0, 0]
    asking = [count for count in counts[2:] if count > 0]
    assert len(asking) == 1 and asking[0] in (8, 16)  # at the start; at the stop too, if rank 0 still answers
    report = marey.ranks([tmp_path])
    assert len(report["ranks"]) == 4 and report["rank_totals"]["collectives"] >= 3


def test_ranks_on_one_host_make_no_connection(tmp_path):
    assert exchanges(tmp_path, "host", "on") == [0, 0, 0, 0]


def test_the_comparison_can_be_turned_off(tmp_path):
    assert exchanges(tmp_path, "hosts", "off") == [0, 0, 0, 0]
