"""Captures of the ranks of a distributed program."""

import bisect
import csv
import io
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


TRAINING = """
import sys, torch, torch.distributed as dist
from torch.utils.data import DataLoader, Dataset
class Numbers(Dataset):
    def __len__(self): return 8
    def __getitem__(self, index): return torch.full((4,), float(index))
def train():
    total = torch.zeros(4)
    for batch in DataLoader(Numbers(), batch_size=2, num_workers=2):
        total += batch.sum(0)
        dist.all_reduce(total)
    return total
if __name__ == "__main__":
    dist.init_process_group("gloo")
    total = train()
    if dist.get_rank() == 0: print(total.tolist(), flush=True)
    dist.barrier()
    dist.destroy_process_group()
    sys.exit(int(sys.argv[1]))
"""


def launch(folder, code, *before):
    command = [*before, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=4", "train.py", str(code)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=500)


def test_torchrun_with_data_loaders_is_one_trace_of_all_processes(tmp_path):
    (tmp_path / "train.py").write_text(TRAINING)
    plain = launch(tmp_path, 0, sys.executable)
    marey_run = [sys.executable, "-m", "marey", "run", "--torch", "-q", "--min-duration", "20us"]
    done = launch(tmp_path, 0, *marey_run, "--keep-captures", "-o", "run.marey")
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout) == (0, plain.stdout), done.stderr
    assert plain.stdout.startswith("[") and "marey" not in done.stderr
    merge = [sys.executable, "-m", "marey", "merge", "-o", "all.marey", *map(str, tmp_path.glob("run*.marey"))]
    merged = subprocess.run(merge, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert merged.stdout.startswith("all.marey: 13 processes, ")

    trace = marey.load(tmp_path / "all.marey")
    assert not {code for code, _, _ in trace.problems} & {"crashed", "left_out", "clock_unknown"}
    processes = rows(trace, "processes")
    (agent,) = (row for row, process in enumerate(processes) if process["parent"] == "")
    ranks = {row for row, process in enumerate(processes) if process["parent"] == str(agent)}
    assert sorted(processes[row]["node"] for row in ranks) == ["0", "1", "2", "3"]
    assert {processes[row]["origin"] for row in ranks} == {"spawn"}
    workers = {row: int(each["parent"]) for row, each in enumerate(processes) if each["origin"] == "fork"}
    assert sorted(workers.values()) == sorted([*ranks, *ranks])
    assert processes[agent]["exit_code"] == "0" and len({process["clock"] for process in processes}) == 1

    found = process_links(trace)
    for row in ranks:
        assert ("spawn", agent, row) in found
    for row, rank in workers.items():  # each worker gets indexes and returns batches
        assert {("spawn", rank, row), ("message", rank, row), ("message", row, rank)} <= found
    report = marey.ranks([tmp_path / "all.marey"])
    assert len(report["ranks"]) == 4 and report["rank_totals"]["collectives"] >= 4

    plain = launch(tmp_path, 3, sys.executable)
    done = launch(tmp_path, 3, *marey_run, "-o", "failed.marey")
    assert done.returncode == plain.returncode == 1 and done.stdout == plain.stdout
    assert len(rows(marey.load(tmp_path / "failed.marey"), "processes")) == 13


def rows(trace, table):
    return list(csv.DictReader(io.StringIO(trace.tables[table].to_csv())))


def process_links(trace):
    """Return (name, process it starts from, process it leads to) of the links between processes."""
    tracks = sorted((int(track["first_range"]), int(track["thread"])) for track in rows(trace, "tracks"))
    first = [row for row, _ in tracks]
    threads = rows(trace, "threads")

    def process_of(row):
        return int(threads[tracks[bisect.bisect_right(first, int(row)) - 1][1]]["process"])

    return {(link["name"], process_of(link["from"]), process_of(link["to"])) for link in rows(trace, "links")}


def test_without_ranks_the_path_is_unchanged(tmp_path, monkeypatch):
    from marey.torch import _ranks

    monkeypatch.delenv("RANK", raising=False)
    assert _ranks.rank() == -1 and marey._marey.path_of_rank("app.marey", -1) == "app.marey"
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert _ranks.rank() == 3 and marey._marey.path_of_rank("out/app.marey", 3) == "out/app.rank3.marey"


def test_collectives_do_not_move_the_forward_thread_of_backward_nodes(run_python):
    """A collective begins on a thread of its process group, in a range of the thread that called it."""
    out = run_python(
        "import torch\n"
        "from torch import distributed\n"
        "from marey.torch import profile\n"
        "distributed.init_process_group('gloo', store=distributed.HashStore(), rank=0, world_size=1)\n"
        "with profile() as prof:\n"
        "    for _ in range(4):\n"
        "        distributed.all_reduce(torch.ones(2))\n"
        "        (torch.ones(2, requires_grad=True) * 2).sum().backward()\n"
        "print({event.thread == event.fwd_thread for event in prof.events() if event.name == 'MulBackward0'})\n"
        "distributed.destroy_process_group()\n"
    )
    assert out.strip() == "{True}"
