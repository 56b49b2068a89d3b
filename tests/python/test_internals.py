"""The parts of CPython that the tracer uses: table, documents, supported versions and `marey doctor` agree."""

import re
import subprocess
import sys

from conftest import SOURCE

from marey.launch.internals import CHECKED, INTERNALS, used  # private: the list itself is compared


def section():
    text = (SOURCE / "docs" / "reference" / "versions.md").read_text(encoding="utf-8")
    return re.search(r"^## Python$.*?(?=^## |\Z)", text, re.M | re.S)[0]


def test_the_supported_versions_are_those_that_were_checked():
    first, end = re.search(
        r'^requires-python = ">=3\.(\d+),<3\.(\d+)"$', (SOURCE / "pyproject.toml").read_text(encoding="utf-8"), re.M
    ).groups()
    assert list(CHECKED) == [(3, minor) for minor in range(int(first), int(end))]
    assert f"| checked on | {' | '.join(CHECKED.values())} |" in section()


def test_the_documents_list_every_part():
    rows = []
    for part, use, file, first, last in INTERNALS:
        versions = f"3.{first[1]}" if first == last else f"3.{first[1]} to 3.{last[1]}"
        rows.append(f"| {part} | {use} | `{file}` | {versions} |")
        assert (SOURCE / "src" / "sources" / "python" / file).exists()
    assert section().rstrip().splitlines()[-len(rows) :] == rows


def test_every_checked_version_has_a_hook_a_slot_and_frames():
    for version in CHECKED:
        parts = used(version)
        assert ("sys.monitoring tool id" in parts) != ("frame evaluation function" in parts)
        assert ("co_extra slot" in parts) != ("co_extra slot through its function" in parts)
        assert ("cframe of a thread" in parts) != ("current_frame of a thread" in parts)


def test_the_doctor_says_which_parts_are_in_use(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "marey.launch.doctor"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if "\tinternals\t" in line]
    version = sys.version_info[:2]
    assert line.rstrip("\t") == f"ok\tinternals\tchecked on {CHECKED[version]}: {', '.join(used(version))}"
