"""Behaviours that differ between PyTorch's versions are those of the installed one."""

import copy
import gzip
import json
import logging
import types
import warnings

import pytest
import torch
import torch.autograd.profiler
import torch.profiler

import marey
import marey.torch
from marey.torch import _graph_lanes, _versions, profile

Config = torch._C._profiler._ExperimentalConfig
BOTH = (profile, torch.profiler.profile)
BOTH_OLDER = (marey.torch.profiler.profile, torch.autograd.profiler.profile)
needs_activity_configs = pytest.mark.skipif(
    not hasattr(torch.profiler, "ProfilerActivityConfig"), reason="PyTorch 2.15 introduced it"
)


def outcome(action):
    """Return the error, or the deprecation warnings, of an action."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            action()
        except Exception as error:
            return type(error).__name__, str(error).split("(", 1)[-1] if isinstance(error, TypeError) else str(error)
    return [str(each.message) for each in seen if each.category is FutureWarning]


def option_names():
    """The options of PyTorch's class, from the signature in its documentation."""
    signature = Config.__init__.__doc__.splitlines()[0]
    return {name: kind for name, kind in _pairs(signature) if name != "self"}


def _pairs(signature):
    import re

    return re.findall(r"(\w+): ([\w.]+)", signature)


def test_every_experimental_option_is_read_by_its_name():
    names = option_names()
    assert len(names) >= 12
    for name, kind in names.items():
        value = {"bool": True, "str": "text"}.get(kind, ["text"])
        own = _versions.to_marey_config(Config(**{name: value}))
        assert getattr(own, name) == value, name
        others = [other for other in own._types if other != name and getattr(own, other)]
        assert others == [], name


@pytest.mark.parametrize("options", [{}, {"verbose": True}, {"profile_all_threads": True}])
def test_pytorchs_experimental_options_are_accepted(options):
    with profile(experimental_config=Config(**options)) as prof:
        torch.ones(2)
    assert "aten::ones" in {event.name for event in prof.events()}


def test_an_unknown_experimental_option_is_ignored_and_logged(monkeypatch, caplog):
    known = _versions._option_positions()
    fewer = {name: place for name, place in known.items() if name != "verbose"}
    monkeypatch.setattr(_versions, "_option_positions", lambda: fewer)
    with caplog.at_level(logging.WARNING, "marey.torch"):
        assert _versions.to_marey_config(Config()).verbose is False
        assert caplog.messages == []
        assert _versions.to_marey_config(Config(verbose=True)).verbose is False
    (message,) = caplog.messages
    assert f"option {known['verbose']} of _ExperimentalConfig (True)" in message


def test_the_programs_own_options_are_not_changed():
    config = marey.torch._ExperimentalConfig(trace_only=True, adjust_profiler_step=True)
    before = copy.copy(config)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        profile(with_stack=True, experimental_config=config)
    assert config == before


def work():
    return torch.ones(2) + 1


@pytest.mark.parametrize("kinds", [BOTH, BOTH_OLDER])
def test_averages_include_python_functions_as_in_pytorch(kinds):
    counts, times = [], []
    for kind in kinds:
        with kind(with_stack=True) as prof:
            work()
        averages = prof.key_averages()
        counts.append(sum("work" in row.key for row in averages))
        times.append((averages.self_cpu_time_total, sum(row.self_cpu_time_total for row in averages)))
        if _versions.VERSION >= (2, 14):
            everything = prof.key_averages(include_python_functions=True)
            assert any("work" in row.key for row in everything)
            events = prof.events() if hasattr(prof, "events") else prof.function_events
            assert any("work" in row.key for row in events.key_averages(False, 0, False, True))
    assert counts[0] == counts[1]
    assert times[0][0] == pytest.approx(times[0][1])  # the sum below a table is that of its rows


def test_changed_events_are_averaged_with_the_same_default():
    with profile(with_stack=True) as prof:
        work()
    events = prof.events()
    events[0].name = "changed"
    found = any("work" in row.key for row in events.key_averages())
    assert found == any("work" in row.key for row in prof.key_averages()) == _versions.AVERAGES_INCLUDE_CALLS


def test_marey_profile_includes_python_functions_in_every_version():
    with marey.profile(with_stack=True) as prof:
        work()
    assert any("work" in row.key for row in prof.key_averages())
    assert not any("work" in row.key for row in prof.key_averages(include_python_functions=False))


