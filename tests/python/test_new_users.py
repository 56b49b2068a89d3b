"""Things that new users try first and get wrong: subclasses, options of the wrong type, metadata, program exits."""

import asyncio
import gc
import sys
import time
import weakref

import pytest

import marey


def recorded_names(prof):
    return [event.name for event in prof.events()]


class Counted(marey.record_function):
    """A user's range class, with its own constructor, __enter__ and __exit__."""

    def __init__(self, name, *, log):
        super().__init__(f"counted {name}", args="text")
        self.log = log

    def __enter__(self):
        self.log.append("in")
        return super().__enter__()

    def __exit__(self, *failure):
        self.log.append("out")
        return super().__exit__(*failure)


def test_a_subclass_may_have_its_own_constructor():
    log = []
    with marey.profile() as prof, Counted("load", log=log) as range_:
        assert (range_.name, range_.args, type(range_)) == ("counted load", "text", Counted)
    assert recorded_names(prof) == ["counted load"]
    assert log == ["in", "out"]


def test_a_subclass_without_a_name_is_named_after_its_type():
    class Nameless(marey.record_function):
        def __init__(self, number):
            self.number = number

    with marey.profile() as prof, Nameless(3):
        pass
    assert recorded_names(prof) == ["Nameless"]


def test_the_constructor_of_a_subclass_checks_its_arguments():
    class Plain(marey.record_function):
        pass

    assert Plain("x", args="y").args == "y"
    with pytest.raises(TypeError, match="name must be a str, not int"):
        Plain(3)
    with pytest.raises(TypeError, match="missing required argument 'name'"):
        Plain()


def test_a_subclass_used_as_a_decorator_uses_its_own_enter_and_exit():
    log = []

    @Counted("plain", log=log)
    def plain(number):
        return number and plain(number - 1)

    @Counted("coroutine", log=log)
    async def coroutine():
        await asyncio.sleep(0)
        return "done"

    @Counted("generator", log=log)
    def generator():
        return (yield 1)

    with marey.profile() as prof:
        assert plain(1) == 0
        assert log == ["in", "in", "out", "out"]
        assert asyncio.run(coroutine()) == "done"
        assert list(generator()) == [1]
    assert log.count("in") == log.count("out") == 4
    assert set(recorded_names(prof)) == {"counted plain", "counted coroutine", "counted generator"}


def test_objects_of_a_subclass_leak_nothing():
    log = []
    gc.collect()  # garbage of other tests
    before = sys.getrefcount(Counted)
    for _ in range(100):
        with Counted("x", log=log):
            pass
    gc.collect()
    assert sys.getrefcount(Counted) == before


def test_ranges_support_weak_references():
    dead = []
    for _ in range(40):  # more than are kept for use again
        range_ = marey.record_function("x")
        assert weakref.getweakrefcount(range_) == 0
        reference = weakref.ref(range_, dead.append)
        assert reference() is range_
        del range_
        assert reference() is None
    assert len(dead) == 40


def test_options_of_the_wrong_type_are_rejected_at_once():
    for options in ({"max_bytes": "many"}, {"experimental_config": 5}, {"on_trace_ready": 5}):
        (name,) = options
        with pytest.raises(TypeError, match=name):
            marey.profile(**options)


def test_options_of_tables_of_the_wrong_type_are_named():
    with marey.profile() as prof, marey.record_function("x"):
        pass
    for options in ({"row_limit": "a"}, {"header": 3}):
        (name,) = options
        with pytest.raises(TypeError, match=name):
            prof.key_averages().table(**options)


def test_a_negative_number_of_stack_entries_is_none():
    with marey.profile() as prof, marey.record_function("x"):
        pass
    assert [average.key for average in prof.key_averages(group_by_stack_n=-3)] == ["x"]
    assert [average.key for average in prof.events().key_averages(group_by_stack_n=-3)] == ["x"]


def test_metadata_that_cannot_be_encoded_is_escaped():
    prof = marey.profile()
    prof.add_metadata("key \ud800", "value \ud801")
    with prof:
        prof.add_metadata("more \ud802", "x")
    assert prof.trace.metadata["key \\ud800"] == "value \\ud801"
    assert prof.trace.metadata["more \\ud802"] == "x"


