"""torch modules and optimizers are recognized without registration."""

import gc
import pathlib
import subprocess
import sys
import textwrap

import pytest
from tree_walk import depth_first

import marey

torch = pytest.importorskip("torch")

MODES = pytest.mark.parametrize("c_calls", [False, True], ids=["python", "with_c"])


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 3)
        self.rest = torch.nn.ModuleList([torch.nn.ReLU(), torch.nn.Linear(3, 2)])

    def forward(self, value):
        with marey.record_function("op"):
            value = self.first(value)
        for layer in self.rest:
            value = layer(value)
        return value


def nodes_named(prof, start):
    return [node for node in depth_first(prof.tree()) if node.name.startswith(start)]


def modules(prof):
    return [node.name for node in nodes_named(prof, "nn.Module: ")]


@MODES
def test_modules_are_named_by_class_and_number(c_calls):
    """upstream: test_profiler_experimental_tree_with_stack_and_modules (P15, P19)"""
    for _ in range(3):
        net = Net()
        with marey.profile(with_stack=True, c_calls=c_calls) as prof:
            net(torch.zeros(1, 4))
        assert modules(prof) == [
            "nn.Module: Net_0",
            "nn.Module: Linear_0",
            "nn.Module: ReLU_0",
            "nn.Module: Linear_1",
        ]


def test_parameters_have_names_metadata_and_gradients():
    """upstream: test_nnmodule_params"""
    net = Net()
    net(torch.ones(1, 4)).sum().backward()
    with marey.profile(with_stack=True) as prof:
        net(torch.zeros(1, 4))
    info = nodes_named(prof, "nn.Module: Linear_0")[0].extra_fields.module
    assert (info.self_ptr, info.cls_name) == (id(net.first), "Linear")
    (name, weight, grad), (other, bias, _) = info.parameters
    assert (name, other) == ("weight", "bias")
    assert (weight.sizes, weight.strides, weight.dtype, bias.sizes) == ([3, 4], [4, 1], "float32", [3])
    assert weight.storage_data_ptr == net.first.weight.data_ptr()
    assert grad.storage_data_ptr == net.first.weight.grad.data_ptr()
    assert nodes_named(prof, "nn.Module: ReLU_0")[0].extra_fields.module.parameters == []


@pytest.mark.parametrize(
    ("make", "states"),
    [
        (lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9), {"momentum_buffer"}),
        (lambda parameters: torch.optim.Adam(parameters), {"step", "exp_avg", "exp_avg_sq"}),
    ],
    ids=["sgd", "adam"],
)
def test_optimizers_have_parameters_gradients_and_state(make, states):
    """upstream: test_optimizer, test_optimizer_parameters_sgd, test_optimizer_parameters_adam (P17)"""
    net = Net()
    optimizer = make(net.parameters())
    net(torch.ones(1, 4)).sum().backward()
    with marey.profile(with_stack=True) as prof:
        optimizer.step()
    (node,) = nodes_named(prof, "Optimizer: ")
    assert node.name == f"Optimizer: {type(optimizer).__name__}_0"
    info = node.extra_fields.optimizer
    assert info.self_ptr == id(optimizer) and len(info.parameters) == 4
    for parameter, (array, grad, state) in zip(net.parameters(), info.parameters):
        assert array.storage_data_ptr == parameter.data_ptr() and grad.storage_data_ptr == parameter.grad.data_ptr()
        assert {name for name, _ in state} == states
        for name, kept in state:
            assert kept.storage_data_ptr == optimizer.state[parameter][name].data_ptr()


def test_ids_agree_between_modules_and_optimizers():
    """upstream: test_module_and_optimizer_ids"""
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with marey.profile(with_stack=True) as prof:
        net(torch.ones(1, 4)).sum().backward()
        optimizer.step()
    of_modules = {
        array.storage_data_ptr
        for node in nodes_named(prof, "nn.Module: ")
        for _, array, _ in node.extra_fields.module.parameters
    }
    info = nodes_named(prof, "Optimizer: SGD_0")[0].extra_fields.optimizer
    assert {array.storage_data_ptr for array, _, _ in info.parameters} == of_modules


def test_ranges_have_the_modules_that_they_ran_in():
    """upstream: test_module_hierarchy (P37)"""
    net = Net()
    with marey.profile(with_stack=True, with_modules=True) as prof:
        net(torch.zeros(1, 4))
    hierarchy = {event.name: event.module_hierarchy for event in prof.events()}
    assert hierarchy["op"] == "TOP(Net)::forward"
    assert hierarchy["nn.Module: Linear_0"] == "TOP(Net)::forward.first(Linear)::forward"
    assert hierarchy["nn.Module: Linear_1"] == "TOP(Net)::forward.rest.1(Linear)::forward"


def test_tensors_of_other_classes_are_left_alone():
    """(P16)"""

    class Odd(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            raise SystemExit

    net = torch.nn.Identity()
    net._parameters["odd"] = torch.zeros(2).as_subclass(Odd)
    net._parameters["none"] = None
    net._parameters["plain"] = torch.zeros(3)
    with marey.profile(with_stack=True) as prof:
        net(1)
    (node,) = nodes_named(prof, "nn.Module: Identity_0")
    assert [(name, array.sizes) for name, array, _ in node.extra_fields.module.parameters] == [("plain", [3])]


def test_tracing_keeps_no_module_alive():
    """upstream: test_refcounts"""
    with marey.profile(with_stack=True) as prof:
        for _ in range(10):
            torch.nn.Identity()(1)
            gc.collect()
    assert modules(prof) == [f"nn.Module: Identity_{i}" for i in range(10)]


@MODES
def test_torch_imported_during_a_session_is_recognized(c_calls):
    program = f"""
        import sys
        import marey
        from tree_walk import depth_first

        assert "torch" not in sys.modules
        with marey.profile(with_stack=True, c_calls={c_calls}) as prof:
            assert "torch" not in sys.modules
            import torch
            torch.nn.Linear(2, 2)(torch.zeros(1, 2))
        print([n.name for n in depth_first(prof.tree()) if n.name.startswith("nn.Module: ")])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=pathlib.Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stdout == "['nn.Module: Linear_0']\n", done.stderr
