"""Execution traces of PyTorch's operators."""

import gzip
import json

import pytest
import torch
import torch.distributed as dist

import marey.torch
from marey.torch import ExecutionTraceObserver, profile, record_function, schedule


def nodes_of(path):
    open_file = gzip.open if str(path).endswith(".gz") else open
    with open_file(path, "rt") as file:
        document = json.load(file)
    assert document["schema"].startswith("1.1")
    return document["nodes"]


def attribute(node, name):
    return next(attr["value"] for attr in node["attrs"] if attr["name"] == name)


def train(net):
    with record_function("## LOOP ##"):
        net(torch.ones(2, 3)).sum().backward()


@pytest.fixture
def net():
    return torch.nn.Linear(3, 4)


def test_the_observer_follows_the_schedule_and_has_the_ids_of_the_trace(tmp_path, net):
    """upstream: test_execution_trace_with_kineto"""
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "graph.json"))
    steps = []

    def ready(prof):
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        steps.append(prof.step_num)

    with profile(
        schedule=schedule(wait=3, warmup=1, active=2, repeat=1),
        on_trace_ready=ready,
        execution_trace_observer=observer,
        record_shapes=True,
    ) as prof:
        for _ in range(8):
            train(net)
            prof.step()
    assert len(steps) == 1 and not observer.is_registered
    nodes = nodes_of(tmp_path / "graph.json")
    assert [node["name"] for node in nodes].count("## LOOP ##") == 2
    joined = {attribute(node, "rf_id") for node in nodes if node["name"].startswith("aten::")}
    rows = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    ids = [row["args"]["Record function id"] for row in rows if row.get("name", "").startswith("aten::")]
    assert ids and joined == set(ids)


def test_the_environment_enables_an_execution_trace_with_operators(tmp_path, monkeypatch, net):
    """upstream: test_execution_trace_env_enabled_with_kineto, test_execution_trace_env_disabled"""
    assert profile().execution_trace_observer is None
    path = tmp_path / "graph.json"
    monkeypatch.setenv("MAREY_EXECUTION_TRACE", str(path))
    with profile() as prof:
        assert isinstance(prof.execution_trace_observer, marey.torch.ExecutionTraceObserver)
        train(net)
    assert {"## LOOP ##", "aten::addmm", "AddmmBackward0"} <= {node["name"] for node in nodes_of(path)}


def test_a_standalone_execution_trace_is_compressed_and_has_every_kind_of_input(tmp_path, net):
    """upstream: test_execution_trace_alone"""
    path = tmp_path / "graph.json.gz"
    observer = ExecutionTraceObserver().register_callback(str(path))
    observer.start()
    train(net)
    torch.full((2,), float("inf"))
    torch.ones(2) * float("nan")
    torch.cat([torch.ones(2), torch.ones(3)])
    observer.stop()
    observer.unregister_callback()
    nodes = nodes_of(path)
    assert nodes[0]["id"] == 1 and nodes[0]["name"] == "[pytorch|profiler|execution_trace|process]"
    by_name = {node["name"]: node for node in nodes}
    (tensor, *_) = by_name["aten::addmm"]["inputs"]["values"]
    assert len(tensor) == 6 and tensor[-1] == "cpu"
    assert "inf" in str(by_name["aten::full"]["inputs"]["values"]).lower()
    assert len(by_name["aten::cat"]["inputs"]["values"][0]) == 2
    assert by_name["aten::cat"]["inputs"]["types"][0].startswith("GenericList[Tensor(")
    assert all(len(node["inputs"]["values"]) == len(node["inputs"]["shapes"]) for node in nodes)
    assert attribute(by_name["AddmmBackward0"], "fw_parent") > 0


def test_devices_generators_and_complex_numbers_are_written_as_text(tmp_path):
    path = tmp_path / "graph.json"
    found = []
    for kind in (ExecutionTraceObserver, torch.profiler.ExecutionTraceObserver):
        observer = kind()
        observer.register_callback(str(path))
        observer.start()
        torch.ones(2).to("meta")
        torch.randn(2, generator=torch.Generator())
        torch.full((2,), 1j)
        observer.stop()
        observer.unregister_callback()
        inputs = [
            node["inputs"] for node in nodes_of(path) if node["name"] in ("aten::to", "aten::randn", "aten::full")
        ]
        found.append(
            [(each["types"], [value for value in each["values"] if isinstance(value, str)]) for each in inputs]
        )
    assert found[0] == found[1]
    texts = [text for _, values in found[0] for text in values]
    assert {"meta", "<Generator>", "<ComplexDouble>"} <= set(texts)


def test_only_ranges_between_start_and_stop_are_written(tmp_path, net):
    """upstream: test_execution_trace_start_stop, test_execution_trace_no_capture"""
    path = tmp_path / "graph.json"
    observer = ExecutionTraceObserver().register_callback(str(path))
    for number in range(4):
        (observer.stop if number % 2 else observer.start)()
        assert observer.is_running() == (number % 2 == 0)
        train(net)
    observer.unregister_callback()
    assert [node["name"] for node in nodes_of(path)].count("## LOOP ##") == 2
    ExecutionTraceObserver().register_callback(str(path)).unregister_callback()
    assert [node["id"] for node in nodes_of(path)] == [1]


def test_successive_execution_traces_are_independent(tmp_path, net):
    """upstream: test_execution_trace_repeat_in_loop"""
    for number in range(3):
        observer = ExecutionTraceObserver().register_callback(str(tmp_path / f"{number}.json"))
        observer.start()
        train(net)
        observer.unregister_callback()
        nodes = nodes_of(tmp_path / f"{number}.json")
        assert nodes[0]["id"] == 1 and [node["name"] for node in nodes].count("## LOOP ##") == 1
        train(net)
        assert not torch.autograd._profiler_enabled()  # the observer has been removed


