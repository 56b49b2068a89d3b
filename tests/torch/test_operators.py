"""Recording of PyTorch's operators."""

import json
import threading

import pytest
import torch

import marey
import marey.torch
from marey.torch import profile, record_function


def named(prof, name):
    return [event for event in prof.events() if event.name == name]


def chrome(prof, folder):
    path = folder / "trace.json"
    prof.export_chrome_trace(str(path))
    return json.loads(path.read_text())["traceEvents"]


def test_operators_nest_as_they_ran():
    with profile() as prof:
        torch.ones(2, 3)
    (ones,) = named(prof, "aten::ones")
    assert [child.name for child in ones.cpu_children] == ["aten::empty", "aten::fill_"]


def test_nothing_is_registered_before_and_after_a_recording():
    before = torch._C._autograd._profiler_enabled()
    with profile():
        assert torch._C._autograd._profiler_enabled()
    assert (before, torch._C._autograd._profiler_enabled()) == (False, False)
    with marey.profile() as prof:  # once marey.torch is loaded, every session records operators
        torch.ones(1)
    assert named(prof, "aten::ones")


def test_inputs_have_shapes_strides_types_and_values(tmp_path):
    """upstream: test_profiler_op_event_args, test_profiler_strides, test_concrete_inputs_profiling (R48)"""
    matrix = torch.randn(3, 4).t()
    with profile(record_shapes=True) as prof:
        torch.cat([matrix, matrix], dim=1)
        torch.sum(matrix, dim=[0], keepdim=True)
        matrix.to(torch.float64)
    (cat,) = named(prof, "aten::cat")
    assert cat.input_shapes == [[], []]  # lists have no shape, as in PyTorch
    assert cat.concrete_inputs[1] == 1
    (total,) = named(prof, "aten::sum")
    assert total.input_shapes[0] == [4, 3]
    assert total.concrete_inputs[1:3] == [[0], True]
    rows = {row["name"]: row["args"] for row in chrome(prof, tmp_path) if row.get("cat") == "cpu_op"}
    assert rows["aten::cat"]["Input type"] == ["TensorList", "Scalar"]
    assert rows["aten::cat"]["Input Dims"] == [[[4, 3], [4, 3]], []]
    assert rows["aten::sum"]["Input type"][0] == "float"
    assert rows["aten::sum"]["Input Strides"][0] == [1, 4]
    assert rows["aten::copy_"]["Input type"][:2] == ["double", "float"]


def test_without_shapes_there_are_no_inputs():
    with profile() as prof:
        torch.ones(2) + 1
    assert all(event.input_shapes == [] for event in prof.events())


def test_undefined_and_nested_tensors_are_harmless():
    """upstream: test_nested_tensor_with_shapes (C15)"""
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    with profile(record_shapes=True, with_flops=True) as prof:
        torch.nn.functional.linear(torch.ones(1, 2), torch.ones(3, 2), None)
        nested.clone()
    (linear,) = named(prof, "aten::linear")
    assert linear.input_shapes == [[1, 2], [3, 2], []]
    assert named(prof, "aten::clone")[0].input_shapes[0] == []


def test_lists_longer_than_thirty_are_cut_and_other_inputs_are_kept():
    tensors = [torch.ones(1) for _ in range(40)]
    with profile(record_shapes=True) as prof:
        torch.cat(tensors, 0)
    (cat,) = named(prof, "aten::cat")
    assert len(cat.input_shapes) == 2 and cat.concrete_inputs[1] == 0