@pytest.mark.parametrize(
    "options",
    [
        {"with_modules": True},
        {"use_cuda": False},
        {"experimental_config": {"adjust_profiler_step": True}},
        {"experimental_config": {"profiler_metrics": ["x"]}},
    ],
    ids=str,
)
def test_removed_and_deprecated_options_behave_as_in_pytorch(options):
    def run(kind):
        given = dict(options)
        if "experimental_config" in given:
            given["experimental_config"] = Config(**given["experimental_config"])
        with kind(use_kineto=True, **given):
            pass

    ours, theirs = (outcome(lambda kind=kind: run(kind)) for kind in BOTH_OLDER)
    assert ours == theirs


@pytest.mark.parametrize("name", ["load_nvprof", "parse_nvprof_trace", "EnforceUnique"])
def test_deprecated_names_warn_as_in_pytorch(name, tmp_path):
    def use(module):
        arguments = [] if name == "EnforceUnique" else [str(tmp_path / "missing.nvprof")]
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                getattr(module, name)(*arguments)
            except Exception:
                pass  # there is no such file
        return [str(each.message) for each in seen if each.category is FutureWarning]

    assert use(marey.torch.profiler) == use(torch.autograd.profiler)


@pytest.mark.parametrize("name", ["metadata_json", "event_metadata", "metadata"])
def test_events_have_the_attributes_of_pytorchs(name):
    answers = []
    for kind in BOTH:
        with kind() as prof:
            torch.ones(2)
        event = next(event for event in prof.events() if event.name == "aten::ones")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exists = hasattr(event, name)
        answers.append((exists, outcome(lambda event=event: getattr(event, name, None))))
    since = {"metadata_json": (2, 11), "event_metadata": (2, 12), "metadata": (2, 14)}
    assert answers[0] == answers[1] or _versions.VERSION < since[name]  # Marey has it with older versions too


def test_an_event_made_by_hand_keeps_its_metadata():
    event = marey.torch.profiler.FunctionEvent(1, "kernel", 1, 0, 1, typed_metadata={"stream": 7})
    assert event.metadata == {"stream": 7}


@needs_activity_configs
def test_activities_can_be_configured_as_in_pytorch():
    activity = torch.profiler.ProfilerActivity.CPU
    kinds = marey.torch.ProfilerActivityConfig
    for given in (["USER_ANNOTATION"], kinds(activity_types=["USER_ANNOTATION"]), kinds()):
        configs = []
        for kind in BOTH:
            with kind(activities=[{activity: given}]) as prof, torch.profiler.record_function("mine"):
                torch.ones(2)
            configs.append(prof.activity_configs)
            if kind is profile:
                names = {event.name for event in prof.events()}
        assert configs[0] == configs[1]
        assert "mine" in names
        assert ("aten::ones" in names) == (getattr(given, "activity_types", given) is None)


