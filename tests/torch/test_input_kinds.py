"""test_input_kinds.py: operator inputs on both recording paths: written directly, and through values."""

import json

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.sym_node import SymNode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.profiler import profile as torch_profile
from torch.utils._python_dispatch import return_and_correct_aliasing

import marey
from marey.torch import profile


class Sized(torch.Tensor):
    """A tensor whose sizes are computed by Python code that runs operators."""

    asked = 0

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, dispatch_sizes_strides_policy="sizes"
        )

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func in (torch.ops.aten.size.default, torch.ops.aten.sym_size.default):
            Sized.asked += 1
            torch.ones(3).neg_()
            return args[0].inner.shape
        inner = torch.utils._pytree.tree_map_only(cls, lambda each: each.inner, (args, kwargs or {}))
        out = func(*inner[0], **inner[1])
        wrapped = cls(out) if isinstance(out, torch.Tensor) else out
        return return_and_correct_aliasing(func, args, kwargs or {}, wrapped)


def strided():
    a = torch.ones(4, 6)
    return a.t().add(a.t()[:, :1], alpha=2)


def lists():
    a = torch.ones(2, 3)
    return torch.cat([a, a.view(3, 2).t()], 1).sum([0, 1], keepdim=True).reshape([1])


def scalars():
    a = torch.ones(3, dtype=torch.float64)
    return torch.clamp(a, 0.5, None).to(torch.float16).mul_(2).add_(1.5).to(torch.bool)


def indices():
    a = torch.arange(12).view(3, 4)
    return a[:, torch.tensor([0, 2])], torch.nn.functional.pad(a, [1, 1], "constant", 0)


def zero_dimensions():
    return torch.tensor(3.0) * torch.ones(()) + torch.empty(0, 5).sum()


def deep():
    return torch.ones([1] * 20).expand([1] * 19 + [7]).contiguous()


def meta():
    return torch.ones(2**33, device="meta").view(2**16, -1) + 1


def sparse():
    a = torch.eye(3).to_sparse()
    return torch.sparse.mm(a, torch.ones(3, 2))


def inputs_of(prof):
    events = [e for e in prof.events() if e.name.startswith("aten::")]
    assert events
    return [(e.name, e.input_shapes, e.concrete_inputs) for e in events]


@pytest.mark.parametrize("options", ({}, {"profile_memory": True}), ids=("straight", "identified"))
def test_an_empty_list_of_tensors_is_a_list_of_tensors(tmp_path, options):
    """K18"""
    found = []
    for kind in (profile, torch_profile):
        with kind(record_shapes=True, **options) as prof:
            torch.block_diag()
        path = tmp_path / "trace.json"
        prof.export_chrome_trace(str(path))
        rows = [row for row in json.loads(path.read_text())["traceEvents"] if row["name"] == "aten::block_diag"]
        found.append(
            [{key: row["args"][key] for key in ("Input Dims", "Input type", "Concrete Inputs")} for row in rows]
        )
    assert found[0] == found[1]
    assert found[0][0]["Input type"][0] == "TensorList"


@pytest.mark.parametrize(
    "work", (strided, lists, scalars, indices, zero_dimensions, deep, meta, sparse), ids=lambda each: each.__name__
)
def test_inputs_are_the_same_on_both_recording_paths(work):
    work()
    with profile(record_shapes=True) as straight:
        work()
    with profile(record_shapes=True, profile_memory=True) as identified:  # inputs are recorded through values
        work()
    with torch_profile(record_shapes=True) as upstream:
        work()
    found = inputs_of(straight)
    assert found == inputs_of(identified)
    assert [each[:2] for each in found] == [each[:2] for each in inputs_of(upstream)]


def test_operators_run_by_a_size_query_are_recorded():
    value = Sized(torch.ones(5))
    with profile(record_shapes=True) as prof:
        before = Sized.asked
        torch.stack([value, value])
        asked = Sized.asked - before
    assert asked > 0
    assert sum(e.name == "aten::neg_" for e in prof.events()) == asked


def types_and_texts(prof, path, names):
    """(name, input types, input texts) of the operators with these names, from the Chrome trace."""
    prof.export_chrome_trace(str(path))
    rows = [row for row in json.loads(path.read_text())["traceEvents"] if row.get("name") in names]
    assert rows
    return [(row["name"], row["args"]["Input type"], row["args"]["Concrete Inputs"]) for row in rows]


def both(work, path, names):
    """The recorded inputs of Marey's profiler and of PyTorch's."""
    found = []
    for kind in (profile, torch_profile):
        with kind(record_shapes=True) as prof:
            work()
        found.append(types_and_texts(prof, path, names))
    return found


def complex_scalars():
    z = torch.zeros(3, dtype=torch.complex64)
    z.fill_(1 + 2j)
    torch.add(z, z, alpha=1 + 2j)
    for value in (1j, -0.5 - 1e-30j, complex("nan+infj"), complex(-0.0, 0.1), 1e20 + 123456789.125j):
        torch.full((2,), value)