def test_nested_tensors_are_harmless(tmp_path):
    """upstream: test_execution_trace_nested_tensor"""
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "graph.json"))
    nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])
    observer.start()
    nested.clone()
    observer.unregister_callback()
    assert "aten::clone" in {node["name"] for node in nodes_of(tmp_path / "graph.json")}


@pytest.mark.skipif(not dist.is_available() or not dist.is_gloo_available(), reason="PyTorch was built without gloo")
def test_process_groups_are_written_as_a_node(tmp_path):
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "graph.json"))
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        observer.start()
        torch.ones(1)
        observer.unregister_callback()
    finally:
        dist.destroy_process_group()
    (node,) = [node for node in nodes_of(tmp_path / "graph.json") if node["name"] == "## process_group:init ##"]
    (groups,) = json.loads(node["inputs"]["values"][0])
    assert groups["backend_config"] == "cpu:gloo" or "gloo" in json.dumps(groups)
    assert groups["ranks"] in ([0], []) or groups["pg_size"] == 1


def test_sources_generated_by_the_compiler_are_saved_next_to_the_trace(tmp_path):
    """upstream: test_execution_trace_with_pt2, test_triton_fx_graph_with_et (parts that need no GPU) (E7)"""
    from torch._inductor.codecache import PyCodeCache

    module = PyCodeCache.load("def kernel():\n    return 17\n")
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "graph.json"))
    observer.set_extra_resource_collection(True)
    values = {"kernel_backend": "triton", "kernel_file": module.__file__, "stream": 3}
    # PyTorch creates such ranges only while a profiler runs, and records values only with shapes.
    with profile(execution_trace_observer=observer, record_shapes=True):
        with torch._C._profiler._RecordFunctionFast("triton_poi_fused", [torch.ones(2)], values):
            module.kernel()
    (node,) = [node for node in nodes_of(tmp_path / "graph.json") if node["name"] == "triton_poi_fused"]
    assert attribute(node, "kernel_backend") == "triton"
    name = attribute(node, "kernel_file").rpartition("/")[2]
    assert "return 17" in (tmp_path / "graph_resources" / name).read_text()


def test_frames_of_generated_code_include_the_original_source_lines():
    """(S13)"""
    from torch._inductor.codecache import PyCodeCache

    source = "import marey\n\ndef call():\n    return marey.CapturedTraceback.extract()\n"
    key, path = PyCodeCache.write(source)
    lines = '  File "model.py", line 3, in forward\n    y = layer(x)\n  File "layer.py", line 9, in layer\n    x + 1\n'
    module = PyCodeCache.load_by_key_path(key, path, linemap=[(4, lines)])
    tb = module.call()
    frames = [(frame["name"], frame["filename"], frame["line"]) for frame in tb.symbolize()]
    assert frames[:3] == [("layer", "layer.py", 9), ("forward", "model.py", 3), ("call", path, 4)]
    assert [frame.name for frame in tb.summary()][-3:] == ["call", "forward", "layer"]
    assert "model.py" in "".join(marey.CapturedTraceback.format_all([tb])[0])


def test_tensors_without_memory_share_storages_like_others(tmp_path):
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "graph.json"))
    with profile(execution_trace_observer=observer):
        a, b = torch.ones(4, device="meta"), torch.ones(4, device="meta")
        a.view(2, 2), a.add(b)
    nodes = {node["name"]: node for node in nodes_of(tmp_path / "graph.json")}
    view, add = nodes["aten::view"], nodes["aten::add"]
    (_, storage, *_), (_, other, *_), _ = add["inputs"]["values"]
    assert storage != 0 and other not in (0, storage)
    assert view["inputs"]["values"][0][1] == view["outputs"]["values"][0][1] == storage


def test_elements_of_integral_tensors_are_written_on_request(tmp_path, monkeypatch):
    """upstream: test_execution_trace_record_integral_tensor_range, _data"""
    name = "ENABLE_PYTORCH_EXECUTION_TRACE_SAVE_INTEGRAL_TENSOR_"
    monkeypatch.setenv(name + "RANGE", "1")
    monkeypatch.setenv(name + "DATA", "aten::other,aten::gather")
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "graph.json"))
    observer.set_extra_resource_collection(True)
    values, index = torch.tensor([[1.5, 2], [3, 4]]), torch.tensor([[0, 0], [1, 0]])
    observer.start()
    torch.gather(values, 1, index)
    torch.neg(index)
    observer.unregister_callback()
    nodes = {node["name"]: node for node in nodes_of(tmp_path / "graph.json")}
    assert attribute(nodes["aten::gather"], "tensor_range") == '{"1":[0,1]}'
    assert attribute(nodes["aten::neg"], "tensor_range") == '{"0":[0,1]}'
    (saved,) = (tmp_path / "graph_resources").glob("*.dat")
    assert saved.name == f"nid_{nodes['aten::gather']['id']}_tid_1.dat"
    assert saved.read_bytes() == index.numpy().tobytes()


def test_a_folder_that_vanishes_costs_only_the_elements(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE_SAVE_INTEGRAL_TENSOR_DATA", "aten::add")
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "graph.json"))
    observer.set_extra_resource_collection(True)
    (tmp_path / "graph_resources").rmdir()
    observer.start()
    torch.add(torch.tensor([1]), 1)
    observer.unregister_callback()
    assert "aten::add" in {node["name"] for node in nodes_of(tmp_path / "graph.json")}
    assert "graph_resources" in capfd.readouterr().err
