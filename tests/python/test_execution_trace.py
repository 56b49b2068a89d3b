"""ExecutionTraceObserver: the graph of ranges, and how it joins the trace."""

import array
import json
import os
import subprocess
import threading

import pytest
from conftest import BUILD
from execution_graphs import ROOT, THREAD, attribute, named, nodes_of, read, run

import marey
from marey import ExecutionTraceObserver

COMMAND = BUILD / "marey"


@pytest.fixture
def observer(tmp_path):
    made = ExecutionTraceObserver().register_callback(tmp_path / "x.et.json")
    yield made
    made.unregister_callback()


def test_the_graph_has_a_root_a_node_for_each_thread_and_each_range(observer):
    """upstream: test_execution_trace_alone"""
    observer.start()
    with marey.record_function("outer"):
        with marey.record_function("inner"):
            pass
    thread = threading.Thread(target=marey.record_function("elsewhere")(lambda: None))
    thread.start()
    thread.join()
    observer.unregister_callback()
    whole = read(observer.get_output_file_path())
    assert whole["schema"] == "1.1.1-chakra.0.0.4"
    assert whole["pid"] == os.getpid()
    assert whole["start_ts"] <= whole["finish_ts"]
    nodes = whole["nodes"]
    root = named(nodes, ROOT)
    assert root["id"] == 1
    first, second = [node for node in nodes if node["name"] == THREAD]
    assert first["ctrl_deps"] == second["ctrl_deps"] == 1
    outer, inner, elsewhere = (named(nodes, name) for name in ("outer", "inner", "elsewhere"))
    assert outer["ctrl_deps"] == first["id"]
    assert inner["ctrl_deps"] == outer["id"]
    assert elsewhere["ctrl_deps"] == second["id"]
    assert attribute(elsewhere, "tid") == attribute(second, "tid") != attribute(outer, "tid")
    assert attribute(outer, "scope") == 7
    assert len({node["id"] for node in nodes}) == len(nodes) == 6


def test_inputs_are_described_in_four_lists_of_one_length(observer):
    """upstream: test_execution_trace_alone (tensor tuples of six, infinities and NaN in quotes)"""
    row = array.array("d", [1, 2, 3])
    grid = memoryview(bytes(24)).cast("B", (2, 3, 4))
    inputs = [row, grid, 5, 1.0, float("inf"), float("-inf"), float("nan"), True, 'a "b"\n', None, [1, [row]]]
    keywords = {"kernel_file": "k.py", "stream": 7, "scope": "ignored", "names": ["a", "b"], "half": 0.5}
    observer.start()
    with marey.record_function_fast("f", inputs, keywords):
        pass
    observer.unregister_callback()
    node = named(nodes_of(observer.get_output_file_path()), "f")
    values, shapes, types, strides = (node["inputs"][key] for key in ("values", "shapes", "types", "strides"))
    assert len(values) == len(shapes) == len(types) == len(strides) == len(inputs)
    row_id, row_storage = values[0][:2]
    grid_id, grid_storage = values[1][:2]
    assert values[0] == [row_id, row_storage, 0, 3, 8, "cpu"]
    assert values[1] == [grid_id, grid_storage, 0, 24, 1, "cpu"]
    assert len({row_id, row_storage, grid_id, grid_storage}) == 4
    assert values[2:10] == [5, 1.0, "inf", "-inf", "nan", True, 'a "b"\n', "<None>"]
    assert values[10] == [1, [values[0]]]
    assert shapes == [[3], [2, 3, 4], *[[]] * 8, [[], [[3]]]]
    assert strides == [[1], [12, 4, 1], *[[]] * 8, [[], [[1]]]]
    scalars = ["Int", "Double", "Double", "Double", "Double", "Bool", "String", "None"]
    nested = "GenericList[Int,GenericList[Tensor(double)]]"
    assert types == ["Tensor(double)", "Tensor(unsigned char)", *scalars, nested]
    assert attribute(node, "scope") == 0
    assert attribute(node, "kernel_file") == "k.py"
    assert attribute(node, "stream") == 7
    assert attribute(node, "half") == 0.5
    assert json.loads(attribute(node, "names")) == ["a", "b"]
    assert node["outputs"] == {"values": [], "shapes": [], "types": [], "strides": []}