def test_complex_scalars_are_scalars(tmp_path):
    actual, upstream = both(complex_scalars, tmp_path / "trace.json", ("aten::fill_", "aten::add", "aten::full"))
    assert actual == upstream
    assert actual[0][1:] == (["c10::complex<float>", "Scalar"], ["", "1.+2.j"])


def test_complex_scalars_are_python_numbers():
    with profile(record_shapes=True) as prof:
        torch.full((2,), 1 + 2j)
    (full,) = [event for event in prof.events() if event.name == "aten::full"]
    assert full.concrete_inputs[1] == 1 + 2j


def test_complex_scalars_stay_scalars_in_captures(tmp_path):
    output = tmp_path / "a.marey"
    with profile(record_shapes=True, output=str(output)) as prof:
        torch.full((2,), 1 + 2j)
    expected = types_and_texts(prof, tmp_path / "a.json", ("aten::full",))
    assert expected[0][1][1] == "Scalar"
    marey.load(str(output)).export_chrome_trace(str(tmp_path / "b.json"))
    rows = json.loads((tmp_path / "b.json").read_text())["traceEvents"]
    (full,) = [row["args"] for row in rows if row.get("name") == "aten::full"]
    assert (full["Input type"], full["Concrete Inputs"]) == expected[0][1:]


def real_scalars():
    for value in (0.1, 1e-5, -0.0, 1.0, 3e9, 1e18, 1e19, 123456.789, 0.1 + 0.2, float("inf"), float("nan")):
        torch.full((2,), value)
    torch.nn.functional.interpolate(torch.ones(1, 1, 4), scale_factor=[0.3])


def test_real_scalars_have_the_same_text_as_in_pytorch(tmp_path):
    """Tools compare these texts across recordings."""
    actual, upstream = both(real_scalars, tmp_path / "trace.json", ("aten::full", "aten::upsample_nearest1d"))
    assert actual == upstream
    assert actual[0][2][1] == "0.10000000000000001"


def test_element_types_have_pytorchs_names(tmp_path):
    tensors = []
    for dtype in sorted({each for each in vars(torch).values() if isinstance(each, torch.dtype)}, key=str):
        tensors.append(torch.empty(2, dtype=dtype))
    actual, upstream = both(lambda: [each.view(-1) for each in tensors], tmp_path / "trace.json", ("aten::view",))
    assert actual == upstream and len(actual) >= 39


def symbolic_sizes():
    mode = FakeTensorMode(shape_env=ShapeEnv())
    x = mode.from_tensor(torch.ones(3, 4), static_shapes=False)
    a, b = x.shape
    with mode:
        x.view(a * b)
        torch.full((a + 1,), b)
        torch.full((b,), a / 2)


def test_symbolic_sizes_are_recorded_as_their_expression(tmp_path):
    actual, upstream = both(
        symbolic_sizes, tmp_path / "trace.json", ("aten::view", "aten::full", "aten::empty_strided")
    )
    assert actual == upstream
    texts = {text for each in actual for text in each[2]}
    assert any("*s" in text for text in texts) and any("TrueDiv" in text for text in texts)


def test_reading_symbolic_sizes_is_not_recorded():
    """The Python calls that Marey makes to read them do not belong to the program."""
    mode = FakeTensorMode(shape_env=ShapeEnv())
    with mode:
        x = mode.from_tensor(torch.ones(3, 4), static_shapes=False)
    counts = []
    for shapes in (False, False, True):  # the first run creates guards
        with profile(record_shapes=shapes, with_stack=True) as prof:
            with mode:
                x.view(x.shape[0] * x.shape[1])
        counts.append(
            sorted(e.name for e in prof.events() if "sym_node.py" in e.name or "symbolic_shapes.py" in e.name)
        )
    assert counts[1] == counts[2] and counts[1]


def test_a_symbol_without_readable_text_is_still_a_scalar(monkeypatch):
    def refuse(self):
        raise RuntimeError("no text")

    mode = FakeTensorMode(shape_env=ShapeEnv())
    x = mode.from_tensor(torch.ones(3, 4), static_shapes=False)
    with profile(record_shapes=True) as prof, mode, monkeypatch.context() as patched:
        size = x.shape[0]
        patched.setattr(SymNode, "str", refuse)
        torch.empty(size)
    assert ["<symbol>"] in [e.concrete_inputs[0] for e in prof.events() if e.name == "aten::empty"]


def test_lists_of_tensors_have_no_concrete_value():
    def work():
        a = torch.ones(2)
        torch.cat([a, a], 0)

    found = []
    for kind in (profile, torch_profile):
        with kind(record_shapes=True) as prof:
            work()
        found += [event.concrete_inputs for event in prof.events() if event.name == "aten::cat"]
    assert found == [[None, 0], [None, 0]]
