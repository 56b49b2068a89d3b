"""marey.profile: schedules, cycles and steps."""

import warnings

import pytest
from recorded import names, work

import marey
from marey.profiler import ProfilerAction
from marey.recording.cycle import TRANSITIONS  # private: the table of all transitions

N, W, R, S = ProfilerAction.NONE, ProfilerAction.WARMUP, ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE


def listing(schedule, steps):
    return "".join({N: "N", W: "W", R: "R", S: "S"}[schedule(step)] for step in range(steps))


# ---- schedules


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"wait": 1, "warmup": 1, "active": 2}, "NWRSNWRS"),
        ({"wait": 0, "warmup": 0, "active": 1}, "SSSS"),
        ({"wait": 0, "warmup": 0, "active": 5}, "RRRRSRRRRS"),
        ({"wait": 2, "warmup": 1, "active": 4, "repeat": 2, "skip_first": 3}, "NNNNNWRRRSNNWRRRSNNN"),
        ({"wait": 5, "warmup": 1, "active": 2, "repeat": 2, "skip_first": 3, "skip_first_wait": 1}, "NNNWRSNNNNNWRSNN"),
        ({"wait": 1, "warmup": 1, "active": 1, "repeat": 1, "skip_first_wait": 1}, "WSNN"),
    ],
)
@pytest.mark.filterwarnings("ignore:a schedule without warm-up")
def test_schedules_are_those_of_pytorch(options, expected):
    """upstream: test_kineto_profiler_api, test_skip_first_wait"""
    assert listing(marey.schedule(**options), len(expected)) == expected


@pytest.mark.parametrize("wrong", [{"wait": -1}, {"warmup": -1}, {"active": 0}, {"repeat": -1}, {"skip_first": -1}])
def test_an_invalid_schedule_is_rejected(wrong):
    with pytest.raises(marey.Error, match="invalid schedule"):
        marey.schedule(**{"wait": 0, "warmup": 1, "active": 1, **wrong})
    with pytest.raises(marey.Error, match="counted from 0"):
        marey.schedule(wait=0, warmup=1, active=1)(-1)


def test_a_schedule_without_warm_up_warns():
    with pytest.warns(UserWarning, match="warm-up"):
        marey.schedule(wait=0, warmup=0, active=1)