def test_forward_and_backward_share_sequence_numbers_and_threads(tmp_path):
    """upstream: test_profiler_seq_nr, test_profiler_fwd_bwd_link (R58)"""
    x = torch.randn(4, 4, requires_grad=True)
    with profile() as prof:
        loss = torch.sigmoid(x).sum()
        loss.backward()
    (forward,) = named(prof, "aten::sigmoid")
    (backward,) = named(prof, "SigmoidBackward0")
    (evaluation,) = named(prof, "autograd::engine::evaluate_function: SigmoidBackward0")
    assert forward.sequence_nr >= 0
    assert backward.sequence_nr == evaluation.sequence_nr == forward.sequence_nr
    assert backward.fwd_thread == evaluation.fwd_thread == forward.thread
    assert backward.scope == marey.RecordScope.BACKWARD_FUNCTION
    (inner,) = named(prof, "aten::sigmoid_backward")
    assert inner.sequence_nr == -1
    flows = [row for row in chrome(prof, tmp_path) if row.get("cat") == "fwdbwd"]
    assert len(flows) == 4 and {row["ph"] for row in flows} == {"s", "f"}


def test_backward_nodes_on_another_thread_name_the_forward_thread():
    x = torch.randn(3, requires_grad=True)
    losses = []
    thread = threading.Thread(target=lambda: losses.append(torch.sigmoid(x).sum()))
    with profile() as prof:
        thread.start()
        thread.join()
        losses[0].backward()
    (forward,) = named(prof, "aten::sigmoid")
    (backward,) = named(prof, "SigmoidBackward0")
    assert forward.thread != backward.thread
    assert (backward.fwd_thread, backward.sequence_nr) == (forward.thread, forward.sequence_nr)


def test_overloads_are_distinguished_on_request(tmp_path):
    """upstream: test_profiler_overload_names (R44 R69)"""

    def work():
        torch.add(torch.ones(2), torch.ones(2))
        torch.ones(2) + 1
        torch.add(1, torch.ones(2))

    with profile() as plain:
        work()
    assert all(not event.overload_name for event in plain.events())
    with profile(experimental_config=marey.torch._ExperimentalConfig(capture_overload_names=True)) as prof:
        work()
        torch.ones(1).fill_(torch.ones(()))
    assert {event.overload_name for event in named(prof, "aten::fill_")} == {"Scalar", "Tensor"}
    rows = prof.key_averages(group_by_overload_name=True)
    assert len([row for row in rows if row.key == "aten::fill_"]) == 2
    assert len([row for row in prof.key_averages() if row.key == "aten::fill_"]) == 1
    assert "Overload Name" in rows.table()


def test_pytorch_ranges_are_recorded_as_user_ranges():
    """(R60)"""
    with profile(record_shapes=True) as prof:
        with torch.profiler.record_function("upstream", "some text"):
            torch.ones(1)
        with record_function("marey"):
            torch.ones(1)
        with torch._C._profiler._RecordFunctionFast("fast", [torch.ones(2), 3]):
            torch.ones(1)
    for name in ("upstream", "marey", "fast"):
        (event,) = named(prof, name)
        assert "aten::ones" in [child.name for child in event.cpu_children]
        assert event.is_user_annotation == (name != "fast")
    assert not [event for event in prof.events() if "_record_function_" in event.name]
    (fast,) = named(prof, "fast")
    assert fast.input_shapes == [[2], []]


def test_keyword_values_of_fast_ranges_are_kept(tmp_path):
    """upstream: test_profiler_op_event_kwargs, test_record_function_fast"""
    values = {"stream": 3, "grid": "lambda", "boolean": True, "scale": 0.5}
    with profile(record_shapes=True) as prof:
        with torch._C._profiler._RecordFunctionFast("with", [torch.ones(2)], values):
            pass
        with torch._C._profiler._RecordFunctionFast("user", [], {"scope": "user_scope"}):
            pass
    rows = {row["name"]: row for row in chrome(prof, tmp_path) if row.get("ph") == "X"}
    assert {key: rows["with"]["args"][key] for key in values} == values
    assert (rows["with"]["cat"], rows["user"]["cat"]) == ("cpu_op", "user_annotation")


