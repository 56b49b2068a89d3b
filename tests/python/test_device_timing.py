"""Ranges timed with device events, for devices that do not report their work or with use_kineto=False."""

import threading

import pytest
from devices import clockwork

import marey
from marey import DeviceType

ABOUT = 0.2  # microseconds: the clock ticks coarsely


@pytest.fixture(autouse=True)
def sound_device():
    clockwork.current = 0
    yield
    clockwork.fails = None


def timed(name, us):
    with marey.record_function(name):
        clockwork.work(us)


def host(events, name):
    (event,) = [event for event in events if event.name == name and event.device_type == DeviceType.CPU]
    return event


def about(us):
    return pytest.approx(us, abs=ABOUT)


def problems(prof):
    return {text for code, text, _ in prof.trace.problems if code == "device_not_timed"}


def test_the_device_time_of_a_range_is_the_time_between_its_events():
    """L3 L18 L19; upstream: KINETO_GPU_FALLBACK"""
    before = clockwork.synchronized
    with marey.profile(use_device="cuda", use_kineto=False) as prof:
        timed("op", 120)
        timed("op", 30)
    assert prof.profiler_kind is marey.ProfilerState.KINETO_GPU_FALLBACK
    assert clockwork.synchronized == before + 1
    first, second = [event for event in prof.events() if event.name == "op" and event.device_type == DeviceType.CPU]
    assert (first.device_time_total, second.device_time_total) == (about(120), about(30))
    assert first.is_legacy and [(k.name, k.device, k.duration) for k in first.kernels] == [("op", 0, about(120))]
    assert first.self_device_time_total == about(120)


def test_a_range_includes_the_time_of_nested_ranges_once():
    """L3"""
    with marey.profile(use_device="cuda", use_kineto=False) as prof:
        with marey.record_function("outer"):
            clockwork.work(10)
            timed("inner", 40)
            timed("inner", 50)
    outer = host(prof.events(), "outer")
    assert outer.device_time_total == about(100) and outer.self_device_time_total == about(10)
    rows = {row.key: row for row in prof.key_averages() if row.device_type == DeviceType.CPU}
    assert (rows["outer"].device_time_total, rows["outer"].self_device_time_total) == (about(100), about(10))
    assert (rows["inner"].device_time_total, rows["inner"].self_device_time_total) == (about(90), about(90))
    assert rows["inner"].is_legacy
    last_line = prof.key_averages().table(sort_by="self_cuda_time_total").splitlines()[-1]
    assert last_line.startswith("Self CUDA time total: ")
    assert float(last_line.rpartition(" ")[2].removesuffix("us")) == about(100)


def test_a_device_without_a_source_is_timed_by_default():
    """L17: no tracer of the device is there"""
    with marey.profile(use_device="cuda") as prof:
        timed("op", 70)
    assert prof.profiler_kind is marey.ProfilerState.KINETO_GPU_FALLBACK
    assert host(prof.events(), "op").device_time_total == about(70)


def test_ranges_are_not_timed_by_default():
    with marey.profile() as prof:
        timed("op", 70)
    assert marey.ProfilerActivity.CUDA not in marey.supported_activities()
    assert [event.device_type for event in prof.events()] == [DeviceType.CPU]


def test_memory_only_sessions_do_not_time_ranges():
    """L10"""
    cheap = (
        "view t transpose stride empty empty_like empty_strided as_strided expand resize_ squeeze unsqueeze slice "
        "_unsafe_view size"
    )
    with marey.profile(use_device="cuda", use_kineto=False) as prof:
        for name in cheap.split():
            timed(f"aten::{name}", 5)
        timed("aten::mm", 5)
        timed("mine", 5)
        marey.time_on_device("mine", False)
        timed("mine", 5)
        marey.time_on_device("mine")
        marey.time_on_device("aten::view")
        timed("aten::view", 5)
        marey.time_on_device("aten::view", False)
    shown = [e.name for e in prof.events() if e.device_type == DeviceType.CPU and e.device_time_total > 0]
    assert sorted(shown) == ["aten::mm", "aten::view", "mine"]


