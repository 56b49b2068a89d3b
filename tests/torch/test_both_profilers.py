"""Marey's profiler and PyTorch's in one program, mixed as programs mix them."""

import gc
import subprocess
import sys

import pytest
import torch
import torch.profiler
from torch.autograd import profiler as torch_profiler

import marey
from marey.torch import profile


def names(prof):
    return {event.name for event in prof.events()}


def test_stopping_pytorchs_profiler_that_could_not_start_is_an_error_and_no_crash(run_python):
    printed = run_python(
        """
import torch, torch.profiler, marey.torch
with marey.torch.profile(profile_memory=True) as prof:
    theirs = torch.profiler.profile(profile_memory=True)
    for call in (theirs.start, theirs.stop):
        try:
            call()
        except (RuntimeError, AssertionError) as error:
            print(type(error).__name__)
    torch.ones(3)
print("aten::ones" in {event.name for event in prof.events()})
if torch.__version__ < "2.13":  # there PyTorch's profiler never recovers, with nobody else about either
    print("True")
else:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
        torch.ones(3)
    print("aten::ones" in {event.name for event in theirs.events()})
"""
    )
    assert printed.split() == ["RuntimeError", "RuntimeError", "True", "True"]


def test_a_dropped_profiler_leaves_the_thread_to_pytorchs():
    dropped = profile(profile_memory=True)
    dropped.start()
    with pytest.warns(ResourceWarning):
        del dropped
        gc.collect()
    assert not torch_profiler._is_profiler_enabled
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
        torch.ones(1)
    assert "aten::ones" in names(theirs)


@pytest.mark.filterwarnings("ignore:a schedule without warm-up")
def test_schedules_and_actions_of_pytorch_are_taken():
    actions = torch.profiler.ProfilerAction
    for schedule in (
        torch.profiler.schedule(wait=1, warmup=1, active=1),
        lambda step: [actions.NONE, actions.WARMUP, actions.RECORD_AND_SAVE][step % 3],
    ):
        ready = []
        with profile(schedule=schedule, on_trace_ready=ready.append) as prof:
            for _ in range(3):
                torch.ones(1)
                prof.step()
        assert len(ready) == 1
    with pytest.raises(TypeError, match="schedule must be callable"):
        profile(schedule=3)


def test_the_flag_of_pytorchs_profiler_is_put_back_and_not_taken_down():
    torch_profiler._set_is_profiler_enabled(True)
    try:
        with profile():
            pass
        assert torch_profiler._is_profiler_enabled
    finally:
        torch_profiler._set_is_profiler_enabled(False)
    with profile():
        assert torch_profiler._is_profiler_enabled
    assert not torch_profiler._is_profiler_enabled


def test_what_marey_does_at_the_end_is_not_in_the_recording():
    with profile(with_stack=True) as prof:
        torch.ones(1)
    assert not [name for name in names(prof) if "_set_is_profiler_enabled" in name or "RemovableHandle" in name]


def test_a_compiler_may_have_words_around_it(run_python, tmp_path):
    wrapper = tmp_path / "wrapper"
    wrapper.write_text('#!/bin/sh\necho "$@" >> "$0.log"\nexec "$@"\n')
    wrapper.chmod(0o755)
    source = tmp_path / "empty.cpp"
    source.write_text("int marey_test_nothing() { return 0; }\n")
    program = "from marey.torch import _observer\n_observer.compile_library('empty.cpp', 'made.so')\n"
    run_python(program, env={"CXX": f"{wrapper} c++ -O1"})
    assert (tmp_path / "made.so").exists()
    assert (tmp_path / "wrapper.log").read_text().startswith("c++ -O1")


def test_without_a_compiler_nothing_is_said_to_be_compiled(run_python, tmp_path):
    env = {"CXX": "no-such-compiler", "XDG_CACHE_HOME": str(tmp_path)}
    program = """
import sys
import marey, marey.torch
sys.stderr = sys.stdout
try:
    marey.torch.load()
except marey.Error as error:
    print(error)
"""
    printed = run_python(program, env=env)
    assert "no-such-compiler (CXX) was not found" in printed
    assert "this once" not in printed


def test_a_size_of_the_world_that_is_no_number_means_no_rank(monkeypatch):
    from marey.torch import _ranks

    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "many")
    assert _ranks.rank() is None


def test_a_program_that_uses_pytorchs_profiler_runs_under_marey_run(tmp_path):
    (tmp_path / "program.py").write_text(
        """
import torch, torch.profiler
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as theirs:
    torch.ones(3).relu()
print(sum(event.name == "aten::relu" for event in theirs.events()))
"""
    )
    command = [sys.executable, "-m", "marey", "run", "--torch", "--no-calls", "-q", "-o", "run.marey", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.returncode) == ("1\n", 0), done.stderr
    trace = marey.load(tmp_path / "run.marey")
    assert [event.name for event in trace.events()].count("aten::relu") == 1
    assert trace.problems == []