@needs_activity_configs
def test_performance_metrics_are_logged_as_not_supported(caplog):
    config = marey.torch.ProfilerActivityConfig(
        profiler_configs=[marey.torch.PerformanceMetricsConfig(metric_names=["sm__cycles_active.avg"])]
    )
    with caplog.at_level(logging.WARNING, "marey.torch"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there is no GPU
        profile(activities=[torch.profiler.ProfilerActivity.CPU, {torch.profiler.ProfilerActivity.CUDA: config}])
    assert caplog.messages == ["ignored, since Marey does not support them: PerformanceMetricsConfig.metric_names"]


def second_recorder_configs():
    name = _versions.SECOND_RECORDER[0]
    return {"text": name, "json": json.dumps({"backend": name}), "flag": json.dumps({name: True})}


@pytest.mark.skipif(not _versions.HAS_SECOND_RECORDER, reason="PyTorch 2.13 introduced it")
@pytest.mark.parametrize("form", second_recorder_configs())
def test_the_second_recorder_needs_the_cpu_as_in_pytorch(form):
    config = Config(custom_profiler_config=second_recorder_configs()[form])
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there is no GPU
        ours, theirs = (outcome(lambda k=k: k(activities=activities, experimental_config=config)) for k in BOTH)
    assert ours == theirs
    assert ours[0] == "ValueError"


@pytest.mark.skipif(_versions.VERSION < (2, 14), reason="PyTorch 2.14 introduced it")
def test_deferred_exports_need_the_second_recorder_as_in_pytorch():
    config = Config(custom_profiler_config=json.dumps({f"{_versions.SECOND_RECORDER[0]}_async_export": True}))
    ours, theirs = (outcome(lambda k=k: k(experimental_config=config)) for k in BOTH)
    assert ours[0] == theirs[0] == "ValueError"
    assert ours[1].split()[0] == theirs[1].split()[0]


@pytest.mark.skipif(_versions.VERSION < (2, 14), reason="PyTorch 2.14 introduced it")
def test_with_the_second_recorder_files_are_compressed_and_may_be_perfettos(tmp_path):
    config = Config(custom_profiler_config=_versions.SECOND_RECORDER[0])
    with profile(activities=[torch.profiler.ProfilerActivity.CPU], experimental_config=config) as prof:
        torch.ones(2)
    prof.export_chrome_trace(str(tmp_path / "a.json"))
    prof.export_chrome_trace(tmp_path / "b.pftrace")
    prof.wait_for_exports()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json.gz", "b.pftrace.gz"]
    assert b'"traceEvents"' in gzip.decompress((tmp_path / "a.json.gz").read_bytes())
    for path in tmp_path.iterdir():
        assert "aten::ones" in {row.key for row in marey.load(path).key_averages()}


def test_metadata_of_an_export_is_only_in_that_file(tmp_path):
    with marey.torch.profiler.profile() as prof:
        torch.ones(2)
    prof.export_chrome_trace(str(tmp_path / "with.json"), {"job": '{"id": 7}'})
    prof.export_chrome_trace(str(tmp_path / "without.json"))
    assert json.loads((tmp_path / "with.json").read_text())["job"] == {"id": 7}
    assert "job" not in json.loads((tmp_path / "without.json").read_text())


def test_invalid_lanes_are_refused():
    with profile() as prof:
        torch.ones(2)
    for lanes, text in (("some", "must be 'all' or 'none'"), ("all", "needs cuda_graph_annotations")):
        with pytest.raises(ValueError, match=text):
            prof.export_chrome_trace("never_written.json", graph_lanes=lanes)


class _Activity:
    """An activity with the methods that PyTorch's exporter calls."""

    def __init__(self, kind, name, stream, start, node=0):
        self.fields = {"type": kind, "name": name, "resource_id": stream, "timestamp": start, "duration": 10}
        self.fields |= {"device_id": 0, "linked_correlation_id": 0, "correlation_id": 0, "flow_id": 0}
        self.fields["metadata_json"] = f'"stream": {stream}' + (f', "graph node id": {node}' if node else "")

    def __getattr__(self, name):
        value = self.fields.get(name)
        return lambda: value


ACTIVITIES = [
    _Activity("kernel", "first", 20, 1000, node=5),
    _Activity("kernel", "second", 21, 2000, node=6),
    _Activity("gpu_memcpy", "third", 22, 3000, node=7),
    _Activity("kernel", "plain", 7, 4000),
    _Activity("gpu_user_annotation", "around", 20, 1000),
    _Activity("gpu_user_annotation", "around", 7, 1000),
]
ANNOTATIONS = {
    5: {"name": "phase A", "stream": 90, "Process Group Description": "ring"},
    6: [{"name": "phase B"}, {"dtype": "bf16"}],
}


@pytest.mark.skipif(_versions.VERSION < (2, 15), reason="PyTorch 2.15 introduced it")
@pytest.mark.parametrize("lanes", ["none", "all"])
def test_graph_annotations_are_written_as_by_pytorch(lanes, tmp_path):
    from torch.profiler._chrome_trace_export import export_chrome_trace

    result = types.SimpleNamespace(trace_activities=lambda: ACTIVITIES)
    export_chrome_trace(result, str(tmp_path / "theirs.json"), None, ANNOTATIONS, lanes)
    export_chrome_trace(result, str(tmp_path / "ours.json.gz"))
    _graph_lanes.annotate(str(tmp_path / "ours.json.gz"), ANNOTATIONS, lanes == "all", 7)
    theirs = json.loads((tmp_path / "theirs.json").read_text())
    ours = json.loads(gzip.decompress((tmp_path / "ours.json.gz").read_bytes()))
    assert ours["cudaGraphInlineAnnotated"] == theirs["cudaGraphInlineAnnotated"] is True

    def events(trace):
        kept = [event for event in trace["traceEvents"] if event["ph"] == "X" or event["name"] == "thread_name"]
        for event in kept:
            if event["ph"] == "M":
                event.pop("ts")
        return sorted(json.dumps(event, sort_keys=True) for event in kept)

    assert events(ours) == events(theirs)
