"""The commands show each import as one range, and leave out the ranges that the user excludes."""

import json
import re
import subprocess
import sys

import pytest
from running import environment, recorded, report

import marey


def output(verb, capture, *options):
    command = [sys.executable, "-m", "marey", verb, *options, str(capture)]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A program that imports a package, and its summary."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop").mkdir()
    (folder / "shop" / "__init__.py").write_text("import shop.load\n")
    (folder / "shop" / "load.py").write_text("def f(): pass\nf()\nimport _testcapi\n")
    (folder / "x.py").write_text(
        "from shop import load\ntry:\n    import shop.missing\nexcept ImportError:\n    pass\n"
    )
    _, errors, code = recorded(["x.py"], folder, run_options=["-o", "x.marey"])
    assert code == 0
    return folder / "x.marey", errors


def names(capture, *options):
    return {row[0] for row in report(capture, "--csv", "--columns", "name,count", *options)}


def test_the_summary_adds_up_imports_and_has_no_frames_of_importlib(shop):
    _, summary = shop
    assert "<frozen importlib" not in summary and "import shop" in summary
    assert re.search(r"\nimports   [0-9.]+ \w+ of [0-9.]+ \w+ \(", summary)


def test_each_import_is_one_row(shop):
    capture, _ = shop
    found = names(capture)
    assert {"import shop", "import shop.load", "shop/load.py(1): f", "x.py(1): <module>"} <= found
    assert not [name for name in found if "importlib._bootstrap" in name or name.startswith("shop/__init__.py")]
    assert {"import shop.missing", "import _testcapi"} <= found
    assert not [name for name in found if name.startswith("import (")]


@pytest.mark.parametrize("option", ["--max-depth=3", "--fold-libraries", "--c-calls", "--exclude=shop"])
def test_an_import_keeps_its_name_if_the_code_of_the_module_is_filtered_out(shop, tmp_path, option):
    recorded(["x.py"], shop[0].parent, run_options=["-q", "-o", str(tmp_path / "y.marey"), option])
    found = names(tmp_path / "y.marey")
    assert "import shop" in found and not [name for name in found if name.startswith("import (")]


def test_recording_that_starts_inside_of_an_import_has_its_name(tmp_path, run_python):
    (tmp_path / "late.py").write_text("import marey\nsession = marey.Session()\nsession.start(with_stack=True)\n")
    program = "import late\ntrace = late.session.stop().filtered(fold_imports=True)\n"
    found = run_python(program + "print(*(event.name for event in trace.events()), sep='\\n')")
    assert "import late" in found.splitlines()


def test_the_frames_of_importlib_can_be_shown(shop):
    capture, _ = shop
    whole = names(capture, "--show-importlib")
    assert any(name.endswith("): _find_and_load") for name in whole)
    assert "shop/load.py(1): <module>" in whole and "import shop" not in whole
    for verb, *limits in (["report", "--limit=0"], ["tree", "--limit=0", "--min-share=0"], ["stacks"]):
        assert "_find_and_load" not in output(verb, capture, *limits)
        assert "_find_and_load" in output(verb, capture, *limits, "--show-importlib")


def test_an_import_is_inside_the_import_that_needs_it(shop):
    capture, _ = shop
    tree = output("tree", capture, "--min-share=0", "--limit=0").splitlines()
    lines = [line for line in tree if " import shop" in line]
    indents = [line.index("import shop") for line in lines]
    assert lines[0].endswith("import shop") and lines[1].endswith("import shop.load") and indents[1] == indents[0] + 2


def test_facts_about_the_recording_are_about_all_of_it(shop):
    capture, _ = shop
    for verb in ("report", "tree"):
        facts = [output(verb, capture, *options) for options in ([], ["--show-importlib"], ["--exclude=*"])]
        assert len({re.search("\nevents .*", text)[0] for text in facts}) == 1
        assert len({re.search("\noverhead .*", text)[0] for text in facts}) == 1
        assert ["\nimports " in text for text in facts] == [True, False, False]


def test_exports_show_imports_as_the_reports_do(shop):
    capture, _ = shop
    events = json.loads(output("export", capture, "--to=chrome", "-o", "-"))["traceEvents"]
    found = {event["name"] for event in events}
    assert "import shop.load" in found and not [name for name in found if "importlib._bootstrap" in name]


def test_a_copy_of_a_capture_keeps_the_frames_of_importlib(shop, tmp_path):
    output("export", shop[0], "-o", str(tmp_path / "copy.marey"))
    assert len(marey.load(tmp_path / "copy.marey")) == len(marey.load(shop[0]))


def test_ranges_can_be_excluded_from_every_report(tmp_path):
    (tmp_path / "x.py").write_text("def a(): b()\ndef b(): c()\ndef c(): pass\na()\n")
    recorded(["x.py"], tmp_path, run_options=["-q", "-o", "x.marey"])
    capture = str(tmp_path / "x.marey")
    assert "x.py(1):_a;x.py(3):_c" in output("stacks", capture, "--exclude", "b")
    for verb in ("report", "tree", "stacks"):
        text = output(verb, capture, "--exclude", "b", "--exclude=*(3): c").replace(":_", ": ")
        assert ": a" in text and ": b" not in text and ": c" not in text, verb
    events = json.loads(output("export", capture, "--exclude", "*/x.py", "--to=chrome", "-o", "-"))["traceEvents"]
    assert not [event for event in events if "x.py" in event["name"]]


def test_a_loaded_trace_is_whole_and_can_be_filtered(shop):
    trace = marey.load(shop[0])
    before = len(trace)
    found = {event.name for event in trace.events()}
    assert any("importlib._bootstrap" in name for name in found) and "import shop" not in found
    folded = trace.filtered(fold_imports=True)
    assert "import shop" in {event.name for event in folded.events()}
    assert "import shop" not in {event.name for event in trace.filtered("import *", fold_imports=True).events()}
    assert len(folded) < len(trace) == before
    assert len(trace.filtered(exclude=["*"])) == 0
