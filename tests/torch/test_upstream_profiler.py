"""Counterparts of PyTorch's profiler tests for sessions, schedules, filters and settings, run with marey.torch."""

import copy
import gc
import os
import pickle
import threading

import pytest
import torch
import torch.profiler

import marey
import marey.torch
from marey.torch import ProfilerActivity, profile, record_function, schedule

FILTER_TYPES = ["CPU_OP", "USER_ANNOTATION"]


def names(prof):
    return [event.name for event in prof.events()]


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_many_sessions_do_not_leak_memory():
    """upstream: test_mem_leak"""
    x = torch.ones(2)

    def session():
        with profile(record_shapes=True, profile_memory=True):
            for _ in range(256):
                x + x

    for _ in range(8):
        session()
    gc.collect()
    before = resident_bytes()
    for _ in range(12):
        session()
    gc.collect()
    assert resident_bytes() - before < 2 << 20


def test_a_profile_is_read_printed_and_counted():
    """upstream: test_kineto, test_profiler"""
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
        torch.ones(10, 10) @ torch.ones(10, 10)
    assert "aten::mm" in str(prof)
    assert "aten::mm" in prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=-1)
    stats = prof._stats()
    for name in ("profiling_window_duration_sec", "number_of_events", "profiler_enable_call_duration_us"):
        assert getattr(stats, name) > 0, name
    assert prof.kineto_results.events() and prof.kineto_results.experimental_event_tree()


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 5

    def __getitem__(self, index):
        return torch.ones(2) * index


class OwnAdam(torch.optim.Adam):
    pass


@pytest.mark.parametrize("pickled", [False, True])
def test_loaders_and_optimizers_mark_their_own_work(pickled):
    """upstream: test_high_level_trace"""
    parameter = torch.zeros(2, requires_grad=True)
    optimizers = [torch.optim.SGD([parameter], lr=0.1), OwnAdam([parameter])]
    if pickled:
        optimizers = [pickle.loads(pickle.dumps(optimizer)) for optimizer in optimizers]
    with profile() as prof:
        for batch in torch.utils.data.DataLoader(Numbers()):
            for optimizer in optimizers:
                optimizer.zero_grad()
            (parameter * batch).sum().backward()
            for optimizer in optimizers:
                optimizer.step()
    found = names(prof)
    assert found.count("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__") == 6
    for name in ("SGD", "OwnAdam"):
        assert found.count(f"Optimizer.step#{name}.step") == 5
        assert found.count(f"Optimizer.zero_grad#{name}.zero_grad") == 5


def test_the_callback_runs_once_per_cycle_and_the_step_increases():
    """upstream: test_kineto_profiler_api"""
    start, called = marey.torch.KinetoStepTracker.current_step(), []
    plan = schedule(wait=1, warmup=1, active=2)
    with profile(schedule=plan, on_trace_ready=lambda prof: called.append(names(prof).count("aten::ones"))) as prof:
        for _ in range(8):
            torch.ones(1)
            prof.step()
    assert called == [2, 2] and marey.torch.KinetoStepTracker.current_step() == start + 8


@pytest.mark.parametrize(
    "warmup, active, repeat, kept, all_cycles",
    [
        (0, 1, 1, 1, 1),
        (0, 5, 0, 0, 100),
        (0, 5, 10, 5, 50),
        (1, 5, 0, 3, 83),
        (10, 10, 4, 10, 40),
        (50, 1, 0, 0, 1),
    ],
)
def test_one_operator_per_step_is_counted_as_in_pytorch(warmup, active, repeat, kept, all_cycles):
    """upstream: test_schedule_function_count"""
    for acc_events, expected in ((True, all_cycles), (False, kept)):
        plan = schedule(skip_first=0, wait=0, warmup=warmup, active=active, repeat=repeat)
        with profile(schedule=plan, acc_events=acc_events) as prof:
            for _ in range(100):
                torch.add(1, 2)
                prof.step()
        assert names(prof).count("aten::add") == expected