@pytest.mark.parametrize(
    ("warmup", "active", "repeat", "acc_events", "expected"),
    [
        (0, 1, 1, True, 1),
        (0, 5, 0, True, 100),
        (0, 5, 10, True, 50),
        (1, 5, 0, True, 83),
        (10, 10, 4, True, 40),
        (50, 1, 0, True, 1),
        (0, 5, 0, False, 0),
        (10, 10, 4, False, 10),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_one_operation_a_step_is_counted_as_pytorch_counts_it(warmup, active, repeat, acc_events, expected):
    """upstream: test_schedule_function_count"""
    schedule = marey.schedule(skip_first=0, wait=0, warmup=warmup, active=active, repeat=repeat)
    with marey.profile(schedule=schedule, acc_events=acc_events) as prof:
        for _ in range(100):
            work("add")
            prof.step()
    assert sum(average.count for average in prof.key_averages() if average.key == "add") == expected


def test_the_callback_runs_once_per_cycle_and_steps_are_marked():
    """upstream: test_kineto_profiler_api"""
    ready = []
    before = marey.profiler.KinetoStepTracker.current_step()
    with marey.profile(
        schedule=marey.schedule(wait=1, warmup=1, active=2),
        on_trace_ready=lambda prof: ready.append((prof.step_num, names(prof))),
    ) as prof:
        for _ in range(8):
            work()
            prof.step()
    assert marey.profiler.KinetoStepTracker.current_step() - before == 8
    steps = [[name for name in cycle if name.startswith("ProfilerStep")] for _, cycle in ready]
    assert [step for step, _ in ready] == [4, 8]
    assert steps == [["ProfilerStep#2", "ProfilerStep#3"], ["ProfilerStep#6", "ProfilerStep#7"]]


def test_without_a_schedule_the_callback_runs_at_the_end_and_no_step_is_marked():
    ready = []
    with marey.profile(on_trace_ready=ready.append) as prof:
        work()
        prof.step()
    assert ready == [prof]
    assert names(prof) == ["work"]


def test_the_work_of_a_step_is_inside_its_range():
    with marey.profile(schedule=marey.schedule(wait=0, warmup=1, active=1)) as prof:
        prof.step()
        work()
    (step,) = prof.tree()
    assert step.name == "ProfilerStep#1"
    assert [child.name for child in step.children] == ["work"]


def test_a_callback_that_fails_does_not_stop_the_cycles():
    def fail(prof):
        raise RuntimeError("disk full")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prof = marey.profile(schedule=marey.schedule(wait=0, warmup=0, active=1), on_trace_ready=fail)
    prof.start()
    with pytest.raises(RuntimeError, match="disk full"):
        prof.step()
    work("next")
    prof.on_trace_ready = None
    prof.stop()
    assert names(prof) == ["ProfilerStep#1", "next"]
    assert not marey.profiler.is_enabled()


def test_every_pair_of_actions_has_its_transition():
    actions = [N, W, R, S]
    assert all((before, after) in TRANSITIONS for before in actions for after in [*actions, None])


@pytest.mark.parametrize(
    ("actions", "warning"),
    [((W, N), "WARMUP followed by NONE"), ((R, N), "RECORD followed by NONE"), ((R, W), "RECORD")],
)
def test_incorrect_schedules_cause_a_warning_and_work(actions, warning):
    """Q23: after RECORD, WARMUP prepares again."""
    sequence = [*actions, R, S]
    prof = marey.profile(schedule=lambda step: sequence[min(step, 3)])
    prof.start()
    with pytest.warns(UserWarning, match=warning):
        prof.step()
    prof.step()
    work("kept")
    prof.stop()
    assert "kept" in names(prof)


def test_a_schedule_must_return_actions():
    prof = marey.profile(schedule=lambda step: R if step == 0 else "later")
    prof.start()
    with pytest.raises(ValueError, match="'later'"):
        prof.step()
    assert prof.step_num == 0
    prof.stop()


# ---- the device's recorder gives up (upstream: TestProfilerDeviceStopped)


class Stopping(marey.profile):
    """A profiler whose device stops when the test requests it."""

    has_stopped = False

    def _device_has_stopped(self):
        return self.has_stopped


def stopping(text, ready=None):
    actions = [{"N": N, "W": W, "R": R, "S": S}[letter] for letter in text]
    return Stopping(schedule=lambda step: actions[min(step, len(actions) - 1)], on_trace_ready=ready)


@pytest.mark.parametrize("first", ["W", "R"])
def test_a_device_that_stops_hands_its_trace_over_at_once(first):
    """upstream: test_enters_device_stopped_from_warmup, _from_record,
    test_warmup_to_device_stopped_fires_trace_ready"""
    ready = []
    prof = stopping(first + "RRSN", ready.append)
    prof.start()
    prof.has_stopped = True
    prof.step()
    assert prof.current_action is ProfilerAction.DEVICE_STOPPED
    assert len(ready) == 1
    prof.step()
    assert prof.current_action is ProfilerAction.DEVICE_STOPPED  # test_device_stopped_persists_through_cycle
    prof.step()
    prof.step()
    assert prof.current_action is N
    prof.stop()
    assert len(ready) == 1


def test_after_a_device_has_stopped_the_next_cycle_records():
    """upstream: test_device_stopped_recovers_without_warmup"""
    prof = stopping("RSRS")
    prof.start()
    prof.has_stopped = True
    prof.step()
    assert prof.current_action is ProfilerAction.DEVICE_STOPPED
    prof.has_stopped = False
    prof.step()
    assert prof.current_action is R
    work("again")
    prof.stop()
    assert "again" in names(prof)


def test_a_device_that_stops_at_the_end_of_a_cycle_changes_nothing():
    """upstream: test_does_not_enter_device_stopped_from_record_and_save"""
    prof = stopping("SR")
    prof.start()
    prof.has_stopped = True
    prof.step()
    assert prof.current_action is R
    prof.stop()


def test_it_can_be_started_again_after_the_device_has_stopped():
    """upstream: test_start_after_stop_in_device_stopped"""
    prof = stopping("RRS")
    prof.start()
    prof.has_stopped = True
    prof.step()
    prof.stop()
    prof.has_stopped = False
    prof.start()
    work("second")
    prof.stop()
    assert "second" in names(prof)


def test_a_schedule_must_not_return_device_stopped():
    """upstream: test_user_schedule_returning_device_stopped_raises_at_init, _at_step"""
    with pytest.raises(ValueError, match="DEVICE_STOPPED"):
        marey.profile(schedule=lambda step: ProfilerAction.DEVICE_STOPPED)
    prof = marey.profile(schedule=lambda step: R if step == 0 else ProfilerAction.DEVICE_STOPPED)
    with prof:
        with pytest.raises(ValueError, match="DEVICE_STOPPED"):
            prof.step()
        assert (prof.step_num, prof.current_action) == (0, R)


# ---- steps


def test_two_step_counters_count_once():
    """upstream: test_kineto_profiler_multiple_steppers"""
    tracker = marey.profiler.KinetoStepTracker
    before = tracker.current_step()
    tracker.init_step_count("yet another stepper")
    with marey.profile(schedule=marey.schedule(wait=1, warmup=1, active=2)) as prof:
        for _ in range(5):
            tracker.increment_step("yet another stepper")
            prof.step()
    assert tracker.current_step() - before == 5
    assert tracker.erase_step_count("yet another stepper")
    assert not tracker.erase_step_count("yet another stepper")


def test_an_increase_by_more_than_one_causes_a_warning():
    tracker = marey.profiler.KinetoStepTracker
    tracker.init_step_count("leaps")
    tracker._step_dict["leaps"] += 2
    with pytest.warns(UserWarning, match="increased by 3"):
        tracker.increment_step("leaps")
    tracker.erase_step_count("leaps")


def test_each_step_increase_is_a_mark_in_every_session():
    first, second = marey.profile(), marey.profile()
    with first, second:
        marey.profiler.KinetoStepTracker.increment_step("marks")
    marey.profiler.KinetoStepTracker.erase_step_count("marks")
    for prof in (first, second):
        csv = prof.trace.tables["instants"].to_csv()
        assert f"Step#{marey.profiler.KinetoStepTracker.current_step()}" in csv
