"""Captures of the ranks of a distributed program."""

import json
import os
import re
import subprocess
import sys

import pytest
import torch.distributed

import marey

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available() or not torch.distributed.is_gloo_available(),
    reason="PyTorch was built without gloo",
)

PROGRAM = """
import torch, torch.distributed as dist
from marey.torch import profile
dist.init_process_group("gloo")
prof = profile(output="app.marey", record_shapes=True)
with prof:
    total = torch.ones(3)
    dist.all_reduce(total)
assert total.tolist() == [2.0] * 3
prof.export_chrome_trace(f"trace{dist.get_rank()}.json")
dist.destroy_process_group()
"""


def test_captures_of_each_rank_have_the_rank_in_their_name_and_contents(tmp_path):
    """With marey.torch.profile, and with marey run for the whole program."""
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "marey", "run", "--torch", "--no-calls", "-q", "-o", "run.marey"]
    command += ["--keep-captures", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "program.py"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    captures = sorted(path.name for path in tmp_path.glob("*.rank*.marey"))
    assert captures == ["app.rank0.marey", "app.rank1.marey", "run.rank0.marey", "run.rank1.marey"]
    for rank in (0, 1):
        for name in ("app", "run"):
            trace = marey.load(str(tmp_path / f"{name}.rank{rank}.marey"))
            assert {event.node_id for event in trace.events() if event.name == "aten::ones"} == {rank}
            assert any("all_reduce" in event.name for event in trace.events())
        info = json.loads((tmp_path / f"trace{rank}.json").read_text())["distributedInfo"]
        assert (info["backend"], info["rank"], info["world_size"], info["pg_count"]) == ("gloo", rank, 2, 1)
        assert info["pg_config"][0]["ranks"] == [0, 1] or info["pg_config"][0]["pg_size"] == 2


def test_a_marey_run_capture_has_the_rank_in_its_name_once(tmp_path):
    """Each rank runs under its own marey run; captures of its child processes have the rank in their names too."""
    child = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'len([])'], check=True)"
    command = [sys.executable, "-m", "marey", "run", "--torch", "-q", "--keep-captures", "-o", "a,b.marey", "-c", child]
    environment = {**os.environ, "RANK": "3", "WORLD_SIZE": "4"}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=300)
    own, started = sorted((path.name for path in tmp_path.glob("*.marey")), key=len)
    assert own == "a,b.rank3.marey"
    assert re.fullmatch(r"a,b\.rank3\.\d+\.marey", started)
    environment["WORLD_SIZE"] = "1"
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=300)
    assert (tmp_path / "a,b.marey").exists()


def test_without_ranks_the_path_is_unchanged(tmp_path, monkeypatch):
    from marey.torch import _ranks

    monkeypatch.delenv("RANK", raising=False)
    assert _ranks.rank() == -1 and marey._marey.path_of_rank("app.marey", -1) == "app.marey"
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert _ranks.rank() == 3 and marey._marey.path_of_rank("out/app.marey", 3) == "out/app.rank3.marey"
