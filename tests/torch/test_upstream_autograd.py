"""Counterparts of PyTorch's profiler tests for autograd and ranges, run with marey.torch."""

import threading

import pytest
import torch
import torch._dynamo

import marey.torch
from marey.torch import profile, record_function


def named(prof, name):
    return [event for event in prof.events() if event.name == name]


def test_the_enabled_flag_is_set_only_inside_the_block():
    """upstream: test_profiler (test_autograd), test_profiler_type"""
    with marey.torch.profiler.profile(use_kineto=True) as prof:
        assert torch.autograd._profiler_enabled()
        y = torch.randn(10, 10) * 2 + 4
    assert not torch.autograd._profiler_enabled() and y.shape == (10, 10)
    found = [event.name for event in prof.function_events]
    for name in ("aten::randn", "aten::mul", "aten::add"):
        assert name in found


def test_forward_and_backward_share_sequence_numbers_across_operators():
    """upstream: test_profiler_seq_nr"""
    x, y = torch.randn(10, 10, requires_grad=True), torch.randn(10, 10, requires_grad=True)
    with profile() as prof:
        (x + y).sum().backward()
    (add,) = named(prof, "aten::add")
    (add_backward,) = named(prof, "autograd::engine::evaluate_function: AddBackward0")
    sums = [event for event in named(prof, "aten::sum") if event.sequence_nr >= 0]
    (sum_backward,) = named(prof, "autograd::engine::evaluate_function: SumBackward0")
    assert add.sequence_nr == add_backward.sequence_nr >= 0 and add_backward.fwd_thread == add.thread
    assert sums[0].sequence_nr == sum_backward.sequence_nr > add.sequence_nr
    assert all(event.sequence_nr == -1 for event in named(prof, "aten::empty"))


def test_ranges_nest_in_order_and_work_as_decorators():
    """upstream: test_record_function (test_autograd)"""
    x = torch.randn(10, 10)

    @record_function("decorated")
    def work():
        return x * 2

    with profile() as prof:
        with record_function("label"):
            x + 1
            work()
        work()
    found = [event.name for event in prof.events() if event.name in ("label", "decorated", "aten::mul", "aten::add")]
    assert found == ["label", "aten::add", "decorated", "aten::mul", "decorated", "aten::mul"]
    assert [event.cpu_parent.name for event in named(prof, "aten::mul")] == ["decorated"] * 2


def test_ranges_entered_and_left_by_threads_in_any_order_do_not_raise():
    """upstream: test_record_function_multithreaded"""
    outer = record_function("outer")
    outer.__enter__()
    with record_function("inner"):
        other = threading.Thread(target=outer.__exit__, args=(None, None, None))
        with profile() as prof:
            late = record_function("late")
            late.__enter__()
            other.start()
            other.join()
            with record_function("within"):
                late.__exit__(None, None, None)
                torch.ones(1)
    assert len(named(prof, "late")) == len(named(prof, "within")) == len(named(prof, "aten::ones")) == 1


def test_a_range_around_a_future_is_counted_once():
    """upstream: test_record_function_callbacks, test_profiler_propagation"""

    @torch.jit.script
    def script(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x)

    with profile() as prof:
        with record_function("outer"):
            future = torch.jit._fork(script, torch.ones(2))
            torch.jit._wait(future)
    assert len(named(prof, "outer")) == 1 and len(named(prof, "aten::tanh")) == 1


def test_averages_add_up():
    """upstream: test_profiler_function_event_avg, test_profiler_aggregation_fake"""
    from marey.profiler import EventList, FunctionEvent

    events = EventList([FunctionEvent(0, "foo", 0, 10, 15), FunctionEvent(1, "foo", 0, 20, 30)])
    events._build_tree()
    (average,) = events.key_averages()
    average.add(average)
    assert (average.count, average.cpu_time_total, average.cpu_time) == (4, 30, 7.5)


def test_a_fast_range_is_reusable_survives_errors_and_has_values_on_demand():
    """upstream: test_record_function_fast, test_guarded_record_function_fast"""
    fast = torch._C._profiler._RecordFunctionFast
    x, again = torch.ones(4, 4), fast("again")
    with profile(record_shapes=True) as prof:
        for _ in range(3):
            if torch.autograd.profiler._is_profiler_enabled:
                with again:
                    x.add_(x)
        with pytest.raises(ValueError):
            with fast("raises", (x, 3)):
                raise ValueError("no")
        with fast("keywords", [x, 2], {"scale": 1.5}), fast("nested"):
            pass
    assert len(named(prof, "again")) == 3
    assert named(prof, "raises")[0].input_shapes == [[4, 4], []]
    assert named(prof, "keywords")[0].kwinputs["scale"] == 1.5
    assert named(prof, "nested")[0].cpu_parent.name == "keywords"
    with profile() as prof:
        with fast("plain", [x]):
            pass
    assert named(prof, "plain")[0].input_shapes == []


def test_unsupported_keyword_values_are_omitted(tmp_path):
    """upstream: test_profiler_op_event_kwargs, test_profiler_op_event_kwargs_list_of_strings"""
    values = {"texts": ["a", "b"], "number": 3, "flag": True, "function": len, "mixed": ["a", 1, [len]]}
    with profile(record_shapes=True) as prof:
        with torch._C._profiler._RecordFunctionFast("op", [], values):
            pass
    (event,) = named(prof, "op")
    assert {key: event.kwinputs[key] for key in ("texts", "number", "flag")} == {
        "texts": ["a", "b"],
        "number": 3,
        "flag": True,
    }
    assert "function" not in event.kwinputs or event.kwinputs["function"] in (None, "NULL")


def test_dispatch_layers_are_ranges():
    """upstream: test_python_dispatch_mode_record_function, test_python_subclass_record_function"""

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with profile() as prof:
        with Mode():
            torch.ones(1)
    assert named(prof, "PythonDispatchMode")


def test_compilation_is_recorded_as_ranges_while_a_profiler_runs():
    """upstream: test_chromium_event_logger_profiler_integration, test_chromium_logger_reset_cleans_open_events,
    test_chromium_logger_no_overhead_when_profiler_disabled"""
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: torch.sin(x) + 1, backend="eager")
    with profile() as prof:
        compiled(torch.zeros(3))
    (compilation, *_) = [event for event in prof.events() if "compile" in event.name.lower()]
    assert compilation.time_range.elapsed_us() > 0
    with profile() as prof:
        compiled(torch.zeros(3))
    assert not [event for event in prof.events() if event.name == compilation.name]
    torch._dynamo.reset()


def test_jagged_tensors_have_no_flops_and_are_harmless():
    """upstream: test_flops (jagged input)"""
    nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged)
    with profile(with_flops=True) as prof:
        torch.nn.Linear(3, 2)(nested)
    assert [event for event in prof.events() if "linear" in event.name] and prof.key_averages().table()