def test_collectives_are_described_by_their_values(run_python):
    """upstream: the metadata of record_param_comms (R56)"""
    out = run_python(
        "import json, torch, torch.distributed as dist\n"
        "from marey.torch import profile\n"
        "dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)\n"
        "with profile() as prof:\n"
        "    dist.all_reduce(torch.ones(6))\n"
        "prof.export_chrome_trace('trace.json')\n"
        "rows = [r for r in json.load(open('trace.json'))['traceEvents'] if r.get('name') == 'record_param_comms']\n"
        "print(json.dumps([row['args'] for row in rows]))\n"
        "dist.destroy_process_group()\n"
    )
    rows = json.loads(out.splitlines()[-1])
    if not rows:
        pytest.skip("the gloo backend of this PyTorch does not annotate collectives; NCCL does")
    for row in rows:
        assert row["Group size"] == 1 and row["Rank"] == 0 and "Collective name" in row


def test_a_pytorch_range_encloses_its_operators_with_stacks_too():
    with profile(with_stack=True) as prof:
        with torch.profiler.record_function("around"):
            torch.ones(1)
            torch.zeros(1)
        torch.ones(1)
    (around,) = named(prof, "around")
    assert not around.is_async
    inside = [event for event in named(prof, "aten::ones") if around.time_range.start < event.time_range.start]
    assert len(inside) == 2

    def above(event):
        while event is not None:
            yield event.name
            event = event.cpu_parent

    assert ["around" in above(event) for event in inside] == [True, False]


def test_a_range_that_ends_on_another_thread_is_async():
    """upstream: test_record_function_multithreaded"""
    with profile() as prof:
        handle = torch.ops.profiler._record_function_enter_new("moved")
        thread = threading.Thread(target=lambda: torch.ops.profiler._record_function_exit._RecordFunction(handle))
        thread.start()
        thread.join()
        torch.ones(1)
    (moved,) = named(prof, "moved")
    assert moved.is_async
    assert named(prof, "aten::ones")[0].cpu_parent is None


def test_every_thread_is_recorded():
    """upstream: test_profile_all_threads"""

    def work():
        torch.ones(3).add_(1)

    threads = [threading.Thread(target=work) for _ in range(3)]
    with profile() as prof:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len({event.thread for event in named(prof, "aten::add_")}) == 3


def test_nested_profilers_have_independent_options():
    with profile() as outer:
        torch.ones(1)
        with profile(record_shapes=True, profile_memory=True) as inner:
            torch.zeros(2)
        torch.full((3,), 1.0)
    names = {event.name for event in outer.events()}
    assert {"aten::ones", "aten::zeros", "aten::full"} <= names
    assert {event.name for event in inner.events()} & {"aten::ones", "aten::full"} == set()
    assert named(inner, "aten::zeros")[0].concrete_inputs[0] == [2]
    assert named(outer, "aten::zeros")[0].concrete_inputs == []


def test_a_profiler_started_inside_a_range_does_not_record_that_range():
    with torch.profiler.record_function("outside"):
        prof = profile()
        prof.start()
        torch.ones(1)
    prof.stop()
    assert named(prof, "aten::ones") and not named(prof, "outside")


def test_names_of_removed_operators_are_not_given_to_later_ones():
    """An operator's schema may reuse the address of a removed one. (R43)"""
    for number in range(20):
        library = torch.library.Library("marey_test", "DEF")
        library.define(f"op{number}(Tensor x) -> Tensor")
        library.impl(f"op{number}", lambda x: x + 1, "CPU")
        with profile() as prof:
            getattr(torch.ops.marey_test, f"op{number}")(torch.ones(1))
        assert [event.name for event in prof.events() if event.name.startswith("marey_test")] == [
            f"marey_test::op{number}"
        ]
        library._destroy()


def test_an_operator_that_raises_ends_its_range():
    with profile() as prof:
        with pytest.raises(RuntimeError):
            torch.ones(2, 3) @ torch.ones(2, 3)
        torch.zeros(1)
    (product,) = named(prof, "aten::matmul")
    (zeros,) = named(prof, "aten::zeros")
    assert zeros.cpu_parent is None and product.time_range.end <= zeros.time_range.start


