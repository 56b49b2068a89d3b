"""Programs written for torch.profiler run with Marey."""

import json
import os
import socket

import pytest
import torch
import torch.autograd.profiler
import torch.profiler

import marey
import marey.torch
from marey.torch import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler


def step_of(model, optimizer):
    optimizer.zero_grad()
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()


@pytest.fixture
def training():
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    return lambda: step_of(model, optimizer)


def test_every_name_of_both_modules_exists():
    """upstream: __all__ of torch.profiler and torch.autograd.profiler"""
    assert [name for name in torch.profiler.__all__ if not hasattr(marey.torch, name)] == []
    assert [name for name in torch.autograd.profiler.__all__ if not hasattr(marey.torch.profiler, name)] == []
    for name in ("_KinetoProfile", "_ExperimentalConfig", "RecordScope", "KinetoStepTracker", "itt"):
        assert hasattr(marey.torch, name), name


def test_every_keyword_of_both_profilers_is_accepted():
    import inspect

    actual = {*inspect.signature(marey.profile).parameters, *inspect.signature(profile).parameters}
    for upstream in (torch.profiler.profile, torch.autograd.profiler.profile):
        assert set(inspect.signature(upstream).parameters) - actual == set()


def test_a_scheduled_training_loop_delivers_each_cycle(tmp_path, training):
    """upstream: test_kineto_profiler_api, test_tensorboard_trace_handler"""
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
        on_trace_ready=tensorboard_trace_handler(str(tmp_path)),
        record_shapes=True,
    ) as prof:
        for _ in range(8):
            with record_function("batch"):
                training()
            prof.step()
    files = sorted(tmp_path.glob("*.pt.trace.json"))
    assert len(files) == 2
    names = [row["name"] for row in json.loads(files[0].read_text())["traceEvents"] if "name" in row]
    assert names.count("batch") == 2 and names.count("Optimizer.step#Adam.step") == 2
    assert {"ProfilerStep#2", "ProfilerStep#3"} <= set(names)
    assert "AddmmBackward0" in names


def test_pytorch_enumerations_and_options_are_accepted():
    config = torch._C._profiler._ExperimentalConfig(capture_overload_names=True)
    with profile(activities=[torch.profiler.ProfilerActivity.CPU], experimental_config=config) as prof:
        torch.ones(2).fill_(1)
    assert "Scalar" in {event.overload_name for event in prof.events()}
    filters = {torch.profiler.ProfilerActivity.CPU: ["USER_ANNOTATION"]}
    with profile(activities=[filters]) as prof, torch.profiler.record_function("only"):
        torch.ones(2)
    assert [event.name for event in prof.events()] == ["only"]
    with pytest.raises(TypeError):
        profile(activities=["CPU"])


def test_requesting_an_unavailable_device_is_harmless():
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
        torch.ones(1)
    assert "aten::ones" in {event.name for event in prof.events()}


def test_the_older_profiler_works_as_before(training):
    """upstream: test_profiler (test_autograd)"""
    with marey.torch.profiler.profile(record_shapes=True, profile_memory=True, use_kineto=True) as prof:
        assert torch.autograd._profiler_enabled()
        training()
    assert not torch.autograd._profiler_enabled()
    assert "aten::addmm" in prof.key_averages(group_by_input_shape=True).table(sort_by="cpu_time_total", row_limit=-1)
    assert prof.total_average().count > 10 and prof.self_cpu_time_total > 0


def test_pytorch_reports_that_a_profiler_is_enabled():
    """upstream: test_is_profiler_enabled"""
    flag = lambda: torch.autograd.profiler._is_profiler_enabled
    assert not flag()
    with profile():
        assert flag()
        with profile():
            assert flag()
        assert flag()
    assert not flag()
    assert torch._C._autograd._profiler_type() == torch._C._profiler.ActiveProfilerType.NONE


def test_pytorchs_own_profiler_works_after_marey():
    for options in ({}, {"profile_memory": True}):
        with profile(**options):
            torch.ones(1)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options) as upstream:
            torch.ones(1)
        assert "aten::ones" in {event.name for event in upstream.events()}


def test_inside_pytorchs_own_profiler_only_memory_is_missing_and_a_problem_is_reported():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as upstream:
        with profile(profile_memory=True) as prof:
            torch.ones(1)
    assert "aten::ones" in {event.name for event in upstream.events()}
    assert "aten::ones" in {event.name for event in prof.events()}
    codes = {code for code, _, _ in prof.trace.problems}
    assert codes - {"device_not_recorded"} == {"torch_memory_missing"}  # PyTorch's profiler does not share the GPU


