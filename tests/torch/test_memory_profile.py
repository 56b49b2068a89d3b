"""Memory by category (parameters, gradients, activations, ...) and over time."""

import json

import pytest
import torch
from listings import bytes_by_category, categories, flow, recorded, recorded_by_both, timeline

import marey
from marey.results.memory_profile import Action, Category, TensorKey  # private: keys of its results
from marey.torch import profile, record_function


def by_address(memory):
    """{address: categories of the tensors at that address}"""
    found = {}
    for (key, _), category in memory._category_snapshot().items():
        found.setdefault(key.storage.ptr, set()).add(category)
    return found


def category_of(memory, tensor):
    """The category of a live tensor, from the last allocation at its address."""
    keys = [(k, v) for k, v in memory._category_snapshot() if k.storage.ptr == tensor.untyped_storage().data_ptr()]
    return memory.category(*max(keys, key=lambda kv: (kv[0].storage.allocation_id, kv[1])))


def mlp():
    return torch.nn.Sequential(torch.nn.Linear(20, 50), torch.nn.ReLU(), torch.nn.Linear(50, 10))


def train(model, optimizer, inputs, targets):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(inputs), targets).backward()
    optimizer.step()


@pytest.mark.parametrize("missing", ["record_shapes", "profile_memory", "with_stack"])
def test_missing_options_are_named(missing):
    """upstream: TestMemoryProfiler.test_config_check"""
    options = {"record_shapes": True, "profile_memory": True, "with_stack": True, missing: False}
    with profile(**options) as prof:
        pass
    with pytest.raises(ValueError, match=f"{missing}=True required"):
        prof.memory_profile()


# ---- gradients


def test_gradients_are_found_where_the_engine_accumulates_them():
    """upstream: test_extract_gradients_low_level"""
    x, cold = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    warm = torch.ones(3, requires_grad=True)
    warm.grad = torch.ones(3)
    prof = recorded(lambda: ((x * cold).sum() + warm.sum()).backward())
    memory = prof.memory_profile()
    assert [category_of(memory, t.grad) for t in (x, cold, warm)] == [Category.GRADIENT] * 3
    assert Category.GRADIENT not in {category_of(memory, t) for t in (x, cold, warm)}


@pytest.mark.parametrize("calls_module, steps", [(True, False), (False, True), (True, True)])
def test_gradients_and_parameters_are_recognised_through_modules_and_optimizers(calls_module, steps):
    """upstream: test_extract_gradients_from_module, _from_optimizer, _from_module_and_optimizer"""
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    inputs = torch.ones(2, 4)

    def work():
        if calls_module:
            model(inputs)
        if steps:
            optimizer.step()

    memory = recorded(work).memory_profile()
    for parameter in model.parameters():
        assert category_of(memory, parameter) is Category.PARAMETER
        assert category_of(memory, parameter.grad) is Category.GRADIENT


def test_released_gradients_are_still_recognised():
    """upstream: test_extract_gradients_from_optimizer_set_to_none"""
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    addresses = []

    def work():
        for _ in range(2):
            model(torch.ones(2, 4)).sum().backward()
            addresses.extend(p.grad.untyped_storage().data_ptr() for p in model.parameters())
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    found = by_address(recorded(work).memory_profile())
    assert all(Category.GRADIENT in found[address] for address in addresses)


# ---- data flow


def test_operators_report_which_inputs_they_write():
    """upstream: test_match_schemas, test_match_schemas_tensorlist"""
    x, y, out = torch.ones(3), torch.ones(3), torch.empty(3)

    def work():
        torch.add(x, y, out=out)
        x.mul_(y)
        torch._foreach_add_([x, y], 1)
        torch.cat([x, y])

    steps = recorded(work).memory_profile().flow_nodes
    address = {t.data_ptr(): name for name, t in (("x", x), ("y", y), ("out", out))}

    def written(name):
        (step,) = [step for step in steps if step.name == name]
        return {address[key.storage.ptr] for key, (is_written, _) in step.inputs.items() if is_written}

    assert written("aten::add") == {"out"}
    assert written("aten::mul_") == {"x"}
    assert written("aten::_foreach_add_") == {"x", "y"}
    assert written("aten::cat") == set()


