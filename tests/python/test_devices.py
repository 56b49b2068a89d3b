"""Devices: found by name, recorded by sessions and profilers, timed with events, and shown in tables."""

import json
import re
import threading

import devices
import pytest
from recorded import recording

import marey
from marey import DeviceActivity, ProfilerActivity
from marey.profiler import DeviceType

CPU, PRIVATE = ProfilerActivity.CPU, ProfilerActivity.PrivateUse1
ABSENT = "No simulated device is present: set 'absent' to 0."


@pytest.fixture(autouse=True)
def initial_settings():
    devices.reset()
    yield
    devices.reset()


def work(name="op", kernel="bead_kernel", us=50):
    with marey.record_function(name):
        devices.launch(kernel, us)


def one(events, name):
    (event,) = [event for event in events if event.key == name]
    return event


def host(events, name):
    return one([event for event in events if event.device_type == DeviceType.CPU], name)


def about(us):
    return pytest.approx(us, abs=0.2)  # the clock ticks coarsely


# ---- sessions


def test_a_device_records_from_the_warm_up_on():
    """Devices take milliseconds to begin, which would distort the first step that is recorded."""
    plan = marey.schedule(wait=0, warmup=1, active=1, repeat=1)
    with marey.profile(use_device="simulated", schedule=plan) as prof:
        work(kernel="warm_kernel")
        assert "simLaunchKernel" in {event.name for event in prof._warm_up.snapshot().events(use_device="simulated")}
        prof.step()
        assert prof._warm_up is None
        work()
        prof.step()
    assert [event.name for event in prof.events() if event.name.endswith("kernel")] == ["bead_kernel"]


def test_a_device_is_found_by_its_name():
    """L17 L18"""
    assert "simulated" in marey.registered_devices()
    assert marey.device_error("simulated") == ""
    device = marey.find_device("simulated")
    assert (device.name, device.type, device.has_activities, device.enabled()) == ("simulated", 20, True, True)
    assert marey.find_device("nowhere") is None
    assert marey.device_error("nowhere") == "There is no device named 'nowhere'."
    devices.configure(absent=1)
    assert marey.device_error("simulated") == ABSENT
    assert not device.enabled()


def test_work_is_linked_to_the_range_that_launched_it():
    with recording(devices=["simulated"]) as recorded:
        work()
    assert recorded.parent(recorded.one("simLaunchKernel")) == "op"
    events = recorded.trace.events(use_device="simulated")
    kernel, op = one(events, "bead_kernel"), one(events, "op")
    assert [(k.name, k.device, k.duration) for k in op.kernels] == [("bead_kernel", 0, about(50))]
    assert op.device_time_total == about(50) and op.self_device_time_total == about(50)
    assert (kernel.device_type, kernel.device_index, kernel.device_resource_id) == (DeviceType.PrivateUse1, 0, 3)
    assert kernel.kwinputs["grid"] == [64, 1, 1] and kernel.kwinputs["block"] == [128, 1, 1]


def test_facts_of_a_device_are_in_the_metadata_of_sessions_that_record_it():
    with recording(devices=["simulated"]) as recorded:
        work()
    assert recorded.trace.metadata["simulated_clock"]["readings"] > 0
    with recording() as without:
        work()
    assert "simulated_clock" not in without.trace.metadata
    assert without.names() == ["op"]


def test_a_session_receives_each_requested_kind_of_activity():
    for kinds, names in ((DeviceActivity.KERNELS, {"bead_kernel"}), (DeviceActivity.COPIES, {"Memcpy HtoD"})):
        with recording(devices=["simulated"], device_activities=int(kinds)) as recorded:
            work()
            devices.copy("Memcpy HtoD", 4096)
        assert set(recorded.names()) == {"op"} | names


def test_an_unavailable_device_is_a_problem_of_the_trace():
    devices.configure(absent=1)
    with recording(devices=["simulated", "nowhere"]) as recorded:
        with marey.record_function("op"):
            pass
    texts = {text for code, text, _ in recorded.trace.problems if code == "device_unavailable"}
    assert texts == {ABSENT, "There is no device named 'nowhere'."}
    assert recorded.names() == ["op"]