def test_experimental_options_can_be_pickled_and_copied():
    """upstream: test_experimental_config_pickle"""
    config = marey.torch._ExperimentalConfig(verbose=True, capture_overload_names=True, profile_all_threads=True)
    for same in (pickle.loads(pickle.dumps(config)), copy.deepcopy(config)):
        assert (same.verbose, same.capture_overload_names, same.profile_all_threads) == (True, True, True)


def test_the_type_of_the_running_profiler_is_reported():
    """upstream: test_profiler_type"""
    kind = marey.torch.profiler._profiler_type
    assert kind().name == "NONE"
    with profile():
        assert kind().name == "KINETO"
    assert kind().name == "NONE"


def test_operator_ids_are_unique_in_every_session():
    """upstream: test_profiler_correlation_id"""
    for _ in range(5):
        with profile() as prof:
            for _ in range(10):
                torch.ones(1) + 1
        ids = [event.correlation_id() for event in prof.kineto_results.events()]
        assert len(set(ids)) == len(ids) and all(0 <= number < 2**32 - 1 for number in ids)


def test_pytorch_settings_may_change_at_any_time():
    """upstream: test_concrete_inputs_profiling_toggling, test_profiler_strides_without_concrete_inputs,
    test_profiler_disable_fwd_bwd_link. Differs: values are always recorded."""
    switch = torch._C._profiler._set_record_concrete_inputs_enabled_val
    x = torch.ones(2, 6, requires_grad=True)
    try:
        for while_starting, while_running in ((True, False), (False, True), (False, False)):
            switch(while_starting)
            with profile(record_shapes=True) as prof:
                y = torch.as_strided(x, [4, 3], [1, 4])
                switch(while_running)
                y.sum().backward()
            (strided, *_) = [event for event in prof.events() if event.name == "aten::as_strided"]
            assert strided.concrete_inputs[1:3] == [[4, 3], [1, 4]]
            assert strided.structured_input_strides[0] == [6, 1]
    finally:
        switch(True)
    for links in (False, True):
        torch._C._profiler._set_fwd_bwd_enabled_val(links)
        try:
            with profile() as prof:
                x.sum().backward()
        finally:
            torch._C._profiler._set_fwd_bwd_enabled_val(True)
        assert any(event.flow_type == 1 for event in prof.events()) is links


def test_a_single_operator_is_recorded_as_one_event():
    """upstream: test_basic_profile, test_profiler_unboxed_only"""
    x = torch.ones(4, 4)
    with profile() as prof:
        x.add_(x)
    assert names(prof) == ["aten::add_"]
    with profile() as prof:
        torch.tensor([]).resize_([3, 2])
    assert "aten::resize_" in names(prof)


def test_collection_is_switched_off_and_on_during_a_recording():
    """upstream: test_dynamic_toggle"""
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        torch.zeros(1)
        prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        torch.ones(1)
    assert "aten::ones" in names(prof) and "aten::zeros" not in names(prof)


def test_events_are_created_only_when_accessed():
    """upstream: test_lazy_build_tree"""
    with profile() as prof:
        torch.ones(1)
    assert prof._events is None
    prof.key_averages()
    assert prof._events is None and len(prof.events()) == 3


def test_garbage_collection_is_a_range_on_request():
    """upstream: test_python_gc_event"""

    def work():
        with record_function("between"):
            gc.collect()

    config = marey.torch._ExperimentalConfig(record_python_gc_info=True)
    with profile(experimental_config=config, with_stack=True) as prof:
        work()
    (between,) = [event for event in prof.events() if event.name == "between"]
    collections = [event for event in prof.events() if event.name.startswith("Python GC")]
    assert any(between.time_range.start <= event.time_range.start <= between.time_range.end for event in collections)


@pytest.mark.parametrize("seconds", [None, 10_000])
def test_a_long_post_processing_timeout_loses_no_events(seconds, caplog):
    """upstream: test_public_api_post_processing_timeout_none, _large, test_parse_kineto_results_timeout_none, _large"""
    with profile(post_processing_timeout_s=seconds) as prof:
        for _ in range(10):
            torch.ones(1)
    assert names(prof).count("aten::ones") == 10
    assert len(prof._parse_kineto_results(prof.kineto_results, timeout_s=seconds)) == len(prof.events())
    assert not caplog.records