def test_user_ranges_do_not_appear_in_the_data_flow():
    """upstream: test_data_flow_graph_with_annotations"""

    def work():
        with record_function("outer"), record_function("inner::looks_like_one"):
            x = torch.ones(3)
            x.zero_()

    memory = recorded(work).memory_profile()
    assert [step.name for step in memory.flow_nodes] == ["aten::ones", "aten::zero_", "[memory]"]
    ones, zero, freed = memory.flow_nodes
    (key,) = ones.outputs
    assert (ones.outputs, zero.inputs, zero.outputs) == ({key: 0}, {key: (True, 0)}, {key: 1})
    assert freed.inputs == {key: (False, 1)} and not freed.outputs


def test_temporaries_stay_inside_their_operator():
    """upstream: test_data_flow_graph_simple"""
    x = torch.ones(4, 100)
    memory = recorded(lambda: torch.logsumexp(x, 1)).memory_profile()
    (step,) = [step for step in memory.flow_nodes if step.name == "aten::logsumexp"]
    assert step.intermediates and len(step.outputs) == 1
    assert all(memory.category(key, 0) is Category.TEMPORARY for key in step.intermediates)


def simple():
    x, y = torch.ones(4), torch.ones(4)
    z = x + y
    del x
    z.mul_(y).sum()


def in_place():
    x = torch.ones(4)
    x.add_(torch.ones(4))
    x.mul_(2).sub_(1)


def backward():
    x = torch.ones(4)
    w = torch.ones(4, requires_grad=True)
    (x * w).sin().sum().backward()
    w.grad.zero_()


def complicated():
    x = torch.ones(4, 25)
    y = x.mul(2).add(1)
    z = torch.nn.functional.silu(torch.stack([x, y]).view(-1))
    torch.cat([z[:10], z[10:20]]).cumsum(0)
    w = torch.ones(25, 8, requires_grad=True)
    torch.nn.functional.softmax(x @ w, dim=1).square().mean().backward()
    torch._foreach_mul_([x, y], 0.5)


def stacked():
    x = torch.ones(4, 4)
    w0, w1 = torch.ones(4, 4, requires_grad=True), torch.ones(4, 4, requires_grad=True)
    loss = ((x @ w0).relu() @ w1).relu().sum()
    loss.backward()
    with torch.no_grad():
        for w in (w0, w1):
            w.sub_(w.grad, alpha=0.1)
            w.grad = None


def module_forward():
    mlp()(torch.ones(8, 20))


def module_training():
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        train(model, optimizer, torch.ones(8, 20), torch.ones(8, 10))


def convolution_training():
    layers = torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.Flatten(), torch.nn.Linear(8 * 6 * 6, 4)
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(2):
        train(model, optimizer, torch.ones(2, 3, 8, 8), torch.ones(2, 4))


@pytest.mark.parametrize(
    "work",
    [simple, in_place, backward, complicated, stacked, module_forward, module_training, convolution_training],
    ids=lambda work: work.__name__,
)
def test_flow_categories_and_timeline_equal_those_of_pytorchs_profiler(work):
    """upstream: test_data_flow_graph_simple, _simple_inplace, _simple_backward, _complicated, _stacked,
    test_match_schemas_backward, test_categories_e2e_simple_fwd, _simple_fwd_bwd, _simple_fwd_bwd_step,
    _simple_module_fwd, _simple_module_fwd_bwd, _simple_module_fwd_bwd_step, _sequential_fwd, _sequential_fwd_bwd
    """
    actual, upstream = recorded_by_both(work)
    own, other = actual.memory_profile(), upstream._memory_profile()
    assert flow(own) == flow(other)
    assert categories(own) == categories(other)
    assert timeline(own) == timeline(other)
    assert bytes_by_category(own) == bytes_by_category(other)