def test_patching_is_undone_completely():
    names = ("profile", "schedule", "tensorboard_trace_handler", "_KinetoProfile", "ExecutionTraceObserver")
    before = [getattr(torch.profiler, name) for name in names] + [torch.autograd.profiler.profile]
    marey.torch.patch()
    try:
        marey.torch.patch()
        assert torch.profiler.profile is profile
        assert torch.autograd.profiler.profile is marey.torch.profiler.profile
        with torch.profiler.profile(schedule=torch.profiler.schedule(wait=0, warmup=0, active=1)) as prof:
            torch.ones(1)
            prof.step()
        assert isinstance(prof, marey.profile)
    finally:
        marey.torch.unpatch()
    assert [getattr(torch.profiler, name) for name in names] + [torch.autograd.profiler.profile] == before
    marey.torch.unpatch()


def test_unpatching_keeps_replacements_made_by_other_code(monkeypatch):
    marey.torch.patch()
    monkeypatch.setattr(torch.profiler, "profile", "replaced")
    marey.torch.unpatch()
    assert torch.profiler.profile == "replaced"
    monkeypatch.undo()
    torch.profiler.profile = torch.profiler.profiler.profile


def test_optimizer_and_profiler_steps_are_not_counted_twice(training):
    """upstream: test_kineto_profiler_multiple_steppers, test_kineto_profiler_with_environment_variable"""
    start = marey.profiler.KinetoStepTracker.current_step()
    with profile():
        for _ in range(3):
            training()
    assert marey.profiler.KinetoStepTracker.current_step() == start + 3
    with profile(schedule=schedule(wait=0, warmup=0, active=9)) as prof:
        for _ in range(4):
            training()
            prof.step()
    assert marey.profiler.KinetoStepTracker.current_step() == start + 7
    training()
    assert marey.profiler.KinetoStepTracker.current_step() == start + 7
    assert "marey.torch" not in marey.profiler.KinetoStepTracker._step_dict


def test_optimizer_steps_are_counted_once_beside_pytorchs_own_hook(run_python):
    """upstream: test_kineto_profiler_with_environment_variable"""
    out = run_python(
        "import torch, marey.torch\n"
        "marey.torch.patch()\n"
        "from torch.autograd.profiler import KinetoStepTracker\n"
        "model = torch.nn.Linear(3, 2)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "def train(prof=None):\n"
        "    for _ in range(8):\n"
        "        optimizer.step()\n"
        "        if prof: prof.step()\n"
        "train()\n"
        "print(KinetoStepTracker.current_step())\n"
        "with torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=2)) as prof:\n"
        "    train(prof)\n"
        "print(KinetoStepTracker.current_step(), KinetoStepTracker._step_dict)\n",
        env={"KINETO_USE_DAEMON": "1"},
    )
    assert out.splitlines() == ["8", "16 {'Optimizer': 16}"]


def test_ending_a_range_on_a_pytorch_future_returns_a_future():
    """upstream: test_record_function_callbacks"""
    future = torch.futures.Future()
    with profile() as prof:
        with record_function("waits") as range_:
            result = range_._call_end_callbacks_on_future(future)
        future.set_result(3)
        assert isinstance(result, torch.futures.Future) and result.wait() == 3
    assert [event.name for event in prof.events()].count("waits") == 1

    failing = torch.futures.Future()
    with record_function("fails") as range_:
        result = range_._call_end_callbacks_on_future(failing)
    failing.set_exception(ValueError("no"))
    with pytest.raises(ValueError):
        result.wait()


def test_a_capture_survives_an_abrupt_exit(run_python, tmp_path):
    run_python(
        "import os, torch\n"
        "from marey.torch import profile\n"
        "prof = profile(output='killed.marey', record_shapes=True)\n"
        "prof.start()\n"
        "torch.ones(2, 3) + 1\n"
        "os._exit(0)\n"
    )
    trace = marey.load(str(tmp_path / "killed.marey"))
    assert "aten::add" in {row.key for row in trace.key_averages()}