def test_operators_are_nested_in_modules_and_calls():
    """upstream: test_source, test_profiler_experimental_tree_with_stack_and_modules (S5)"""
    net = torch.nn.Sequential(torch.nn.Linear(2, 2))
    with profile(with_stack=True) as prof:
        net(torch.ones(1, 2)).sum().backward()

    def path(node):
        while node is not None:
            yield node.name
            node = node.parent

    nodes = list(prof.tree())
    while nodes:
        node = nodes.pop()
        nodes.extend(node.children)
        if node.name == "aten::addmm":
            found = list(path(node))
    assert "nn.Module: Linear_0" in found and "nn.Module: Sequential_0" in found
    stacks = [event.stack for event in named(prof, "AddmmBackward0")]
    assert any("test_operators_are_nested_in_modules_and_calls" in frame for frame in stacks[0])


def test_a_forked_child_records_its_own_work(run_python):
    """upstream: test_forked_process"""
    out = run_python(
        "import os, torch\n"
        "from marey.torch import profile\n"
        "with profile() as prof:\n"
        "    torch.ones(1)\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        torch.zeros(1)\n"
        "        with profile() as own:\n"
        "            torch.full((1,), 2.0)\n"
        "        names = {event.name for event in own.events()}\n"
        "        os._exit(0 if 'aten::full' in names and 'aten::zeros' not in names else 1)\n"
        "    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "print('aten::ones' in {event.name for event in prof.events()})\n"
    )
    assert out.split() == ["0", "True"]


def test_data_loader_workers_are_harmless_and_followed_as_tasks(run_python):
    out = run_python(
        "import torch\n"
        "from marey.torch import profile\n"
        "class Numbers(torch.utils.data.Dataset):\n"
        "    def __len__(self): return 8\n"
        "    def __getitem__(self, i): return torch.full((2,), float(i))\n"
        "def work(threads, start):\n"
        "    loader = torch.utils.data.DataLoader(Numbers(), 2, num_workers=2, multiprocessing_context=start)\n"
        "    with profile(threads=threads, record_shapes=True, profile_memory=True) as prof:\n"
        "        assert sum(batch.sum().item() for batch in loader) == 56\n"
        "    names = [event.name for event in prof.events()]\n"
        "    assert 'enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__' in names, names\n"
        "    print(threads, start, names.count('aten::full'), len(prof.trace.info()['processes']))\n"
        "if __name__ == '__main__':\n"
        "    work('all', 'fork'), work('tasks', 'fork'), work('tasks', 'spawn')\n"
    )
    assert out.splitlines() == ["all fork 0 1", "tasks fork 8 3", "tasks spawn 8 3"]


def test_flops_match_the_formulas():
    """upstream: test_flops"""
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(4 * 36, 2))
    with profile(record_shapes=True, with_flops=True) as prof:
        net(torch.randn(2, 3, 8, 8))
    assert named(prof, "aten::conv2d")[0].flops == 2 * 2 * 6 * 6 * 3 * 3 * 3 * 4
    assert named(prof, "aten::addmm")[0].flops == 2 * 2 * 144 * 2
    assert "FLOPs" in prof.key_averages().table()


def test_pytorch_record_function_ranges_enclose_their_work_and_are_not_async():
    """Such ranges start in one Python method and end in another, as every Optimizer.step does."""
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(1, 2)).sum().backward()

    def step():
        with torch.autograd.profiler.record_function("upstream"):
            optimizer.step()

    with marey.torch.profile(with_stack=True) as prof:
        step()
    events = prof.events()
    assert not [event.name for event in events if event.is_async]
    (upstream,) = [event for event in events if event.name == "upstream"]
    assert upstream.cpu_parent.name.endswith("step")
    (update,) = [event for event in events if event.name == "Optimizer.step#SGD.step"]
    around = []
    while update.cpu_parent is not None:
        update = update.cpu_parent
        around.append(update.name)
    assert "upstream" in around
    own = [event for event in events if "torch/autograd/profiler.py" in event.name]
    methods = [event for event in own if event.name.endswith((": __enter__", ": __exit__"))]
    assert len(methods) == 4
    assert all(method.cpu_parent is not None for method in methods)
