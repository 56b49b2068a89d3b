"""Devices implemented in Python: registered, recorded by sessions and profilers, and shown in tables."""

import gc
import json
import re
import threading

import pytest
from devices import abax
from recorded import recording

import marey
from marey import DeviceActivity, DeviceType, ProfilerActivity

CPU, CUDA, PRIVATE = ProfilerActivity.CPU, ProfilerActivity.CUDA, ProfilerActivity.PrivateUse1


@pytest.fixture(autouse=True)
def sound_device():
    source = abax.activities
    source.calls.clear()
    yield
    source.fails.clear()
    abax.trouble = ""


def work(name="op", kernel="bead_kernel", us=50, **options):
    with marey.record_function(name):
        abax.activities.launch(kernel, us, **options)


def one(events, name):
    (event,) = [event for event in events if event.key == name]
    return event


def problems(trace):
    return {code: text for code, text, _ in trace.problems}


def about(us):
    return pytest.approx(us, abs=0.2)  # the clock ticks coarsely


# ---- the interface


def test_a_registered_device_is_found_by_name():
    """L17 L18"""
    assert "abax" in marey.registered_devices()
    assert marey.device_error("abax") == ""
    device = marey.find_device("abax")
    assert (device.name, device.type, device.has_activities, device.enabled()) == ("abax", 20, True, True)
    assert marey.find_device("nowhere") is None
    assert "nowhere" in marey.device_error("nowhere")
    abax.trouble = "its beads are missing"
    assert marey.device_error("abax") == "its beads are missing"
    assert not device.enabled()


class Any:
    """A device with the minimum of attributes."""

    def __init__(self, **members):
        self.__dict__.update(members)


def nothing(*_):
    pass


@pytest.mark.parametrize(
    "device, text",
    [
        (Any(), "must be a str"),
        (Any(name=""), "must be a str"),
        (Any(name=7), "must be a str"),
        (Any(name="x", type=0), "other than CPU"),
        (Any(name="x", type="gpu"), "other than CPU"),
        (Any(name="x", type=99), "other than CPU"),
        (Any(name="x", type=7), r"no method record\(\)"),
        (Any(name="x", type=7, record=nothing), r"no method elapsed\(\)"),
        (Any(name="x", type=7, activities=Any()), r"no method start\(\)"),
        (Any(name="abax", type=7, record=nothing, elapsed=nothing), "already registered"),
        (Any(name="x", type=20, record=nothing, elapsed=nothing), "has the same type as abax"),
    ],
)
def test_invalid_devices_are_rejected(device, text):
    with pytest.raises(marey.Error, match=text):
        marey.register_device(device)
    assert "x" not in marey.registered_devices()


def test_a_device_without_events_raises_an_error():
    """L18"""
    with pytest.raises(marey.Error, match="abax has no events"):
        marey.find_device("abax").record()


# ---- sessions


def test_work_is_linked_to_the_range_that_launched_it():
    with recording(devices=["abax"]) as recorded:
        work(grid=(4, 2), block=(32,), registers=16, static_shared=8, values={"bead": "blue"})
    assert recorded.parent(recorded.one("abaxLaunch")) == "op"
    events = recorded.trace.events(use_device="abax")
    kernel, op = one(events, "bead_kernel"), one(events, "op")
    assert [(k.name, k.device, k.duration) for k in op.kernels] == [("bead_kernel", 0, about(50))]
    assert op.device_time_total == about(50) and op.self_device_time_total == about(50)
    assert (kernel.device_type, kernel.device_index, kernel.device_resource_id) == (DeviceType.PrivateUse1, 0, 3)
    assert kernel.kwinputs["grid"] == [4, 2, 1] and kernel.kwinputs["block"] == [32, 1, 1]
    assert kernel.kwinputs["bead"] == "blue" and kernel.kwinputs["registers per thread"] == 16


def test_facts_of_a_source_are_in_the_metadata():
    with recording(devices=["abax"]) as recorded:
        work()
    assert recorded.trace.metadata["abax_model"] == {"beads": 70}
    with recording() as without:
        work()
    assert "abax_model" not in without.trace.metadata
    assert without.names() == ["op"]


def test_a_session_receives_each_requested_kind_of_activity():
    for kinds, names in ((DeviceActivity.KERNELS, {"bead_kernel"}), (DeviceActivity.COPIES, {"Memcpy HtoD"})):
        with recording(devices=["abax"], device_activities=int(kinds)) as recorded:
            work()
            work(kernel="Memcpy HtoD", kind="copy", bytes=4096)
            assert abax.activities.activities == kinds
        assert set(recorded.names()) == {"op"} | names