def test_events_of_different_devices_are_rejected():
    """L3"""
    with marey.profile(use_device="cuda", use_kineto=False) as prof:
        with marey.record_function("moved"):
            clockwork.current = 1
        timed("stayed", 5)
    assert problems(prof) == {"Events are not on the same device: 0 and 1."}
    assert host(prof.events(), "moved").device_time_total == 0
    assert host(prof.events(), "stayed").device_time_total == about(5)
    device = marey.find_device("cuda")
    one = device.record()
    clockwork.current = 0
    with pytest.raises(marey.Error, match="Events are not on the same device: 1 and 0"):
        device.elapsed(one, device.record())


def test_a_device_that_cannot_record_is_a_problem_of_the_trace():
    """L3 L18"""
    clockwork.fails = RuntimeError("no queue")
    with marey.profile(use_device="cuda", use_kineto=False) as prof:
        timed("op", 5)
    (text,) = problems(prof)
    assert text.startswith("Events were not recorded for cuda: ") and "RuntimeError: no queue" in text
    assert host(prof.events(), "op").device_time_total == 0


def test_events_of_another_device_are_rejected():
    """L3 L18"""
    device = marey.find_device("cuda")
    one = device.record()
    clockwork.work(25)
    two = device.record()
    assert (one.device, device.elapsed(one, two)) == (0, 25)
    with pytest.raises(marey.Error, match="Events were not recorded for abax"):
        marey.find_device("abax").elapsed(one, two)
    seen = []
    device.on_each_device(seen.append)
    assert seen == [0, 1]
    device.mark("here")
    device.range_push("a")
    device.range_pop()
    device.synchronize()
    assert clockwork.marks[-1] == "here"


def test_many_ranges_keep_few_events_alive():
    """L19"""
    import gc
    import weakref

    from devices import Point

    alive = weakref.WeakSet()
    made = Point.__init__

    def counted(self, device, us):
        made(self, device, us)
        alive.add(self)

    most = 0
    Point.__init__ = counted
    try:
        with marey.profile(use_device="cuda", use_kineto=False) as prof:
            for number in range(10_000):
                timed("op", 1)
                if number % 500 == 0:
                    most = max(most, len(alive))
    finally:
        Point.__init__ = made
    assert most <= 2 * 4096 + 2
    assert sum(e.device_time_total for e in prof.events() if e.device_type == DeviceType.CPU) == pytest.approx(
        10_000, rel=0.05
    )
    timed("op", 1)  # objects released without the GIL are freed at the next call
    marey.find_device("cuda").synchronize()
    gc.collect()
    assert len(alive) == 0


def test_threads_are_timed_separately():
    def run():
        for _ in range(50):
            with marey.record_function("threaded"):
                pass

    with marey.profile(use_device="cuda", use_kineto=False) as prof:
        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    own = [e for e in prof.events() if e.name == "threaded" and e.device_type == DeviceType.CPU]
    assert len(own) == 200 and all(e.is_legacy for e in own)
    assert problems(prof) == set()


def test_a_session_without_device_times_shows_none():
    other = marey.Session()
    other.start()
    with marey.profile(use_device="cuda", use_kineto=False):
        timed("op", 40)
    assert {event.device_type for event in other.stop().events()} == {DeviceType.CPU}


def test_the_fallback_requires_cpu_activity():
    """upstream: test_privateuse1_fallback_requires_use_cpu"""
    with pytest.raises(marey.Error, match="use_cpu=False requires use_kineto=True"):
        marey.profile(use_device="cuda", use_kineto=False, use_cpu=False)


def test_stacks_divide_the_device_time(tmp_path):
    with marey.profile(use_device="cuda", use_kineto=False, with_stack=True) as prof:
        with marey.record_function("outer"):
            clockwork.work(10)
            timed("inner", 40)
    prof.export_stacks(tmp_path / "stacks.txt", "self_cuda_time_total")
    lines = (tmp_path / "stacks.txt").read_text().splitlines()
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == pytest.approx(50, abs=2)
