"""Counterparts of PyTorch's profiler tree tests, run with marey.torch. Each program is recorded three times."""

import pytest
import torch
from torch._C._profiler import RecordScope, _EventType
from torch.profiler._utils import traverse_dfs

import marey.torch
from marey.torch import profile, record_function


def outline(roots, depth=0, keep=lambda node: True):
    """One line for each node; children of omitted nodes take their place."""
    for node in roots:
        if keep(node):
            yield "  " * depth + node.name
        yield from outline(node.children, depth + keep(node), keep)


def recorded(program, **options):
    """The tree of the last of three recordings, which must agree, and the profiler."""
    keep = options.pop("keep", lambda node: True)
    program()  # one-time initialisation
    trees = []
    for _ in range(3):
        with profile(**options) as prof:
            program()
        trees.append(list(outline(prof.tree(), keep=keep)))
    assert trees[0] == trees[1] == trees[2]
    return trees[2], prof


def callers_are_parents(prof):
    for node in traverse_dfs(prof.tree()):
        if node.tag not in (_EventType.PyCall, _EventType.PyCCall):
            continue
        around = node.parent
        while around is not None and around.tag != _EventType.PyCall:
            around = around.parent
        caller = node.extra_fields.caller
        assert (caller is None) == (around is None)
        if around is not None:
            assert caller.function_name == around.extra_fields.callsite.function_name
    return True


def test_forward_and_backward_operators_are_nested_as_they_ran():
    """upstream: test_profiler_experimental_tree"""
    x, y = torch.ones(1), torch.ones(1, requires_grad=True)

    def program():
        loss = (torch.add(x, y) ** 2).sum()
        y.grad = None
        loss.backward()

    lines, _ = recorded(program)
    assert lines[:2] == ["aten::add", "aten::pow"]
    assert "autograd::engine::evaluate_function: PowBackward0" in lines
    place = lines.index("  PowBackward0")
    assert lines[place + 1] == "    aten::pow" and lines[place - 1].endswith("evaluate_function: PowBackward0")
    assert "  torch::autograd::AccumulateGrad" in lines


def test_annotations_nest_with_operators_and_an_unclosed_one_ends_with_its_parent():
    """upstream: test_profiler_experimental_tree_with_record_function"""

    def program():
        with record_function("Top level"):
            with record_function("First"):
                torch.zeros(1)
            record_function("Left open").__enter__()
            with record_function("Third"):
                torch.ones(1)

    lines, _ = recorded(program)
    assert lines[:3] == ["Top level", "  First", "    aten::zeros"]
    assert "  Left open" in lines and [line.strip() for line in lines].count("Third") == 1


def test_allocations_are_under_the_operators_that_made_them():
    """upstream: test_profiler_experimental_tree_with_memory"""

    def program():
        kept = torch.ones(10) + torch.ones(10)
        del kept

    lines, prof = recorded(program, profile_memory=True)
    ones = lines.index("aten::ones")
    assert lines[ones + 1 : ones + 3] == ["  aten::empty", "    [memory]"]
    assert lines[-1] == "[memory]"  # freed outside any operator
    sizes = [node.extra_fields.alloc_size for node in traverse_dfs(prof.tree()) if node.tag == _EventType.Allocation]
    assert sum(sizes) == 0 and 40 in sizes


def test_frames_operators_and_memory_form_one_tree():
    """upstream: test_profiler_experimental_tree_with_memory_and_stack"""

    def program():
        torch.ones(10)

    _, prof = recorded(program, profile_memory=True, with_stack=True)
    (memory, *_) = [node for node in traverse_dfs(prof.tree()) if node.tag == _EventType.Allocation]
    path = []
    while memory is not None:
        path.append(memory.name.rpartition(": ")[2])
        memory = memory.parent
    assert path[:3] == ["[memory]", "aten::empty", "aten::ones"] and any(name.endswith("program") for name in path)
    assert callers_are_parents(prof)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(1, 1), torch.nn.ReLU(), torch.nn.Linear(1, 1)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def test_modules_are_numbered_and_nested_with_frames_and_operators():
    """upstream: test_profiler_experimental_tree_with_stack_and_modules, test_source"""
    net = Net()

    def program():
        net(torch.ones(1, 1)).sum().backward()

    def keep(node):
        return node.name.startswith(("nn.Module", "aten::addmm", "aten::relu", "AddmmBackward0"))

    lines, prof = recorded(program, with_stack=True, keep=keep)
    assert [line for line in lines if "Backward" not in line] == [
        "nn.Module: Net_0",
        "  nn.Module: Linear_0",
        "    aten::addmm",
        "  nn.Module: ReLU_0",
        "    aten::relu",
        "  nn.Module: Linear_1",
        "    aten::addmm",
    ]
    assert callers_are_parents(prof)
    for event in prof.events():
        if event.name in ("aten::addmm", "AddmmBackward0"):  # backward operators have the stack of the forward ones
            assert any("forward" in frame for frame in event.stack)


