"""marey.profile: its lifetime, its options and its attributes."""

import copy
import json
import os
import pickle
import re
import socket
import subprocess
import sys
import threading

import pytest
from conftest import needs_plain_allocator
from recorded import names, work

import marey
from marey import ProfilerActivity, RecordScope

# ---- life


def test_a_block_is_recorded():
    """upstream: test_profiler, test_kineto"""
    with marey.profile() as prof:
        with marey.record_function("outer"):
            work("inner")
    assert names(prof) == ["outer", "inner"]
    assert "inner" in str(prof)
    assert prof.self_cpu_time_total > 0


def test_ranges_outside_the_block_are_not_recorded():
    work("before")
    with marey.profile() as prof:
        work("inside")
    work("after")
    assert names(prof) == ["inside"]


def test_start_and_stop_do_what_the_block_does():
    prof = marey.profile()
    prof.start()
    work()
    prof.stop()
    prof.stop()  # harmless
    assert names(prof) == ["work"]


def test_a_running_profiler_cannot_be_entered_again():
    prof = marey.profile()
    with prof:
        with pytest.raises(marey.Error, match="not reentrant"):
            prof.start()
    assert names(prof) == []


def test_an_object_entered_later_starts_afresh():
    prof = marey.profile()
    with prof:
        work("first")
    with prof:
        work("second")
    assert names(prof) == ["second"]


def test_with_acc_events_an_object_entered_later_goes_on():
    prof = marey.profile(acc_events=True)
    with prof:
        work("first")
    with prof:
        work("second")
    assert sorted(names(prof)) == ["first", "second"]
    assert len(prof.trace) == 2


def test_accumulated_cycles_are_in_exports_too(tmp_path):
    prof = marey.profile(acc_events=True)
    for name in ("first", "second"):
        with prof:
            work(name)
    prof.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {"first", "second"} <= {event["name"] for event in events}


@pytest.mark.parametrize("read", ["events", "key_averages", "total_average", "table"])
def test_reading_results_too_early_is_an_error(read):
    prof = marey.profile()
    with pytest.raises(marey.Error, match="has not run"):
        getattr(prof, read)()
    with prof:
        with pytest.raises(marey.Error, match="still running"):
            getattr(prof, read)()


def test_before_the_end_it_prints_as_unfinished():
    prof = marey.profile()
    assert str(prof) == repr(prof) == "<unfinished marey.profile>"
    with prof:
        assert str(prof) == "<unfinished marey.profile>"
    assert str(prof) == prof.table()


def test_a_profiler_that_is_not_enabled_is_inert():
    """Q1: upstream gives None."""
    with marey.profile(enabled=False) as prof:
        assert not marey.profiler.is_enabled()
        work()
        prof.step()
    assert names(prof) == []
    assert len(prof.key_averages()) == 0


def test_an_exception_passes_through_and_what_was_recorded_stays():
    prof = marey.profile()
    with pytest.raises(KeyError, match="lost"):
        with prof:
            with marey.record_function("fails"):
                raise KeyError("lost")
    assert names(prof) == ["fails"]


def test_profilers_nest_and_overlap():
    outer, inner, late = marey.profile(), marey.profile(), marey.profile()
    with outer:
        work("a")
        inner.start()
        work("b")
        late.start()
        inner.stop()
        work("c")
    work("d")
    late.stop()
    assert names(outer) == ["a", "b", "c"]
    assert names(inner) == ["b"]
    assert names(late) == ["c", "d"]


def test_the_flag_is_up_while_any_profiler_runs():
    """upstream: test_is_profiler_enabled"""
    from marey import profiler

    first, second = marey.profile(), marey.profile()
    assert not profiler._is_profiler_enabled
    first.start()
    second.start()
    assert profiler._is_profiler_enabled
    first.stop()
    assert profiler._is_profiler_enabled and marey.profiler.is_enabled()
    second.stop()
    assert not profiler._is_profiler_enabled


# ---- metadata and ids


def top_level(prof, tmp_path):
    prof.export_chrome_trace(tmp_path / "trace.json")
    return json.loads((tmp_path / "trace.json").read_text())


def test_metadata_is_in_the_trace(tmp_path):
    """K7; upstream: test_profiler_metadata; Q7: everything is escaped."""
    text = 'a "quoted"\n\\ text with \x01 and ü'
    with marey.profile(record_shapes=True) as prof:
        prof.add_metadata("text", text)
        prof.add_metadata_json("list", '[1, {"a": null}]')
    prof.add_metadata("afterwards", "kept")
    document = top_level(prof, tmp_path)
    assert document["text"] == text
    assert document["list"] == [1, {"a": None}]
    assert document["afterwards"] == "kept"
    assert document["record_shapes"] == 1
    assert document["trace_id"] == prof.get_trace_id()
    assert prof.trace.metadata["text"] == text


