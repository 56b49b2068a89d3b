"""Functions compiled by torch.compile."""

import pytest
import torch
import torch._dynamo

from marey.torch import profile, record_function


@pytest.fixture(autouse=True)
def reset_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def names_of(function, *args):
    """(event names, profiler, result) of the function's second call; the first call compiles."""
    function(*args)
    with profile(record_shapes=True) as prof:
        result = function(*args)
    return [event.name for event in prof.events()], prof, result


def around(event):
    while event is not None:
        yield event.name
        event = event.cpu_parent


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_regions_are_ranges_around_their_operators(backend):
    """upstream: the annotations of torch.compile"""
    names, prof, result = names_of(torch.compile(lambda x: torch.sin(x) * 2, backend=backend), torch.zeros(3))
    (region,) = [name for name in names if name.startswith("Torch-Compiled Region")]
    (sine,) = [event for event in prof.events() if event.name == "aten::sin"]
    assert region in around(sine) and "TorchDynamo Cache Lookup" in names
    assert result.tolist() == [0, 0, 0]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_range_inside_a_compiled_function_does_not_break_the_graph(backend):
    """As with PyTorch's own ranges, the compiler omits it unless configured otherwise."""

    def work(x):
        with record_function("inside"):
            y = torch.sin(x)
        return y + 1

    names, _, result = names_of(torch.compile(work, backend=backend, fullgraph=True), torch.zeros(3))
    assert "aten::sin" in names and "inside" not in names and result.tolist() == [1, 1, 1]


def test_the_compiler_keeps_ranges_on_request():
    def work(x):
        with record_function("inside", "some text"):
            return torch.sin(x)

    if not hasattr(torch._dynamo.config, "capture_profiler_record_function"):
        pytest.skip("this PyTorch's compiler always omits ranges")
    with torch._dynamo.config.patch(capture_profiler_record_function=True):
        names, prof, _ = names_of(torch.compile(work, backend="aot_eager", fullgraph=True), torch.zeros(3))
    (sine,) = [event for event in prof.events() if event.name == "aten::sin"]
    assert names.count("inside") == 1 and "inside" in around(sine)


def test_a_decorated_function_breaks_the_graph_and_is_recorded():
    @record_function("decorated")
    def inner(x):
        return torch.cos(x)

    names, prof, result = names_of(torch.compile(lambda x: inner(x) + 1, backend="eager"), torch.zeros(3))
    (cosine,) = [event for event in prof.events() if event.name == "aten::cos"]
    assert "decorated" in around(cosine) and result.tolist() == [2, 2, 2]


def test_a_profiler_may_start_and_stop_around_compilation():
    compiled = torch.compile(lambda x: torch.sin(x) + 1, backend="eager")
    with profile(with_stack=True, record_shapes=True, profile_memory=True) as prof:
        compiled(torch.zeros(3))
    assert "aten::sin" in {event.name for event in prof.events()}


def test_the_backward_pass_of_compiled_code_is_linked():
    x = torch.ones(3, requires_grad=True)
    compiled = torch.compile(lambda x: torch.sigmoid(x).sum(), backend="aot_eager")
    compiled(x).backward()
    with profile() as prof:
        compiled(x).backward()
    (node,) = [event for event in prof.events() if event.name == "CompiledFunctionBackward"]
    (forward,) = [event for event in prof.events() if event.name == "CompiledFunction"]
    assert node.sequence_nr == forward.sequence_nr >= 0 and node.fwd_thread == forward.thread
