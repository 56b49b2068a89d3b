"""check_odr_test.py: the linker's check sees types that differ, in functions and members too."""

from __future__ import annotations

import shutil
import tempfile
import unittest
from pathlib import Path

from check_odr import compile_object, link

COMPILER = shutil.which("g++")
RANGE = "namespace marey {{ struct Range {{ {} }}; long {}(Range* range) {{ return range->end; }} }}\n"


@unittest.skipUnless(COMPILER, "needs GCC")
class OdrTest(unittest.TestCase):
    def report(self, *members: str) -> str:
        """Of files that each define a type of one name with these members."""
        with tempfile.TemporaryDirectory() as name:
            folder, objects = Path(name), []
            for i, text in enumerate(members):
                source = folder / f"{i}.cpp"
                source.write_text(RANGE.format(text, f"function_{i}"))
                objects.append(folder / f"{i}.o")
                words = [COMPILER, "-O2", "-fPIC", "-o", "elsewhere.o", "-c", str(source)]
                self.assertTrue(compile_object(words, name, objects[-1]))
            return link(COMPILER, objects)

    def test_names_a_type_whose_members_differ(self) -> None:
        report = self.report("long begin, end;", "int begin; long end;")
        self.assertIn("violates the C++ One Definition Rule", report)
        self.assertIn("struct Range", report)

    def test_says_nothing_of_a_type_that_is_the_same_in_both_files(self) -> None:
        self.assertEqual(self.report("long begin, end;", "long begin, end;"), "")


if __name__ == "__main__":
    unittest.main()