def test_metadata_that_is_not_json_is_rejected():
    """K7"""
    prof = marey.profile()
    with pytest.raises(ValueError, match="'key' is not JSON"):
        prof.add_metadata_json("key", "{")
    with pytest.raises(ValueError, match="not JSON"):
        prof.preset_metadata_json("key", "nope")
    with pytest.raises(TypeError):
        prof.add_metadata(3, "x")


def test_preset_metadata_is_in_every_trace():
    prof = marey.profile()
    prof.preset_metadata_json("run", "17")
    for _ in range(2):
        with prof:
            pass
        assert prof.trace.metadata["run"] == 17


def test_every_cycle_has_its_own_trace_id():
    prof = marey.profile()
    assert prof.get_trace_id() is None
    seen = set()
    for _ in range(3):
        with prof:
            pass
        assert re.fullmatch("[0-9A-F]{32}", prof.get_trace_id())
        seen.add(prof.get_trace_id())
    assert len(seen) == 3


def test_trace_ids_come_from_the_callback_when_there_is_one():
    prof = marey.profile(custom_trace_id_callback=lambda: 'my "id"')
    with prof:
        pass
    assert prof.trace_id == prof.trace.metadata["trace_id"] == 'my "id"'
    prof.set_custom_trace_id_callback(lambda: "other")
    assert prof.config(create_trace_id=True).trace_id == "other"


# ---- options


def test_invalid_options_are_rejected():
    for wrong, error in [
        ({"post_processing_timeout_s": -1}, ValueError),
        ({"policy": "never"}, ValueError),
        ({"threads": "some"}, ValueError),
        ({"scopes": []}, ValueError),
        ({"schedule": 3}, TypeError),
        ({"use_cpu": False}, marey.Error),
        ({"activities": [3]}, TypeError),
        ({"activities": [ProfilerActivity.CPU, {ProfilerActivity.CPU: []}]}, ValueError),
        ({"activities": [{ProfilerActivity.CPU: ["NOT_ONE"]}]}, marey.Error),
        ({"activities": [{ProfilerActivity.CPU: ["GPU_MEMCPY"]}]}, marey.Error),
        ({"unknown": 1}, TypeError),
    ]:
        with pytest.raises(error):
            marey.profile(**wrong)


def test_only_activities_in_the_filters_are_recorded():
    """upstream: test_activity_filter_dict_syntax, _empty_list"""
    with marey.profile(activities=[{ProfilerActivity.CPU: ["USER_ANNOTATION"]}]) as prof:
        work("by hand")
        with marey.record_function_fast("operator"):
            pass
    assert names(prof) == ["by hand"]
    with marey.profile(activities=[{ProfilerActivity.CPU: []}]) as prof:
        work("nothing")
    assert names(prof) == []


def test_only_the_selected_scopes_are_recorded():
    with marey.profile(scopes=[RecordScope.FUNCTION]) as prof:
        work("by hand")
        with marey.record_function_fast("operator"):
            pass
    assert names(prof) == ["operator"]


def test_a_generator_of_activities_is_read_once():
    """Q9"""
    assert marey.profile(activities=(kind for kind in [ProfilerActivity.CPU])).activities == {ProfilerActivity.CPU}


def test_missing_devices_cause_warnings():
    with pytest.warns(UserWarning, match="There is no device named 'abacus'"):
        assert marey.profile(use_device="abacus").use_device is None
    with pytest.warns(UserWarning, match="'hpu' is not recorded"):
        assert marey.profile(use_device="hpu").use_device is None


def test_all_threads_are_recorded_by_default():
    """upstream: test_profile_all_threads; our default differs."""
    other = threading.Thread(target=lambda: (go.wait(), work("other")))
    for options, expected in [
        ({}, ["other"]),
        ({"threads": "all"}, ["other"]),
        ({"threads": "tasks"}, []),
        ({"experimental_config": marey.profiler._ExperimentalConfig(profile_all_threads=False)}, []),
        ({"experimental_config": marey.profiler._ExperimentalConfig(profile_all_threads=True)}, ["other"]),
    ]:
        go = threading.Event()
        other = threading.Thread(target=lambda go=go: (go.wait(), work("other")))
        other.start()
        with marey.profile(**options) as prof:
            go.set()
            other.join()
        assert names(prof) == expected, options