def test_invalid_metadata_is_rejected_when_it_is_added():
    prof = marey.profile()
    for value in ("{", "NaN", '"\\ud800"', ""):
        with pytest.raises(ValueError, match="'key' is not JSON"):
            prof.add_metadata_json("key", value)
    with pytest.raises(TypeError, match="value of metadata must be a str"):
        prof.preset_metadata_json("key", 3)
    with prof:
        pass
    assert "key" not in prof.trace.metadata


def test_a_start_that_fails_leaves_nothing_running():
    prof = marey.profile(custom_trace_id_callback=lambda: {}["missing"])
    with pytest.raises(KeyError):
        prof.start()
    prof.preset_metadata["key"] = "{"  # past the checks
    prof.set_custom_trace_id_callback(None)
    with pytest.raises(marey.Error, match="not JSON"):
        prof.start()
    assert not marey.is_recording()
    assert not marey.profiler.is_enabled()
    del prof.preset_metadata["key"]
    with prof, marey.record_function("x"):
        pass
    assert recorded_names(prof) == ["x"]


def test_paths_may_be_bytes(tmp_path):
    output = bytes(tmp_path / "a.marey")
    with marey.profile(output=output) as prof, marey.record_function("x"):
        pass
    prof.export_chrome_trace(bytes(tmp_path / "a.json"))
    for path in (output, bytes(tmp_path / "a.json")):
        assert [event.name for event in marey.load(path).events()] == ["x"]


def test_keywords_of_the_newest_pytorch_release_are_accepted(tmp_path):
    config = marey.profiler._ExperimentalConfig(trace_only=True)
    assert config.trace_only
    with marey.profile(
        experimental_config=config,
        on_trace_ready=marey.tensorboard_trace_handler(tmp_path, use_python_export=True),
    ) as prof:
        pass
    prof.export_chrome_trace(tmp_path / "a.json", use_python_export=True)
    assert len(list(tmp_path.iterdir())) == 2


def test_attributes_of_a_profiler():
    prof = marey.profile(activities=[marey.ProfilerActivity.CPU], use_device=None)
    assert (prof.entered, prof.use_cpu, prof.use_cuda) == (False, True, False)
    assert prof.kineto_activities == {marey.ProfilerActivity.CPU}
    assert prof.profiler_kind is marey.profiler.ProfilerState.KINETO
    assert prof.profiling_start_time_ns == prof.profiling_end_time_ns == 0
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
    with prof:
        assert prof.entered
    assert before <= prof.profiling_start_time_ns <= prof.profiling_end_time_ns
    assert prof.profiling_end_time_ns <= time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def test_a_program_that_ends_while_profiling_prints_nothing(run_python):
    printed = run_python(
        "import os, threading, time, marey\n"
        "os.dup2(1, 2)\n"
        "marey.profile().start()\n"
        "def spin():\n"
        "    while True:\n"
        "        with marey.record_function('spin'): time.sleep(0.001)\n"
        "for _ in range(4): threading.Thread(target=spin, daemon=True).start()\n"
        "marey.record_function('open').__enter__()\n"
        "marey.begin('also open')\n"
    )
    assert printed == ""


def test_the_warning_about_lost_cycles_points_to_the_program(recwarn):
    prof = marey.profile(schedule=marey.schedule(wait=0, warmup=1, active=1))
    with prof:
        for _ in range(4):
            prof.step()
    (warning,) = [warning for warning in recwarn if "last cycle" in str(warning.message)]
    assert warning.filename == __file__


def test_save_rejects_suffixes_of_other_formats(tmp_path):
    with marey.profile() as prof:
        pass
    with pytest.raises(ValueError, match="export"):
        prof.trace.save(tmp_path / "trace.json.gz")
    with pytest.raises(ValueError, match="export"):
        prof.trace.save(tmp_path / "trace.pb.gz")
    assert list(tmp_path.iterdir()) == []


def test_collection_is_toggled_by_either_keyword():
    with marey.profile() as prof:
        prof.toggle_collection_dynamic(enabled=False, activities=[marey.ProfilerActivity.CPU])
        with marey.record_function("unseen"):
            pass
        prof.toggle_collection_dynamic(enable=True, activities=[marey.ProfilerActivity.CPU])
        with pytest.raises(TypeError, match="enable"):
            prof.toggle_collection_dynamic()
    assert len(prof.events()) == 0