def test_sessions_on_many_threads_share_a_device():
    failures = []

    def record():
        try:
            for _ in range(10):
                with recording(devices=["simulated"]) as recorded:
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


def test_a_program_can_end_while_a_device_is_recorded(run_python, tmp_path):
    out = run_python(
        "import sys\n"
        f"sys.path.insert(0, {str(__file__.rpartition('/')[0])!r})\n"
        "import devices, marey\n"
        "session = marey.Session(); session.start(devices=['simulated'], output='left.marey')\n"
        "with marey.record_function('op'): devices.launch('bead_kernel', 5)\n"
        "print('ended')\n"
    )
    assert out == "ended\n"
    assert "bead_kernel" in {event.name for event in marey.load(tmp_path / "left.marey").events()}


# ---- profilers


def test_a_profiler_shows_the_time_of_its_device():
    """L17; upstream: test_kineto_privateuse1_state_with_kineto"""
    with marey.profile(use_device="simulated") as prof:
        work(us=50)
        work(us=30)
        work("other", "slow_kernel", us=100)
    assert prof.use_device == "simulated" and PRIVATE in prof.activities
    assert prof.profiler_kind is marey.profiler.ProfilerState.KINETO_PRIVATEUSE1
    averages = prof.key_averages()
    op = host(averages, "op")
    assert (op.count, op.device_time_total) == (2, about(80))
    assert one(averages, "slow_kernel").self_device_time_total == about(100)
    table = averages.table(sort_by="self_device_time_total")
    assert "Self SIMULATED" in table and "SIMULATED total" in table
    assert float(re.search(r"Self SIMULATED time total: ([\d.]+)us", table)[1]) == about(180)
    assert table.index("slow_kernel") < table.index("bead_kernel")


def test_all_available_activities_are_recorded_by_default():
    """upstream: test_kineto_profiler_api"""
    assert {CPU, PRIVATE} <= marey.profiler.supported_activities()
    with marey.profile() as prof:
        work()
    assert "bead_kernel" in {event.name for event in prof.events()}
    with marey.profile(activities=[CPU]) as prof:
        work()
    assert {event.name for event in prof.events()} == {"op"} and prof.use_device is None


def test_activities_without_the_cpu_record_only_the_device():
    with marey.profile(activities=[PRIVATE]) as prof:
        work()
    names = {event.name for event in prof.events()}
    assert {"simLaunchKernel", "bead_kernel"} <= names and "op" not in names


def test_a_filter_selects_device_activities():
    """upstream: test_activity_filter_nonmember_type_name"""
    with marey.profile(activities=[CPU, {PRIVATE: ["GPU_MEMCPY"]}]) as prof:
        work()
        devices.copy("Memcpy HtoD", 64)
    assert {event.name for event in prof.events()} == {"op", "Memcpy HtoD"}
    with pytest.raises(marey.Error, match="unknown activity type CPU_OP"):
        marey.profile(activities=[{PRIVATE: ["CPU_OP"]}])


def test_waits_are_recorded_on_demand():
    for demands in (False, True):
        config = marey.profiler._ExperimentalConfig(enable_cuda_sync_events=demands)
        with marey.profile(use_device="simulated", experimental_config=config) as prof:
            work()
            devices.wait()
        assert ("Stream Wait Event" in {event.name for event in prof.events()}) is demands


def test_device_recording_can_be_paused_and_resumed():
    """upstream: test_dynamic_toggle"""
    with marey.profile(use_device="simulated") as prof:
        work(kernel="first")
        prof.toggle_collection_dynamic(False, [PRIVATE])
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
    devices.configure(absent=1)
    with pytest.warns(UserWarning, match="'simulated' is not recorded: No simulated device is present"):
        assert marey.profile(use_device="simulated").use_device is None
    with pytest.warns(UserWarning, match="'abacus'"):
        assert marey.profile(use_device="abacus").use_device is None
    with pytest.warns(UserWarning, match="PrivateUse1 is not recorded"):
        assert marey.profile(activities=[CPU, PRIVATE]).use_device is None
    with pytest.warns(UserWarning, match="XPU is not recorded: there is no such device"):
        assert marey.profile(activities=[CPU, ProfilerActivity.XPU]).use_device is None