def test_with_tasks_a_thread_started_inside_is_recorded():
    with marey.profile(threads="tasks") as prof:
        thread = threading.Thread(target=work, args=("task",))
        thread.start()
        thread.join()
    assert names(prof) == ["task"]


def test_the_configuration_pickles_and_copies():
    """upstream: test_experimental_config_pickle"""
    config = marey.profiler._ExperimentalConfig(["a"], True, verbose=True, custom_profiler_config="x=1")
    for same in (pickle.loads(pickle.dumps(config)), copy.deepcopy(config)):
        assert same == config
        assert same.profiler_metrics == ["a"] and same.verbose
    with pytest.raises(TypeError):
        marey.profiler._ExperimentalConfig(no_such_option=1)


def test_collection_can_be_paused_and_resumed_within_a_cycle():
    """upstream: test_dynamic_toggle"""
    with marey.profile() as prof:
        prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])  # it is on
        work("a")
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        work("b")
        prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        work("c")
    assert names(prof) == ["a", "c"]
    assert prof.trace.metadata["trace_id"] == prof.trace_id
    prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])  # harmless after the end
    assert not marey.is_recording()


def test_memory_that_is_reported_is_in_events_and_in_the_timeline(tmp_path):
    with marey.profile(activities=[marey.ProfilerActivity.CPU], profile_memory=True) as prof:
        with marey.record_function("takes"):
            marey.report_allocation(0x1000, 400, 400, 512)
        marey.report_allocation(0x1000, -400, 0, 512)
    (takes,) = [average for average in prof.key_averages() if average.key == "takes"]
    assert takes.cpu_memory_usage == 400
    assert "CPU Mem" in prof.key_averages().table()
    prof.export_memory_timeline(tmp_path / "memory.json")
    times, sizes = json.loads((tmp_path / "memory.json").read_text())
    assert [size[-1] for size in sizes] == [400, 0]
    prof.export_memory_timeline(tmp_path / "memory.html")
    assert "<svg" in (tmp_path / "memory.html").read_text()
    with marey.profile() as prof:
        pass
    with pytest.raises(marey.Error, match="profile_memory"):
        prof.export_memory_timeline(tmp_path / "none.json")
    with pytest.raises(marey.Error, match="not a device"):
        marey.report_allocation(1, 1, device="abacus")


def test_stacks_require_with_stack(tmp_path):
    with marey.profile() as prof:
        work()
    with pytest.raises(marey.Error, match="with_stack"):
        prof.export_stacks(tmp_path / "stacks")
    with marey.profile(with_stack=True) as prof:
        work()
    with pytest.raises(ValueError, match="metric"):
        prof.export_stacks(tmp_path / "stacks", "self_time_on_the_moon")


def test_stacks_of_a_program_without_operators_are_those_of_its_calls(tmp_path):
    def outer():
        for _ in range(3):
            inner()
        with marey.record_function("marked"):
            inner()

    def inner():
        return sum(range(20_000))

    with marey.profile(with_stack=True, c_calls=False) as prof:
        outer()
    prof.events().export_stacks(tmp_path / "count", "count")
    counts = dict(line.rsplit(" ", 1) for line in (tmp_path / "count").read_text().splitlines())
    (of_outer,) = [stack for stack in counts if stack.endswith("outer")]
    (of_inner,) = [stack for stack in counts if stack.endswith("inner")]
    assert of_inner.startswith(of_outer + ";") and counts[of_inner] == "4"
    assert counts[of_outer] == "2"  # itself, and the range marked in it
    prof.export_stacks(tmp_path / "times")
    times = dict(line.rsplit(" ", 1) for line in (tmp_path / "times").read_text().splitlines())
    assert int(times[of_inner]) > 0
    averages = {average.key: average for average in prof.key_averages()}
    (own,) = [average.self_cpu_time_total for key, average in averages.items() if key.endswith("inner")]
    assert abs(int(times[of_inner]) - own) <= 1  # microseconds, rounded down


def test_the_profiler_reports_its_own_overhead():
    """upstream: test_kineto (all stats > 0)"""
    with marey.profile() as prof:
        for _ in range(100):
            work()
    prof.events()
    stats = prof._stats
    assert stats() is stats
    assert stats.number_of_events == 100
    assert stats.profiling_window_duration_sec > 0
    assert stats.number_of_dropped_events == 0


