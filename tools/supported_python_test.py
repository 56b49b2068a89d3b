"""supported_python_test.py: which interpreters may build the Python package."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

from supported_python import objection, supported

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIRST, END = (3, 11), (3, 16)


class Interpreters(unittest.TestCase):
    def test_the_versions_come_from_pyproject(self):
        text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        first, end = supported(text)
        self.assertEqual(first, (3, 11))
        for minor in range(first[1], end[1]):
            self.assertIn(f'"Programming Language :: Python :: 3.{minor}"', text)
        self.assertNotIn(f'"Programming Language :: Python :: 3.{end[1]}"', text)

    def test_a_checked_cpython_is_supported(self):
        for minor in range(FIRST[1], END[1]):
            self.assertEqual(objection("CPython", (3, minor, 0), FIRST, END), "")

    def test_others_get_one_line_that_names_them_and_what_to_use(self):
        self.assertEqual(
            objection("CPython", (3, 16, 0), FIRST, END),
            "CPython 3.16.0 is not supported: the package was checked on CPython 3.11 to 3.15",
        )
        self.assertIn("CPython 3.10.2 is not supported", objection("CPython", (3, 10, 2), FIRST, END))
        self.assertEqual(
            objection("PyPy", (3, 11, 13), FIRST, END),
            "PyPy 3.11.13 is not supported: the package reads CPython's own structures (use CPython 3.11 to 3.15)",
        )

    def test_the_program_prints_that_line_and_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "tools" / "supported_python.py"
            copy.parent.mkdir()
            copy.write_text((ROOT / "tools" / "supported_python.py").read_text(encoding="utf-8"), encoding="utf-8")
            (pathlib.Path(folder) / "pyproject.toml").write_text('requires-python = ">=3.7,<3.8"\n', encoding="utf-8")
            done = subprocess.run([sys.executable, copy], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^marey: CPython 3\.\S+ is not supported: .* CPython 3\.7 to 3\.7\n$")


if __name__ == "__main__":
    unittest.main()