def test_device_allocations_and_lost_records_are_in_the_trace():
    with recording(devices=["abax"], profile_memory=True) as recorded:
        log = abax.activities.log
        assert log.needs_memory
        log.memory(4096, 512, total_allocated=512, total_reserved=1024)
        log.lost(3)
    assert [event.name for event in recorded.trace.events(use_device="abax")] == ["[memory]"]
    assert sum(count for code, _, count in recorded.trace.problems if code == "dropped") == 3


def test_the_log_rejects_invalid_records():
    with recording(devices=["abax"]):
        log = abax.activities.log
        with pytest.raises(ValueError, match="unknown kind of work 'dance'; known kinds: kernel, copy"):
            log.work("x", 1, 2, kind="dance")
        with pytest.raises(ValueError, match="ends before it starts"):
            log.work("x", 2, 1)
        with pytest.raises(ValueError, match="grid must have at most three"):
            log.work("x", 1, 2, grid=(1, 2, 3, 4))


def test_an_unavailable_device_is_a_problem_of_the_trace():
    abax.trouble = "its beads are missing"
    with recording(devices=["abax", "nowhere"]) as recorded:
        work()
    texts = [text for code, text, _ in recorded.trace.problems if code == "device_unavailable"]
    assert any("beads are missing" in text for text in texts) and any("nowhere" in text for text in texts)
    assert recorded.names() == ["op"]


@pytest.mark.parametrize("method", ["start", "flush", "stop"])
def test_an_exception_in_a_source_is_a_problem_and_has_no_other_effect(method):
    abax.activities.fails[method] = ValueError(f"no {method} today")
    with recording(devices=["abax"]) as recorded:
        with marey.record_function("op"):
            pass
    assert recorded.names() == ["op"]
    if method == "start":
        assert "ValueError: no start today" in problems(recorded.trace)["device_not_recorded"]
    if method == "flush":
        assert "ValueError: no flush today" in json.dumps(recorded.trace.metadata)
        assert "device_work_missing" in problems(recorded.trace)
    abax.activities.fails.clear()
    with recording(devices=["abax"]) as again:
        work()
    assert "bead_kernel" in again.names()


def test_sources_are_not_called_on_program_threads():
    """A thread that starts or stops a session holds a lock of the recorder and must not wait for the GIL."""
    with recording(devices=["abax"]):
        pass
    assert [method for method, _ in abax.activities.calls] == ["start", "flush", "stop"]
    assert threading.main_thread() not in {thread for _, thread in abax.activities.calls}


def test_sessions_on_many_threads_share_a_device():
    failures = []

    def record():
        try:
            for _ in range(10):
                with recording(devices=["abax"]) as recorded:
                    work()
                assert "bead_kernel" in recorded.names()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=record) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failures == [] and not any(thread.is_alive() for thread in threads)


def test_a_deleted_session_stops_its_device():
    session = marey.Session()
    session.start(devices=["abax"])
    assert abax.activities.log is not None
    del session
    gc.collect()
    assert abax.activities.log is None


def test_a_forked_child_records_the_device_separately(run_python):
    out = run_python(
        "import os, sys\n"
        f"sys.path.insert(0, {str(__file__.rpartition('/')[0])!r})\n"
        "from devices import abax\n"
        "import marey\n"
        "def names():\n"
        "    session = marey.Session(); session.start(devices=['abax'])\n"
        "    with marey.record_function('op'): abax.activities.launch('bead_kernel', 5)\n"
        "    return sorted({event.name for event in session.stop().events()})\n"
        "with marey.profile(use_device='abax'):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        print(names(), flush=True)\n"
        "        os._exit(0)\n"
        "    os.waitpid(pid, 0)\n"
        "print(names())\n"
    )
    assert out.splitlines() == ["['abaxLaunch', 'bead_kernel', 'op']"] * 2


def test_a_program_can_end_while_a_device_is_recorded(run_python, tmp_path):
    out = run_python(
        "import sys\n"
        f"sys.path.insert(0, {str(__file__.rpartition('/')[0])!r})\n"
        "from devices import abax\n"
        "import marey\n"
        "session = marey.Session(); session.start(devices=['abax'], output='left.marey')\n"
        "with marey.record_function('op'): abax.activities.launch('bead_kernel', 5)\n"
        "print('ended')\n"
    )
    assert out == "ended\n"
    assert "bead_kernel" in {event.name for event in marey.load(tmp_path / "left.marey").events()}


# ---- profilers