def chrome_ids(trace, tmp_path):
    """Record function id -> name, of the Chrome trace."""
    trace.save(str(tmp_path / "x.marey"))
    subprocess.run([COMMAND, "export", tmp_path / "x.marey", "--to", "chrome", "-o", tmp_path / "x.json"], check=True)
    args = [(event.get("args", {}), event["name"]) for event in read(tmp_path / "x.json")["traceEvents"]]
    return {of["Record function id"]: name for of, name in args if "Record function id" in of}


def test_ids_match_the_chrome_trace(observer, tmp_path):
    """upstream: test_execution_trace_with_kineto (the ids)"""
    session = marey.Session()
    session.start(record_shapes=True)
    with marey.record_function("before"):
        pass
    observer.start()
    for step in range(3):
        with marey.record_function(f"work {step}"):
            with marey.record_function_fast("op", [step], {"key": step}):
                marey.begin("begun")
                marey.end()
    observer.stop()
    with marey.record_function("after"):
        pass
    trace = session.stop()
    observer.unregister_callback()
    nodes = [node for node in nodes_of(observer.get_output_file_path()) if node["name"] not in (ROOT, THREAD)]
    of_graph = {attribute(node, "rf_id"): node["name"] for node in nodes}
    assert len(of_graph) == len(nodes) == 9
    assert of_graph == chrome_ids(trace, tmp_path)


def test_it_follows_the_schedule_of_a_profiler(observer):
    """upstream: test_execution_trace_with_kineto (the window)"""
    from marey import profile

    with profile(
        schedule=marey.schedule(skip_first=3, wait=1, warmup=1, active=2, repeat=1), execution_trace_observer=observer
    ) as prof:
        for step in range(10):
            with marey.record_function(f"work {step}"):
                assert observer.is_running() == (step in (5, 6))
            prof.step()
    assert not observer.is_registered
    names = [node["name"] for node in nodes_of(observer.get_output_file_path())]
    assert [name for name in names if name.startswith("work")] == ["work 5", "work 6"]


def test_only_ranges_that_begin_while_it_runs_are_recorded(observer):
    """upstream: test_execution_trace_start_stop"""
    assert observer.is_registered and not observer.is_running()
    straddling = marey.record_function("straddles the stop")
    for step in range(6):
        if step in (1, 4):
            observer.start()
            assert observer.is_running()
        if step == 4:
            straddling.__enter__()
        with marey.record_function(f"step {step}"):
            pass
        if step in (1, 4):
            observer.stop()
            assert not observer.is_running()
    straddling.__exit__(None, None, None)
    observer.cleanup()
    assert not observer.is_registered
    nodes = nodes_of(observer.get_output_file_path())
    names = [node["name"] for node in nodes if node["name"] not in (ROOT, THREAD)]
    assert sorted(names) == ["step 1", "step 4", "straddles the stop"]
    assert named(nodes, "step 4")["ctrl_deps"] == named(nodes, "straddles the stop")["id"]


def test_a_range_that_is_open_at_the_end_has_its_node(observer):
    observer.start()
    open_range = marey.record_function("open")
    with open_range:
        with marey.record_function("in it"):
            pass
        observer.unregister_callback()
        nodes = nodes_of(observer.get_output_file_path())
        assert named(nodes, "in it")["ctrl_deps"] == named(nodes, "open")["id"]


def test_several_observers_one_after_another(tmp_path):
    """upstream: test_execution_trace_repeat_in_loop"""
    for turn in range(4):
        path = tmp_path / f"{turn}.json"
        one = ExecutionTraceObserver().register_callback(str(path))
        one.start()
        with marey.record_function(f"turn {turn}"):
            pass
        one.stop()
        one.unregister_callback()
        nodes = nodes_of(path)
        assert named(nodes, ROOT)["id"] == 1
        assert [node["name"] for node in nodes[2:]] == [f"turn {turn}"]


def test_an_observer_that_never_started_has_only_the_root(observer):
    """upstream: test_execution_trace_no_capture"""
    with marey.record_function("unseen"):
        pass
    observer.unregister_callback()
    assert [node["name"] for node in nodes_of(observer.get_output_file_path())] == [ROOT]