def test_events_that_take_longer_than_the_timeout_are_left_out_with_a_warning(caplog):
    """upstream: test_public_api_post_processing_timeout_zero, test_parse_kineto_results_timeout_zero"""
    with profile(post_processing_timeout_s=0) as prof:
        torch.ones(1)
    assert prof.events() == []
    assert "timed out" in caplog.text and "partial results" in caplog.text
    assert caplog.records[0].name == "torch.autograd.profiler"
    assert "aten::ones" in [row.key for row in prof.key_averages()]  # averages need no events


def test_the_parser_of_results_stops_at_its_own_timeout(caplog):
    """upstream: test_parse_kineto_results_timeout_zero"""
    with profile() as prof:
        torch.ones(1)
    assert prof._parse_kineto_results(prof.kineto_results, timeout_s=0) == []
    assert "timed out" in caplog.text
    assert "aten::ones" in names(prof)


def test_a_negative_post_processing_timeout_is_rejected():
    """upstream: test_public_api_post_processing_timeout_fails, test_parse_kineto_results_timeout_fails"""
    with pytest.raises(ValueError):
        profile(post_processing_timeout_s=-1)


def test_activities_are_selected_by_name():
    """upstream: test_activity_filter_dict_syntax, _mixed_syntax, _empty_list"""

    def recorded(activities):
        with profile(activities=activities, with_stack=True) as prof:
            with record_function("by hand"):
                torch.ones(1)
        return {event.activity_type for event in prof.events()}

    assert recorded([{ProfilerActivity.CPU: ["CPU_OP"]}]) == {"cpu_op"}
    assert recorded([{ProfilerActivity.CPU: FILTER_TYPES}]) == {"cpu_op", "user_annotation"}
    assert recorded([{ProfilerActivity.CPU: []}]) == set()
    assert {"cpu_op", "user_annotation", "python_function"} <= recorded([ProfilerActivity.CPU])


def test_invalid_activity_filters_are_rejected():
    """upstream: test_activity_filter_duplicate_raises, _invalid_type_name, _nonmember_type_name"""
    with pytest.raises(ValueError):
        profile(activities=[ProfilerActivity.CPU, {ProfilerActivity.CPU: ["CPU_OP"]}])
    for wrong in ("NO_SUCH_TYPE", "GPU_MEMCPY"):
        with pytest.raises(RuntimeError):
            with profile(activities=[{ProfilerActivity.CPU: [wrong]}]):
                pass


def test_running_and_later_threads_are_traced_with_their_own_frames():
    """upstream: test_source_multithreaded, test_profile_all_threads"""
    go, done = threading.Event(), threading.Barrier(3)
    operators = {}

    def early():
        go.wait()
        operators[threading.get_native_id()] = torch.sin(torch.ones(1))
        done.wait()

    def late():
        operators[threading.get_native_id()] = torch.cos(torch.ones(1))
        done.wait()

    first = threading.Thread(target=early)
    first.start()
    with profile(with_stack=True) as prof:
        second = threading.Thread(target=late)
        second.start()
        go.set()
        done.wait()
    first.join(), second.join()
    for name, function in (("aten::sin", "early"), ("aten::cos", "late")):
        (event,) = [event for event in prof.events() if event.name == name]
        assert any(frame.endswith(function) or f".{function}" in frame for frame in event.stack)
    assert set(operators) <= {thread["os_tid"] for thread in prof.trace.info()["threads"]}


@pytest.mark.parametrize("threads", ["all", "tasks"])
def test_threads_started_while_recording_are_recorded(threads):
    """upstream: test_with_enable_profiler_in_child_thread_cuda. Differs: threads need not enable it."""

    def work():
        torch.sin(torch.ones(1))

    with profile(threads=threads) as prof:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert "aten::sin" in names(prof)