def test_a_profiler_shows_the_time_of_its_device():
    """L17; upstream: test_kineto_privateuse1_state_with_kineto"""
    with marey.profile(use_device="abax") as prof:
        work(us=50)
        work(us=30)
        work("other", "slow_kernel", us=100)
    assert prof.use_device == "abax" and PRIVATE in prof.activities
    assert prof.profiler_kind is marey.ProfilerState.KINETO_PRIVATEUSE1
    averages = prof.key_averages()
    op = one([average for average in averages if average.device_type == DeviceType.CPU], "op")
    assert (op.count, op.device_time_total) == (2, about(80))
    assert one(averages, "slow_kernel").self_device_time_total == about(100)
    table = averages.table(sort_by="self_device_time_total")
    assert "Self ABAX" in table and "ABAX total" in table
    assert float(re.search(r"Self ABAX time total: ([\d.]+)us", table)[1]) == about(180)
    assert table.index("slow_kernel") < table.index("bead_kernel")


def test_all_available_activities_are_recorded_by_default():
    """upstream: test_kineto_profiler_api"""
    assert {CPU, PRIVATE} <= marey.supported_activities()
    with marey.profile() as prof:
        work()
    assert "bead_kernel" in {event.name for event in prof.events()}
    with marey.profile(activities=[CPU]) as prof:
        work()
    assert {event.name for event in prof.events()} == {"op"} and prof.use_device is None


def test_activities_without_the_cpu_record_only_the_device():
    with marey.profile(activities=[PRIVATE]) as prof:
        work()
    assert {event.name for event in prof.events()} == {"abaxLaunch", "bead_kernel"}


def test_a_filter_selects_device_activities():
    """upstream: test_activity_filter_nonmember_type_name"""
    with marey.profile(activities=[CPU, {PRIVATE: ["GPU_MEMCPY"]}]) as prof:
        work()
        work(kernel="Memcpy HtoD", kind="copy", bytes=64)
    assert {event.name for event in prof.events()} == {"op", "Memcpy HtoD"}
    with pytest.raises(marey.Error, match="unknown activity type CPU_OP"):
        marey.profile(activities=[{PRIVATE: ["CPU_OP"]}])


def test_waits_are_recorded_on_demand():
    for demands in (False, True):
        config = marey._ExperimentalConfig(enable_cuda_sync_events=demands)
        with marey.profile(use_device="abax", experimental_config=config):
            assert bool(abax.activities.activities & DeviceActivity.WAITS) is demands


def test_device_recording_can_be_paused_and_resumed():
    """upstream: test_dynamic_toggle"""
    with marey.profile(use_device="abax") as prof:
        work(kernel="first")
        prof.toggle_collection_dynamic(False, [PRIVATE])
        assert abax.activities.log is None
        work(kernel="second")
        prof.toggle_collection_dynamic(True, [PRIVATE])
        work(kernel="third")
    names = [event.name for event in prof.events()]
    assert names.count("op") == 3
    assert {"first", "third"} <= set(names) and "second" not in names


def test_an_activity_that_is_not_recorded_cannot_be_paused():
    with marey.profile(activities=[CPU]) as prof, pytest.warns(UserWarning, match="cannot pause or resume it"):
        prof.toggle_collection_dynamic(False, [PRIVATE])


def test_an_unusable_device_causes_a_warning_and_is_ignored():
    """L18"""
    abax.trouble = "its beads are missing: buy some"
    with pytest.warns(UserWarning, match="'abax' is not recorded: its beads are missing: buy some"):
        assert marey.profile(use_device="abax").use_device is None
    with pytest.warns(UserWarning, match="'abacus'"):
        assert marey.profile(use_device="abacus").use_device is None
    with pytest.warns(UserWarning, match="PrivateUse1 is not recorded"):
        assert marey.profile(activities=[CPU, PRIVATE]).use_device is None
    with pytest.warns(UserWarning, match="XPU is not recorded: there is no such device"):
        assert marey.profile(activities=[CPU, ProfilerActivity.XPU]).use_device is None


def test_a_capture_keeps_device_work(tmp_path):
    with marey.profile(use_device="abax", output=tmp_path / "a.marey") as prof:
        work()
    again = marey.load(tmp_path / "a.marey")
    assert sorted(e.name for e in again.events()) == sorted(e.name for e in prof.events())
    prof.export_chrome_trace(tmp_path / "a.json")
    exported = json.loads((tmp_path / "a.json").read_text())["traceEvents"]
    assert {"kernel", "cuda_runtime"} <= {event.get("cat") for event in exported}