def test_a_second_observer_at_the_same_time_is_an_error(observer, tmp_path):
    second = ExecutionTraceObserver()
    with pytest.raises(marey.Error, match="one at a time"):
        second.register_callback(tmp_path / "second.json")
    assert not second.is_registered
    assert second.get_output_file_path() is None
    observer.unregister_callback()
    second.register_callback(tmp_path / "second.json").unregister_callback()


def test_misuse_is_harmless_and_bad_paths_are_errors(tmp_path):
    idle = ExecutionTraceObserver()
    idle.start()
    idle.stop()
    idle.cleanup()
    idle.unregister_callback()
    assert not idle.is_running()
    for path in (tmp_path / "no folder" / "x.json", tmp_path / "no folder" / "x.json.gz", tmp_path):
        with pytest.raises(marey.Error, match="no folder|pytest"):
            idle.register_callback(path)
    with pytest.raises(TypeError):
        idle.register_callback(5)
    assert idle.register_callback(tmp_path / "x.json").register_callback(tmp_path / "y.json") is idle
    assert idle.get_output_file_path() == str(tmp_path / "x.json")
    idle.unregister_callback()
    assert not (tmp_path / "y.json").exists()


def test_a_name_that_ends_in_gz_is_compressed_at_the_end(tmp_path):
    """upstream: test_execution_trace_alone (gz output)"""
    path = tmp_path / "x.json.gz"
    one = ExecutionTraceObserver().register_callback(path)
    one.start()
    with marey.record_function("zipped"):
        pass
    assert not path.exists()
    one.unregister_callback()
    assert [file.name for file in tmp_path.iterdir()] == ["x.json.gz"]
    assert named(nodes_of(path), "zipped")


def test_the_file_is_json_at_any_moment(observer):
    observer.start()
    for number in range(3000):
        with marey.record_function(f"range {number}"):
            pass
        if number % 500 == 0:
            read(observer.get_output_file_path())
    observer.stop()
    assert len(nodes_of(observer.get_output_file_path())) == 3002


@pytest.mark.parametrize(
    "end, is_whole",
    [("pass", True), ("sys.exit(0)", True), ("1 / 0", True), ("os._exit(0)", False), ("os.abort()", False)],
)
def test_the_file_is_json_however_the_program_ends(tmp_path, end, is_whole):
    path = tmp_path / "x.json"
    run(
        f"""if True:
        import os, sys, marey
        from marey import ExecutionTraceObserver
        observer = ExecutionTraceObserver().register_callback({str(path)!r})
        observer.start()
        with marey.record_function("a"):
            pass
        if {not is_whole}:
            observer.stop()
        {end}
        """
    )
    assert named(nodes_of(path), "a")


def test_a_forked_child_leaves_the_file_to_its_parent(observer):
    observer.start()
    with marey.record_function("parent"):
        child = os.fork()
        if child == 0:
            with marey.record_function("child"):
                pass
            observer.unregister_callback()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    observer.unregister_callback()
    names = [node["name"] for node in nodes_of(observer.get_output_file_path())]
    assert "parent" in names and "child" not in names


def test_threads_write_one_graph(observer):
    observer.start()

    def work(number):
        for turn in range(200):
            with marey.record_function(f"outer {number}"):
                with marey.record_function_fast("inner", [number, turn]):
                    pass

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    observer.unregister_callback()
    nodes = nodes_of(observer.get_output_file_path())
    by_id = {node["id"]: node for node in nodes}
    assert len(by_id) == len(nodes) == 1 + 4 + 1600
    for node in nodes:
        if node["name"] == "inner":
            assert by_id[node["ctrl_deps"]]["name"] == f"outer {node['inputs']['values'][0]}"


def test_an_observer_that_is_destroyed_completes_its_file(tmp_path):
    one = ExecutionTraceObserver().register_callback(tmp_path / "x.json")
    one.start()
    with marey.record_function("a"):
        pass
    del one
    assert named(nodes_of(tmp_path / "x.json"), "a")
    ExecutionTraceObserver().register_callback(tmp_path / "y.json").unregister_callback()