# ---- categories of whole programs


def test_a_training_step_has_every_category():
    """upstream: test_parameters_and_gradients, test_parameters_and_gradients_set_to_none, test_inputs_fwd_bwd"""
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters())
    inputs, targets = torch.randn(8, 20), torch.randn(8, 10)
    train(model, optimizer, inputs, targets)
    memory = recorded(lambda: [train(model, optimizer, inputs, targets) for _ in range(2)]).memory_profile()
    for parameter in model.parameters():
        assert category_of(memory, parameter) is Category.PARAMETER
        assert category_of(memory, parameter.grad) is Category.GRADIENT
        for name in ("exp_avg", "exp_avg_sq"):
            assert category_of(memory, optimizer.state[parameter][name]) is Category.OPTIMIZER_STATE
    assert category_of(memory, inputs) is Category.INPUT
    assert category_of(memory, targets) is Category.INPUT
    held = bytes_by_category(memory)
    parameters = sum(p.nbytes for p in model.parameters())
    assert held["PARAMETER"] >= parameters  # the optimizer has tensors that are classified as parameters too
    assert held["OPTIMIZER_STATE"] >= 2 * parameters
    assert held["GRADIENT"] >= 2 * parameters
    assert held["ACTIVATION"] >= 2 * 8 * (50 + 10) * 4
    assert held["AUTOGRAD_DETAIL"] > 0 and held["INPUT"] >= inputs.nbytes + targets.nbytes


def test_forward_inputs_are_recognised_through_module_parameters():
    """upstream: test_inputs_fwd"""
    model, inputs = mlp(), [torch.randn(4, 20) for _ in range(3)]
    memory = recorded(lambda: [model(given) for given in inputs]).memory_profile()
    assert [category_of(memory, given) for given in inputs] == [Category.INPUT] * 3


def test_memory_that_cannot_be_classified_is_unknown():
    """upstream: test_inputs_fwd_lazy"""
    made = torch.ones(4, 4)

    def work():
        w = torch.ones(4, 4)
        return made @ w

    memory = recorded(work).memory_profile()
    assert set(memory.categories().values()) == {None}


def test_parameters_created_while_recording_are_recognised():
    """upstream: test_lazily_initialized"""
    model = torch.nn.Sequential(torch.nn.LazyLinear(5), torch.nn.LazyLinear(3))
    inputs = torch.ones(2, 4)

    def work():
        model(inputs)  # creates the parameters
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            train(model, optimizer, inputs, torch.ones(2, 3))

    memory = recorded(work).memory_profile()
    for parameter in model.parameters():
        assert category_of(memory, parameter) is Category.PARAMETER


def test_manually_updated_parameters_are_recognised_by_data_flow():
    """upstream: test_manual_optimizer_step"""
    w0, w1 = torch.ones(4, 4, requires_grad=True), torch.ones(4, requires_grad=True)
    inputs = torch.ones(2, 4)

    def work():
        for _ in range(2):
            (inputs @ w0 + w1).sum().backward()
            with torch.no_grad():
                for w in (w0, w1):
                    w.add_(w.grad, alpha=-0.1)
                    w.grad = None

    memory = recorded(work).memory_profile()
    assert category_of(memory, w0) is Category.PARAMETER and category_of(memory, w1) is Category.PARAMETER
    assert category_of(memory, inputs) is Category.INPUT


# ---- over time


