"""Marey's profiler and PyTorch's in the same program."""

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


def test_stopping_a_pytorch_profiler_that_failed_to_start_raises_and_does_not_crash(run_python):
    printed = run_python(
        """
import torch, torch.profiler, marey.torch
with marey.torch.profile(profile_memory=True) as prof:
    upstream = torch.profiler.profile(profile_memory=True)
    for call in (upstream.start, upstream.stop):
        try:
            call()
        except (RuntimeError, AssertionError) as error:
            print(type(error).__name__)
    torch.ones(3)
print("aten::ones" in {event.name for event in prof.events()})
if torch.__version__ < "2.13":  # older PyTorch profilers never recover, even without Marey
    print("True")
else:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as upstream:
        torch.ones(3)
    print("aten::ones" in {event.name for event in upstream.events()})
"""
    )
    assert printed.split() == ["RuntimeError", "RuntimeError", "True", "True"]


def test_pytorchs_profiler_works_after_a_running_marey_profiler_is_deleted():
    dropped = profile(profile_memory=True)
    dropped.start()
    with pytest.warns(ResourceWarning):
        del dropped
        gc.collect()
    assert not torch_profiler._is_profiler_enabled
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as upstream:
        torch.ones(1)
    assert "aten::ones" in names(upstream)


@pytest.mark.filterwarnings("ignore:a schedule without warm-up")
def test_pytorch_schedules_and_actions_are_accepted():
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


def test_pytorchs_profiler_enabled_flag_is_restored():
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


def test_work_done_by_marey_while_stopping_is_not_recorded():
    with profile(with_stack=True) as prof:
        torch.ones(1)
    assert not [name for name in names(prof) if "_set_is_profiler_enabled" in name or "RemovableHandle" in name]


def test_cxx_may_contain_a_wrapper_and_options(run_python, tmp_path):
    wrapper = tmp_path / "wrapper"
    wrapper.write_text('#!/bin/sh\necho "$@" >> "$0.log"\nexec "$@"\n')
    wrapper.chmod(0o755)
    source = tmp_path / "empty.cpp"
    source.write_text("int marey_test_nothing() { return 0; }\n")
    program = "from marey.torch import _observer\n_observer.compile_library('empty.cpp', 'made.so')\n"
    run_python(program, env={"CXX": f"{wrapper} c++ -O1"})
    assert (tmp_path / "made.so").exists()
    assert (tmp_path / "wrapper.log").read_text().startswith("c++ -O1")


def test_without_a_compiler_no_compile_notice_is_printed(run_python, tmp_path):
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


def test_an_observer_in_the_package_needs_no_compiler(run_python, tmp_path):
    program = """
import os, shutil
import marey
from marey.torch import _observer
built = _observer.build()
shipped = os.path.join("wheel", "torch", "observers", built.split(os.sep)[-3], "observer.so")
os.makedirs(os.path.dirname(shipped))
shutil.copy(built, shipped)
marey.__path__.append("wheel")
os.environ |= {"CXX": "no-such-compiler", "XDG_CACHE_HOME": os.path.abspath("empty")}
assert _observer.build() == _observer.find_built() == shipped
marey.torch.load()
assert not os.path.exists("empty")
print("loaded")
"""
    assert "loaded" in run_python(program)


def test_a_non_numeric_world_size_means_no_rank(monkeypatch):
    from marey.torch import _ranks

    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "many")
    assert _ranks.rank() == -1


def test_a_program_that_uses_pytorchs_profiler_runs_under_marey_run(tmp_path):
    (tmp_path / "program.py").write_text(
        """
import torch, torch.profiler
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as upstream:
    torch.ones(3).relu()
print(sum(event.name == "aten::relu" for event in upstream.events()))
"""
    )
    command = [sys.executable, "-m", "marey", "run", "--torch", "--no-calls", "-q", "-o", "run.marey", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.returncode) == ("1\n", 0), done.stderr
    trace = marey.load(tmp_path / "run.marey")
    assert [event.name for event in trace.events()].count("aten::relu") == 1
    assert trace.problems == []