def test_a_capture_keeps_device_work(tmp_path):
    with marey.profile(use_device="simulated", output=tmp_path / "a.marey") as prof:
        work()
    again = marey.load(tmp_path / "a.marey")
    assert sorted(e.name for e in again.events()) == sorted(e.name for e in prof.events())
    prof.export_chrome_trace(tmp_path / "a.json")
    exported = json.loads((tmp_path / "a.json").read_text())["traceEvents"]
    assert {"kernel", "cuda_runtime"} <= {event.get("cat") for event in exported}


# ---- ranges timed with events


def timed():
    return marey.profile(use_device="simulated", use_kineto=False)


def test_the_device_time_of_a_range_is_the_time_between_its_events():
    """L3 L18 L19; upstream: KINETO_GPU_FALLBACK"""
    with timed() as prof:
        with marey.record_function("before"):  # until the queue is busy, an event is where the host is
            devices.launch("first", 2000)
        with marey.record_function("outer"):
            devices.launch("own", 10)
            work("inner", us=40)
            work("inner", us=50)
    assert prof.profiler_kind is marey.profiler.ProfilerState.KINETO_PRIVATEUSE1_FALLBACK
    outer = host(prof.events(), "outer")
    assert outer.is_legacy and [(k.name, k.device, k.duration) for k in outer.kernels] == [("outer", 0, about(100))]
    assert outer.device_time_total == about(100) and outer.self_device_time_total == about(10)
    rows = {row.key: row for row in prof.key_averages() if row.device_type == DeviceType.CPU}
    assert (rows["inner"].device_time_total, rows["inner"].self_device_time_total) == (about(90), about(90))
    assert rows["inner"].is_legacy


def test_events_of_different_devices_are_rejected():
    """L3"""
    with timed() as prof:
        with marey.record_function("moved"):
            devices.use(1)
    assert {text for code, text, _ in prof.trace.problems if code == "device_not_timed"} == {
        "Events are not on the same device: 0 and 1."
    }
    assert host(prof.events(), "moved").device_time_total == 0
    device = marey.find_device("simulated")
    second = device.record()
    devices.use(0)
    with pytest.raises(marey.Error, match="Events are not on the same device: 1 and 0"):
        device.elapsed(second, device.record())


def test_a_device_measures_between_its_events_and_visits_each_device():
    """L3 L18"""
    device = marey.find_device("simulated")
    devices.launch("first", 2000)
    before = device.record()
    devices.launch("kernel", 25)
    assert (before.device, device.elapsed(before, device.record())) == (0, about(25))
    seen = []
    device.on_each_device(seen.append)
    assert seen == [0, 1]
    device.mark("here")
    device.range_push("a")
    device.range_pop()
    device.synchronize()


def test_ranges_that_only_look_at_memory_are_not_timed():
    """L10"""
    cheap = (
        "view t transpose stride empty empty_like empty_strided as_strided expand resize_ squeeze unsqueeze slice "
        "_unsafe_view size"
    )
    with timed() as prof:
        for name in cheap.split():
            work(f"aten::{name}")
        work("aten::mm")
        work("mine")
        marey.time_on_device("mine", False)
        work("mine")
        marey.time_on_device("mine")
        marey.time_on_device("aten::view")
        work("aten::view")
        marey.time_on_device("aten::view", False)
    shown = [e.name for e in prof.events() if e.device_type == DeviceType.CPU and e.device_time_total > 0]
    assert sorted(shown) == ["aten::mm", "aten::view", "mine"]


def test_the_fallback_requires_cpu_activity():
    """upstream: test_privateuse1_fallback_requires_use_cpu"""
    with pytest.raises(marey.Error, match="use_cpu=False requires use_kineto=True"):
        marey.profile(use_device="simulated", use_kineto=False, use_cpu=False)