def test_overridden_functions_are_frames_too():
    """upstream: test_profiler_experimental_tree_with_stack_and_torch_function, _torch_dispatch"""

    class Mine(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    mine = torch.ones(1).as_subclass(Mine)
    with profile(with_stack=True) as prof:
        mine + 1
        with Mode():
            torch.ones(1) + 1
    names = [node.name for node in traverse_dfs(prof.tree())]
    assert any("test_upstream_tree" in name and name.endswith(": __torch_function__") for name in names)
    assert any(name.endswith(": __torch_dispatch__") for name in names)
    assert "PythonDispatchMode" in names or "aten::add" in names


def test_input_values_are_in_the_tree():
    """upstream: test_scalar_ins, test_tensor_lists, test_tensor_properties, test_extra_fields"""
    x = torch.ones(10, 10).as_strided([4, 4], [12, 3])
    with profile(record_shapes=True) as prof:
        x.add(0.5, alpha=2)
        torch.cat([x, x])
        torch.sum(x, dim=[0])
    nodes = {node.name: node.extra_fields for node in traverse_dfs(prof.tree())}
    tensor, scalar, alpha = nodes["aten::add"].inputs
    assert (tensor.sizes, tensor.strides, tensor.dim, tensor.dtype) == ([4, 4], [12, 3], 2, torch.float32)
    assert tensor.storage_data_ptr == x.untyped_storage().data_ptr()
    assert (scalar.sizes, scalar.dtype, alpha) == ([], torch.float64, 2)  # PyTorch converts it to a tensor
    assert [item.sizes for item in nodes["aten::cat"].inputs[0]] == [[4, 4], [4, 4]]
    total = nodes["aten::sum"]
    assert total.inputs[1] is None and total.scope == RecordScope.FUNCTION  # lists of numbers are left out


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam])
def test_modules_and_optimizers_have_their_parameters(kind):
    """upstream: test_nnmodule_params, test_optimizer_parameters_sgd, test_optimizer_parameters_adam"""
    net = torch.nn.Linear(2, 3)
    optimizer = kind(net.parameters(), **({"lr": 0.1, "momentum": 0.9} if kind is torch.optim.SGD else {}))

    def step():
        net(torch.ones(1, 2)).sum().backward()
        optimizer.step()

    step()
    with profile(with_stack=True, record_shapes=True) as prof:
        step()
    calls = [node.extra_fields for node in traverse_dfs(prof.tree()) if node.tag == _EventType.PyCall]
    (module,) = [call.module for call in calls if call.module is not None]
    (used,) = [call.optimizer for call in calls if call.optimizer is not None]
    assert (module.cls_name, [name for name, _, _ in module.parameters]) == ("Linear", ["weight", "bias"])
    assert module.parameters[0][1].storage_data_ptr == net.weight.untyped_storage().data_ptr()
    assert module.parameters[0][2].storage_data_ptr == net.weight.grad.untyped_storage().data_ptr()
    (weight, grad, states), _ = used.parameters
    assert weight.storage_data_ptr == net.weight.untyped_storage().data_ptr()
    assert grad.storage_data_ptr == net.weight.grad.untyped_storage().data_ptr()
    own = {name: value for name, value in optimizer.state[net.weight].items() if isinstance(value, torch.Tensor)}
    assert {name: value.storage_data_ptr for name, value in states} == {
        name: value.untyped_storage().data_ptr() for name, value in own.items()
    }


def test_parameters_are_read_without_running_code_of_their_class(monkeypatch):
    """Tensor.__dlpack_device__ asks CUDA whether memory is pinned: those calls would be part of the trace."""
    asked = []
    monkeypatch.setattr(torch.Tensor, "__dlpack_device__", lambda tensor: asked.append(tensor) or (1, 0))
    net = torch.nn.Linear(2, 3)
    with profile(with_stack=True) as prof:
        net(torch.ones(1, 2))
    calls = [node.extra_fields for node in traverse_dfs(prof.tree()) if node.tag == _EventType.PyCall]
    (module,) = [call.module for call in calls if call.module is not None]
    assert [(name, value.sizes) for name, value, _ in module.parameters] == [("weight", [3, 2]), ("bias", [3])]
    assert not asked


def test_tracing_keeps_nothing_alive():
    """upstream: test_refcounts"""
    import gc
    import weakref

    class Thing:
        pass

    thing = Thing()
    alive = weakref.ref(thing)

    def program(thing):
        return torch.ones(1), thing

    with marey.torch.profile(with_stack=True, record_shapes=True, profile_memory=True):
        program(thing)
        kept = weakref.ref(torch.ones(3))
    del thing
    gc.collect()
    assert alive() is None and kept() is None