def test_the_timeline_is_ordered_and_only_preexisting_memory_has_no_time():
    """upstream: test_memory_timeline"""
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters())
    inputs, targets = torch.randn(8, 20), torch.randn(8, 10)
    memory = recorded(lambda: train(model, optimizer, inputs, targets)).memory_profile()
    times = [time for time, *_ in memory.timeline]
    assert times == sorted(times)
    assert all((time == -1) == (action is Action.PREEXISTING) for time, action, _, _ in memory.timeline)
    held = 0
    for _, action, _, size in memory.timeline:
        held += {Action.DESTROY: -size, Action.INCREMENT_VERSION: 0}.get(action, size)
    kept = sum(p.nbytes + p.grad.nbytes for p in model.parameters()) + inputs.nbytes + targets.nbytes
    kept += sum(part.nbytes for state in optimizer.state.values() for part in state.values())
    assert held == kept


def test_memory_outside_tensors_is_in_the_timeline_too():
    """upstream: test_memory_timeline_no_id, test_data_flow_graph_non_op_allocations"""

    def work():
        torch.ones(10).add_(1)
        storage = torch.UntypedStorage(5000)
        del storage

    memory = recorded(work).memory_profile()
    unknown = [(action, size) for _, action, (key, _), size in memory.timeline if not isinstance(key, TensorKey)]
    assert (Action.CREATE, 5000) in unknown and (Action.DESTROY, 5000) in unknown


def test_exported_timelines_show_the_categories(tmp_path):
    """upstream: test_memory_timeline"""
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters())
    inputs, targets = torch.randn(8, 20), torch.randn(8, 10)
    train(model, optimizer, inputs, targets)  # creates the optimizer state
    prof = recorded(lambda: [train(model, optimizer, inputs, targets) for _ in range(2)])
    for name in ("memory.json", "memory.raw.json", "memory.html"):
        prof.export_memory_timeline(str(tmp_path / name), device="cpu")
    times, sizes = json.loads((tmp_path / "memory.json").read_text())
    assert len(times) == len(sizes) and times == sorted(times) and {len(row) for row in sizes} == {9}
    assert all(size >= 0 for row in sizes for size in row)
    parameters = sum(p.nbytes for p in model.parameters())
    assert min(row[1] for row in sizes) == sizes[-1][1] == parameters
    assert sizes[-1][6] == parameters  # gradients
    raw = json.loads((tmp_path / "memory.raw.json").read_text())
    held = {}
    for _, _, size, category in raw:
        held[category] = held.get(category, 0) + size
    assert [held.get(category, 0) for category in range(8)] == sizes[-1][1:]
    page = (tmp_path / "memory.html").read_text()
    for word in ("parameter", "optimizer state", "input", "activation", "gradient", "autograd detail"):
        assert f"</i>{word}, peak" in page
    assert "http" not in page


@pytest.mark.filterwarnings("ignore:`export_memory_timeline`:FutureWarning")  # raised by PyTorch
def test_exported_timelines_equal_those_of_pytorchs_profiler(tmp_path):
    def work():
        model = mlp()
        optimizer = torch.optim.Adam(model.parameters())
        train(model, optimizer, torch.ones(8, 20), torch.ones(8, 10))

    actual, upstream = recorded_by_both(work)
    actual.export_memory_timeline(str(tmp_path / "actual.raw.json"), device="cpu")
    upstream.export_memory_timeline(str(tmp_path / "upstream.raw.json.gz"), device="cpu")
    import gzip

    own = json.loads((tmp_path / "actual.raw.json").read_text())
    other = json.loads(gzip.open(tmp_path / "upstream.raw.json.gz").read())
    assert [row[1:] for row in own] == [row[1:] for row in other]


def test_a_saved_trace_has_the_same_memory_profile(tmp_path):
    prof = recorded(module_training)
    prof.trace.save(str(tmp_path / "saved.marey"))
    from marey.results.memory_profile import MemoryProfile  # private: keys of its results

    loaded = MemoryProfile(marey.load(str(tmp_path / "saved.marey")))
    assert loaded.timeline == prof.memory_profile().timeline
    assert loaded.categories() == prof.memory_profile().categories()
