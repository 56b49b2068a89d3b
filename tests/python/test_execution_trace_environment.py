"""ExecutionTraceObserver: the folder next to its file, and the environment variable that requests one."""

import os
from pathlib import Path

import pytest
from execution_graphs import ROOT, nodes_of, run

from marey import ExecutionTraceObserver


@pytest.fixture
def observer(tmp_path):
    made = ExecutionTraceObserver().register_callback(tmp_path / "x.et.json")
    yield made
    made.unregister_callback()


def test_the_resources_folder_is_next_to_the_file(tmp_path):
    folder = ExecutionTraceObserver.get_resources_dir_for_et_path
    for name in ("x.json", "x.json.gz"):
        assert folder(str(tmp_path / "a" / name)) is None
    made = folder(tmp_path / "x.json.gz", create_dir=True)
    assert made == str(tmp_path / "x_resources") and os.path.isdir(made)
    assert folder(tmp_path / "x.json") == made
    (tmp_path / "file").write_text("")
    with pytest.warns(UserWarning, match="cannot create the folder"):
        assert folder(tmp_path / "file" / "x.json", create_dir=True) is None


def test_the_folder_is_created_only_if_enabled(observer):
    assert observer.get_resources_dir(can_create=True) is None
    observer.set_extra_resource_collection(True)
    folder = observer.get_resources_dir()
    assert folder is not None and os.path.isdir(folder)
    observer.set_extra_resource_collection(False)
    assert observer.get_resources_dir() is None


# ---- the environment

BUILD_FROM_ENVIRONMENT = """
from marey import ExecutionTraceObserver
observer = ExecutionTraceObserver.build_execution_trace_obs_from_env()
if observer is None:
    print(None)
else:
    print(observer.get_output_file_path(), observer.get_resources_dir(), observer.is_registered)
"""


@pytest.mark.parametrize(
    "variables",
    [{}, {"MAREY_EXECUTION_TRACE": "0"}, {"ENABLE_PYTORCH_EXECUTION_TRACE": "0"},
     {"MAREY_EXECUTION_TRACE": "0", "ENABLE_PYTORCH_EXECUTION_TRACE": "1"}],
)  # fmt: skip
def test_the_environment_requests_no_observer(variables):
    """upstream: test_execution_trace_env_disabled"""
    done = run(BUILD_FROM_ENVIRONMENT, **variables)
    assert (done.stdout, done.stderr) == ("None\n", "")


@pytest.mark.parametrize("prefix", ["MAREY_EXECUTION_TRACE", "ENABLE_PYTORCH_EXECUTION_TRACE"])
def test_the_environment_requests_an_observer_and_its_folder(tmp_path, prefix):
    """E4; upstream: test_execution_trace_env_enabled_with_kineto"""
    done = run(BUILD_FROM_ENVIRONMENT, **{prefix: "1", prefix + "_EXTRAS": "1", "TMPDIR": str(tmp_path)})
    path, folder, is_registered = done.stdout.split()
    assert Path(path).parent == tmp_path and path.endswith(".et.json")
    assert os.path.isdir(folder) and is_registered == "True"
    assert [node["name"] for node in nodes_of(path)] == [ROOT]


def test_the_environment_may_name_the_file(tmp_path):
    path = tmp_path / "named.json"
    done = run(BUILD_FROM_ENVIRONMENT, MAREY_EXECUTION_TRACE=str(path))
    assert done.stdout == f"{path} None True\n"
    done = run(BUILD_FROM_ENVIRONMENT, MAREY_EXECUTION_TRACE=str(tmp_path / "none" / "x.json"))
    assert done.returncode == 0 and done.stdout == "None\n"
    assert "cannot write an execution trace" in done.stderr
