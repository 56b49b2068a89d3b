"""The names of calls: file, line and qualified name; module and qualified name of C functions."""

import collections
import datetime
import functools
import importlib
import math
import operator
import os
import subprocess
import sys
import zipfile

import call_trees
import pytest

import marey

LATER = sys.version_info >= (3, 12)


def names_of(program, **options):
    """The names of the calls that a program makes to its own functions."""
    with marey.profile(with_stack=True, **options) as prof:
        program()
    rows = call_trees.rows(prof)
    wanted = f"): {program.__code__.co_qualname}"
    inside, found = set(), []
    for index, row in enumerate(rows):
        if row["parent"] in inside:
            inside.add(index)
            found.append(row["name"])
        elif row["name"].endswith(wanted):
            inside.add(index)
    return found


def made(source, file, name="work", **changes):
    """A function of that name, from a source whose file is called so."""
    scope = {}
    exec(compile(source, file, "exec"), scope)
    function = scope[name]
    if changes:
        function.__code__ = function.__code__.replace(**changes)
    return function


def name_of(function):
    def program():
        function()

    (name,) = names_of(program, c_calls=False)
    return name


# ---- files


@pytest.fixture
def import_path(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    return sys.path


@pytest.mark.parametrize("ending", ["", "/", "//"])
def test_the_longest_import_prefix_is_stripped(import_path, tmp_path, ending):
    """P28: prefixes are read from sys.path each time; the longest one counts."""
    work = lambda: made("def work(): pass", f"{tmp_path}/outer/inner/module.py")
    import_path.append(str(tmp_path) + ending)
    assert name_of(work()) == "outer/inner/module.py(1): work"
    import_path.insert(0, f"{tmp_path}/outer/inner{ending}")
    assert name_of(work()) == "module.py(1): work"
    import_path.pop(0)
    import_path.append(f"{tmp_path}/outer/inn")
    assert name_of(work()) == "outer/inner/module.py(1): work"


def test_relative_and_empty_import_prefixes_are_the_working_folder(import_path, tmp_path, monkeypatch):
    """P28"""
    (tmp_path / "lib" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    import_path[:] = ["", "lib"]
    assert name_of(made("def work(): pass", f"{tmp_path}/a.py")) == "a.py(1): work"
    assert name_of(made("def work(): pass", f"{tmp_path}/lib/deep/a.py")) == "deep/a.py(1): work"
    assert name_of(made("def work(): pass", "./lib/b.py")) == "b.py(1): work"
    monkeypatch.chdir(tmp_path / "lib")
    assert name_of(made("def work(): pass", f"{tmp_path}/lib/deep/c.py")) == "deep/c.py(1): work"
    assert name_of(made("def work(): pass", f"{tmp_path}/d.py")) == f"{tmp_path}/d.py(1): work"


def test_links_to_import_prefixes_are_followed(import_path, tmp_path):
    """P28"""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "a.py").write_text("")
    import_path.append(f"{tmp_path}/link")
    assert name_of(made("def work(): pass", f"{tmp_path}/link/a.py")) == "a.py(1): work"
    assert name_of(made("def work(): pass", f"{tmp_path}/real/a.py")) == "a.py(1): work"
    import_path[-1] = f"{tmp_path}/real"
    assert name_of(made("def work():  pass", f"{tmp_path}/link/a.py")) == "a.py(1): work"


def test_modules_in_zip_files_have_the_file_stripped(import_path, tmp_path):
    archive = tmp_path / "some.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("zipped_package/__init__.py", "")
        file.writestr("zipped_package/module.py", "\n\ndef work(): pass\n")
    import_path.append(str(archive))
    module = importlib.import_module("zipped_package.module")
    assert name_of(module.work) == "zipped_package/module.py(3): work"


def test_code_without_a_file_keeps_its_file_name():
    assert name_of(made("def work(): pass", "<string>")) == "<string>(1): work"
    assert name_of(made("\ndef work(): pass", "<ipython-input-1-ab>")) == "<ipython-input-1-ab>(2): work"
    assert name_of(made("def work(): pass", "/tmp/ipykernel_1/23.py")) == "/tmp/ipykernel_1/23.py(1): work"
    assert name_of(made("def work(): pass", "")) == "(1): work"

    def program():
        exec("pass")
        eval("1")
        sys.modules.pop("colorsys", None)
        import colorsys  # noqa: F401

    names = names_of(program, c_calls=False)
    assert names[:2] == ["<string>(1): <module>", "<string>(1): <module>"]
    assert any(name.startswith("<frozen importlib._bootstrap>(") for name in names)
    assert "colorsys.py(1): <module>" in [name.replace("(0)", "(1)") for name in names]


def test_unusual_names_survive(tmp_path):
    plain = "def work(): pass"
    assert name_of(made(plain, "/a\udc80/\udcff.py")) == "/a\\udc80/\\udcff.py(1): work"
    assert name_of(made(plain, "/ö/日.py")) == "/ö/日.py(1): work"
    for text in ("", "a b\n\t\"'\\", "0x7f00", "ö日", "): (", "\x00\x01"):
        assert name_of(made(plain, "/x.py", co_name=text, co_qualname=text)) == f"/x.py(1): {text}"
    assert name_of(made(plain, "/x.py", co_qualname="\ud800")) == "/x.py(1): \\ud800"
    long = name_of(made(plain, "/x.py", co_qualname="n" * 100_000))
    assert long.startswith("/x.py(1): nnn") and len(long) > 4000
    assert name_of(made(plain, "/x.py", co_firstlineno=0)).startswith("/x.py(")
    assert name_of(made(plain, "/x.py", co_firstlineno=2**31 - 1)) == f"/x.py({2**31 - 1}): work"


def test_every_name_can_be_exported(tmp_path):
    import json

    functions = [
        made("def work(): pass", "/x.py", co_qualname=text) for text in ('a"b\\c\n', "\x00\x7f", "\ud800", "ö" * 9000)
    ]
    with marey.profile(with_stack=True) as prof:
        for function in functions:
            function()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = [event["name"] for event in events if event["name"].startswith("/x.py")]
    assert names[:2] == ['/x.py(1): a"b\\c\n', "/x.py(1): \x00\x7f"]
    assert len(names) == 4


def test_every_name_has_the_first_line_of_the_definition_also_for_calls_running_at_the_start():
    """P22: frames that run at the start are named by their first line too."""
    prof = marey.profile(with_stack=True)

    def inner():
        return 1

    def outer():
        prof.start()
        inner()

    outer()
    outer_again = outer.__code__.co_firstlineno
    prof.stop()
    names = [row["name"] for row in call_trees.rows(prof)]
    assert [name for name in names if name.endswith(".outer")] == [
        f"test_call_names.py({outer_again}): {outer.__code__.co_qualname}"
    ]


def test_a_user_folder_called_marey_is_recorded(tmp_path):
    assert name_of(made("def work(): pass", "/home/me/marey/work.py")) == "/home/me/marey/work.py(1): work"


def test_a_script_is_named_without_its_folder(tmp_path):
    folder = tmp_path / "some folder"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    (folder / "script.py").write_text(
        "import marey\ndef work(): pass\n"
        "with marey.profile(with_stack=True, c_calls=False) as prof: work()\n"
        "print(*[e.name for e in prof.events() if e.name.endswith((': work', '<module>'))], sep='|')\n"
    )
    for script, cwd in (
        (folder / "script.py", tmp_path),
        ("script.py", folder),
        ("some folder/script.py", tmp_path),
        ("./link/script.py", tmp_path),
        ("../some folder/script.py", folder),
    ):
        done = subprocess.run([sys.executable, script], cwd=cwd, capture_output=True, text=True, env=os.environ)
        assert done.stdout == "script.py(1): <module>|script.py(2): work\n", (script, done.stderr)


# ---- C functions

SEEN_ON_EVERY_VERSION = {
    "math.sqrt": lambda: math.sqrt(2),
    "builtins.len": lambda: len(()),
    "list.append": lambda: [].append(1),
    "str.join": lambda: "".join(()),
    "dict.fromkeys": lambda: dict.fromkeys(()),  # a class method
    "str.maketrans": lambda: str.maketrans({}),  # a static one
    "bytes.fromhex": lambda: bytes.fromhex("00"),
    "collections.deque.append": lambda: collections.deque().append(1),
    "datetime.datetime.now": lambda: datetime.datetime.now(),
    "_operator.add": lambda: operator.add(1, 2),
}
SEEN_LATER = {
    "int": lambda: int("1"),
    "functools.partial.__call__": lambda p=functools.partial(len, ()): p(),  # noqa: B008
    "object.__init__": lambda: object.__init__(object()),
    "int.__add__": lambda: int.__add__(1, 2),
    "float.__add__": lambda: (1.0).__add__(2),
    "str.__len__": lambda text=type("Mine", (str,), {})(): text.__len__(),  # noqa: B008
    "type.__call__": lambda: type.__call__(int),
    "list.__init__": lambda: [].__init__(),
    "operator.itemgetter.__call__": lambda g=operator.itemgetter(0): g((1,)),
}


@pytest.mark.parametrize("name", SEEN_ON_EVERY_VERSION)
def test_c_functions_are_named_by_module_or_class_and_never_by_an_address(name):
    """P18: no instance is in a name."""
    names = names_of(SEEN_ON_EVERY_VERSION[name])
    assert name in names
    assert not any("0x" in each or " object at " in each for each in names)


@pytest.mark.skipif(not LATER, reason="the profile hook of 3.11 does not see them")
@pytest.mark.parametrize("name", SEEN_LATER)
def test_other_callables_are_named_too(name):
    assert name in names_of(SEEN_LATER[name])


def test_each_class_has_a_name_for_its_constructor_calls():
    """One definition serves them all."""
    program = lambda: [each.__new__(each) for each in (int, list, dict, int, list)]
    assert [name for name in names_of(program) if name.endswith("__new__")] == [
        "int.__new__",
        "list.__new__",
        "dict.__new__",
        "int.__new__",
        "list.__new__",
    ]


def test_methods_of_subclasses_are_named_by_the_class_that_defines_them():
    class Mine(list):
        pass

    mine = Mine()
    assert "list.append" in names_of(lambda: mine.append(1))


def test_functions_with_one_definition_share_a_name_whatever_object_is_called_first():
    """P18"""
    first, second = [], collections.UserList()
    assert names_of(lambda: first.append(1)) == ["list.append"]
    assert "list.append" in names_of(lambda: second.append(1))


@pytest.mark.skipif(not LATER, reason="the profile hook of 3.11 does not see them")
def test_numpy_functions_have_their_own_names():
    numpy = pytest.importorskip("numpy")
    array = numpy.ones(3)

    def program():
        numpy.add(array, array)
        numpy.multiply(array, 2)
        numpy.add(array, array)
        numpy.dot(array, array)
        array.sum()

    names = names_of(program)
    assert [name for name in names if name in ("numpy.add", "numpy.multiply")] == [
        "numpy.add",
        "numpy.multiply",
        "numpy.add",
    ]
    assert "numpy.dot" in names
    assert any(name.endswith("ndarray.sum") for name in names)


@pytest.mark.skipif(not LATER, reason="the profile hook of 3.11 does not see them")
def test_looking_up_a_callables_name_runs_no_program_code():
    """P20"""
    asked = []

    class Loud:
        def __call__(self):
            pass

        def __getattr__(self, name):
            asked.append(name)
            raise RuntimeError(name)

    class Property:
        @property
        def __name__(self):
            asked.append("property")
            raise RuntimeError

        def __call__(self):
            pass

    loud, other = Loud(), Property()
    names_of(lambda: (loud(), other()))
    assert asked == []
