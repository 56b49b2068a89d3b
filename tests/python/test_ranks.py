"""``marey.ranks()``: comparing the ranks of a distributed program; clocks over a socket."""

import json
import socket
import threading

import pytest

import marey


def event(name, start, duration, category="cpu_op", **args):
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": start, "dur": duration, "args": args}


def rank_file(folder, rank, compute, host="node0"):
    """Three steps of 10 ms: computing, then an all_reduce that ends at the same time on all ranks."""
    events = []
    for step in range(3):
        start = 10_000 * step
        events.append(event(f"ProfilerStep#{step}", start, 10_000, "user_annotation"))
        events.append(event("aten::mm", start, compute))
        events.append(event("gloo:all_reduce", start + compute, 9_900 - compute, "user_annotation"))
    path = folder / f"rank{rank}.json"
    info = {"backend": "gloo", "rank": rank, "world_size": 2}
    path.write_text(json.dumps({"schemaVersion": 1, "host_name": host, "distributedInfo": info, "traceEvents": events}))
    return path


def test_ranks_are_compared_in_files_and_in_memory(tmp_path):
    paths = [rank_file(tmp_path, 0, 4_000), rank_file(tmp_path, 1, 7_000)]
    report = marey.ranks(paths)
    assert report["left_out"] == []
    first, second = report["ranks"]
    assert (first["rank"], first["host"], first["steps"]) == (0, "node0", 3)
    assert first["waiting_ns"] == 9_000_000 and second["waiting_ns"] == 0
    assert (first["times_last"], second["times_last"]) == (0, 3)
    assert second["delayed_ns"] == 9_000_000
    assert report["rank_totals"]["worst_rank"] == 1
    assert report["rank_totals"]["step_without_worst_ns"] == pytest.approx(7e6)
    (finding,) = report["rank_findings"]
    assert (finding["rule"], finding["rank"], finding["host"]) == ("slow_kernels", 1, "node0")
    assert marey.ranks([marey.load(path) for path in paths]) == report


def test_files_that_cannot_be_read_are_left_out(tmp_path):
    paths = [rank_file(tmp_path, 0, 4_000), rank_file(tmp_path, 1, 7_000)]
    damaged = tmp_path / "damaged.marey"
    damaged.write_bytes(b"MAREYCAP" + bytes(40))
    report = marey.ranks([*paths, damaged, tmp_path / "missing.marey", paths[0]])
    assert [path for path, _ in report["left_out"]] == [str(damaged), str(tmp_path / "missing.marey"), str(paths[0])]
    assert "rank 0 is in two" in report["left_out"][2][1]
    with pytest.raises(marey.Error, match="at least two ranks are needed, got 1"):
        marey.ranks(paths[:1])
    with pytest.raises(marey.Error, match="at least two ranks are needed, got 1"):
        marey.load(paths[0]).ranks()


def test_a_folder_of_traces_is_a_job(tmp_path):
    paths = [rank_file(tmp_path, 0, 4_000), rank_file(tmp_path, 1, 7_000)]
    (tmp_path / "notes.txt").write_text("not a trace\n")
    report = marey.ranks([tmp_path])
    assert report["left_out"] == [] and report["ranks"] == marey.ranks(paths)["ranks"]
    for path in paths:
        path.unlink()
    with pytest.raises(marey.Error, match="no captures .* and no Chrome, PyTorch or Perfetto traces"):
        marey.ranks([tmp_path])


def test_loading_between_steps_belongs_to_the_next_step(tmp_path):
    paths = []
    for rank, loading in enumerate((1_000, 6_000)):
        events = []
        for step in range(5):
            start = 10_000 * step
            events.append(event("enumerate(DataLoader)#_Iter.__next__", start, loading))
            events.append(event(f"ProfilerStep#{step}", start + loading, 10_000 - loading, "user_annotation"))
            events.append(event("aten::mm", start + loading, 2_000))
            events.append(event("gloo:all_reduce", start + loading + 2_000, 7_900 - loading, "user_annotation"))
        info = {"backend": "gloo", "rank": rank, "world_size": 2}
        path = tmp_path / f"rank{rank}.json"
        path.write_text(json.dumps({"schemaVersion": 1, "distributedInfo": info, "traceEvents": events}))
        paths.append(path)
    report = marey.ranks(paths)
    (finding,) = report["rank_findings"]
    assert (finding["rule"], finding["rank"]) == ("late_input", 1)
    assert report["ranks"][1]["input_ns"] == 4 * 6_000_000  # nothing is known about the time before the first step
    work = [part for part in report["rank_critical_path"] if not part["is_collective"]]
    assert work[0]["name"].startswith("enumerate(DataLoader)") and work[0]["time_ns"] == 4 * 8_100_000


def test_hosts_without_exchanges_are_related_by_their_collectives(tmp_path):
    paths = [rank_file(tmp_path, 0, 4_000), rank_file(tmp_path, 1, 4_500, host="node1")]
    clocks = {clock["host"]: clock for clock in marey.ranks(paths)["rank_clocks"]}
    assert {clock["method"] for clock in clocks.values()} == {"reference", "collective"}
    assert sum(clock["collectives"] for clock in clocks.values()) == 6


def test_ranges_with_a_group_and_a_sequence_are_collectives(tmp_path, run_python):
    """Rank 1 was not recorded when the first collective took place."""
    for rank in (0, 1):
        run_python(
            "import marey\n"
            f"marey.set_node_id({rank})\n"
            f"with marey.profile(output={str(tmp_path / f'{rank}.marey')!r}):\n"
            f"    for number in range({rank}, 3):\n"
            "        values = {'group': 'data', 'sequence': number}\n"
            "        with marey.record_function_fast('exchange all_reduce', [], values):\n"
            "            pass\n"
        )
    report = marey.ranks([tmp_path])
    assert (report["rank_totals"]["collectives"], report["rank_totals"]["unmatched"]) == (2, 1)


def test_the_group_of_a_collective_may_be_a_number():
    """As MPI's are."""
    with marey.profile() as prof:
        for number in range(2):
            with marey.record_function_fast("MPI_Allreduce", [], {"group": 77, "sequence": number}):
                pass
    rows = prof.trace.tables["range_places"].to_csv().splitlines()
    assert [row.replace('"', "").split(",")[1:] for row in rows if "77" in row] == [["77", "0"], ["77", "1"]]


def test_exchanges_over_a_socket_are_in_the_trace():
    asking, answering = socket.socketpair()
    with asking, answering, marey.profile() as prof:
        thread = threading.Thread(target=marey._marey.answer_clock, args=(answering.fileno(),))
        thread.start()
        assert marey._marey.ask_clock(asking.fileno()) == 8
        thread.join()
    lines = prof.trace.tables["clock_exchanges"].to_csv().splitlines()
    assert lines[0] == "process,peer,sent_ns,arrived_ns,answered_ns,received_ns"
    assert len(lines) == 9
    for line in lines[1:]:
        _, peer, *times = line.split(",")
        assert peer.strip('"') == socket.gethostname()
        assert [int(time) for time in times] == sorted(int(time) for time in times)  # one clock