def test_marey_run_records_an_unmodified_program_and_its_workers(run_python, tmp_path):
    """Worker processes are recorded too, which PyTorch's profiler does not do."""
    program = tmp_path / "plain.py"
    program.write_text(
        "import torch\n"
        "class Numbers(torch.utils.data.Dataset):\n"
        "    def __len__(self): return 4\n"
        "    def __getitem__(self, i): return torch.full((2,), float(i))\n"
        "if __name__ == '__main__':\n"
        "    with torch.profiler.record_function('work'):\n"
        "        torch.ones(2, 3) @ torch.ones(3, 2)\n"
        "    print(sum(batch.sum().item() for batch in torch.utils.data.DataLoader(Numbers(), 2, num_workers=2)))\n"
        "    print(torch.autograd.profiler._is_profiler_enabled)\n"
    )
    out = run_python(
        "import subprocess, sys\n"
        "command = [sys.executable, '-m', 'marey', 'run', '--torch', '--shapes', '-q', '-o', 'plain.marey']\n"
        f"command.append({str(program)!r})\n"
        "done = subprocess.run(command, check=True, capture_output=True, text=True)\n"
        "print(done.stdout, done.stderr)\n"
    )
    assert out.split() == ["12.0", "True"]  # PyTorch prints no warning at exit
    assert [path.name for path in tmp_path.glob("*.marey")] == ["plain.marey"]
    trace = marey.load(str(tmp_path / "plain.marey"))
    rows = {row.key: row for row in trace.key_averages()}
    assert {"work", "aten::mm"} <= rows.keys() and any("plain.py" in name for name in rows)
    assert len(trace.info()["processes"]) == 3
    assert rows["aten::full"].count == 4  # in the workers


def test_a_missing_compiler_is_reported_clearly(run_python, tmp_path):
    out = run_python(
        "import marey\n"
        "from marey.torch import profile\n"
        "try:\n"
        "    with profile():\n"
        "        pass\n"
        "except marey.Error as error:\n"
        "    print(error)\n",
        env={"XDG_CACHE_HOME": str(tmp_path), "CXX": "no-such-compiler"},
    )
    assert "needs a C++ compiler" in out and "no-such-compiler (CXX) was not found" in out


def test_compiler_output_is_kept(run_python, tmp_path):
    compiler = tmp_path / "compiler"
    compiler.write_text("#!/bin/sh\necho 'x.cpp:1: error: it is Tuesday' >&2\nexit 1\n")
    compiler.chmod(0o755)
    out = run_python(
        "import marey, marey.torch\n"
        "try:\n"
        "    marey.torch.build()\n"
        "except marey.Error as error:\n"
        "    print(error)\n",
        env={"XDG_CACHE_HOME": str(tmp_path), "CXX": str(compiler)},
    )
    assert "it is Tuesday" in out
    (log,) = tmp_path.glob("marey/torch/*/*/compiler.log")
    assert "it is Tuesday" in log.read_text() and log.read_text().startswith(str(compiler))


def test_the_observer_is_compiled_once_and_named_after_the_pytorch_version():
    path = marey.torch.build()
    assert torch.__version__.partition("+")[0] in path
    stamp = os.stat(path).st_mtime_ns
    assert marey.torch.build() == path and os.stat(path).st_mtime_ns == stamp


def test_importing_records_nothing_and_registers_nothing(run_python):
    out = run_python(
        "import torch, marey.torch\n"
        "from marey._marey import torch as native\n"
        "print(native.is_loaded(), torch.autograd._profiler_enabled())\n"
    )
    assert out.split() == ["False", "False"]


def test_an_empty_activity_list_behaves_as_in_the_installed_pytorch():
    def outcome(kind):
        try:
            with kind(activities=[]):
                pass
        except AssertionError as error:
            return str(error)
        return None

    assert outcome(profile) == outcome(torch.profiler.profile)


def test_a_trace_has_pytorchs_top_level_keys(tmp_path):
    """K8"""
    tops = []
    for kind in (profile, torch.profiler.profile):
        with kind(record_shapes=True) as prof:
            torch.ones(2)
        path = tmp_path / f"{kind.__module__}.json"
        prof.export_chrome_trace(str(path))
        tops.append(json.loads(path.read_text()))
        assert tops[-1]["traceName"] == str(path)
    actual, upstream = tops
    assert set(upstream) - {"ERROR"} <= set(actual)  # written by CUDA builds without a GPU
    assert actual["host_name"] == upstream.get("host_name", socket.gethostname())  # PyTorch before 2.13 has none