# ---- files


def test_the_handler_writes_a_file_for_every_cycle(tmp_path):
    """upstream: test_tensorboard_trace_handler"""
    folder = tmp_path / "made" / "by it"
    with marey.profile(
        schedule=marey.schedule(wait=1, warmup=1, active=2, repeat=3),
        on_trace_ready=marey.tensorboard_trace_handler(folder),
    ) as prof:
        for _ in range(18):
            work()
            prof.step()
    files = os.listdir(folder)
    assert len(files) == 3
    pattern = re.escape(f"{socket.gethostname()}_{os.getpid()}") + r"\.\d+\.pt\.trace\.json"
    assert all(re.fullmatch(pattern, file) for file in files)
    prof = marey.profile(on_trace_ready=marey.tensorboard_trace_handler(folder, "worker", use_gzip=True))
    with prof:
        work()
    (packed,) = [file for file in os.listdir(folder) if file.endswith(".gz")]
    assert packed.startswith("worker.")
    assert (folder / packed).read_bytes()[:2] == b"\x1f\x8b"


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(marey.Error, match="cannot create the folder"):
        marey.tensorboard_trace_handler(tmp_path / "file" / "below")(None)


def test_an_output_file_holds_what_was_recorded_when_the_program_is_killed(tmp_path):
    program = """
import marey, os, signal
prof = marey.profile(output="killed.marey")
prof.start()
prof.add_metadata("run", "seven")
for i in range(1000):
    with marey.record_function("work"):
        pass
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=os.environ)
    assert done.returncode == -9
    trace = marey.load(tmp_path / "killed.marey")
    assert trace.metadata["run"] == "seven"
    (average,) = trace.key_averages()
    assert (average.key, average.count) == ("work", 1000)


def test_a_file_that_cannot_be_created_leaves_nothing_running(tmp_path):
    prof = marey.profile(output=tmp_path / "no folder" / "x.marey")
    with pytest.raises(marey.Error):
        prof.start()
    assert not marey.profiler.is_enabled() and not marey.is_recording()
    prof.stop()


def test_warnings_never_raise_in_the_program(run_python):
    printed = run_python(
        "import marey\nmarey.schedule(wait=0, warmup=0, active=1)\n"
        "marey.profile(use_device='abacus')\nprint('went on')",
        "-W",
        "error",
    )
    assert printed == "went on\n"


def test_the_native_results_have_upstreams_shape():
    with marey.profile() as prof:
        with marey.record_function("outer"):
            work("inner")
    result = prof.kineto_results
    outer, inner = result.events()
    assert (outer.name(), inner.name()) == ("outer", "inner")
    assert outer.start_ns() <= inner.start_ns() <= inner.end_ns() <= outer.end_ns()
    assert outer.duration_ns() == outer.end_ns() - outer.start_ns()
    assert result.trace_start_ns() <= outer.start_ns()
    assert result.experimental_event_tree()[0].name == "outer"


@needs_plain_allocator
def test_sessions_leave_no_memory_behind(run_python):
    """upstream: test_mem_leak"""
    printed = run_python(
        """
import gc, marey
gc.disable()  # nothing waits for the collector

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4

def sessions(count):
    for _ in range(count):
        with marey.profile() as prof:
            for _ in range(256):
                with marey.record_function("work"):
                    pass
        prof.key_averages().table()
        prof.events()[0].name

sessions(200)
before = resident()
sessions(1000)
print(resident() - before)
"""
    )
    assert int(printed) < 2048  # KiB


def test_a_profiler_that_cannot_start_leaves_nothing_running():
    prof = marey.profile()
    prof.preset_metadata_json("large", json.dumps("x" * (1 << 20)))
    with pytest.raises(marey.Error, match="128 KiB"):
        prof.start()
    assert not marey.is_recording() and not marey.profiler._is_profiler_enabled
    prof.preset_metadata.clear()
    with prof, marey.record_function("x"):
        pass
    assert [event.name for event in prof.events()] == ["x"]


def test_threads_may_stop_and_read_a_session_at_once():
    def use(session, start, lengths):
        start.wait()
        lengths.append(len(session.snapshot()))
        lengths.append(len(session.stop()))
        assert not session.is_running

    for _ in range(20):
        session, start, lengths = marey.Session(), threading.Barrier(4), []
        session.start()
        with marey.record_function("x"):
            pass
        threads = [threading.Thread(target=use, args=(session, start, lengths)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert lengths == [1] * 8
