"""check_parity_test.py: errors that check_parity.py must find, and tables that it must accept."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import check_parity


class CheckParity(unittest.TestCase):
    def setUp(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.root = Path(self._folder.name)
        self.rows = {number: f"| {number} | something | part D |" for number in check_parity.NUMBERS}
        self.write(
            "tests/behaviour/a.cpp",
            "// R1, R2\n// T5: and why\n// not R3\nTEST(Suite, Name) {\n}\n\nTEST_F(Suite, Bare) {\n}\n",
        )
        self.cite("R1", "`Suite.Name`")
        self.cite("R2", "`Suite.Name`")
        self.cite("T5", "differs: `Suite.*`, `marey::Range` and `README.md`")

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def cite(self, number: str, cell: str) -> None:
        self.rows[number] = f"| {number} | something | {cell} |"

    def findings(self) -> list[str]:
        self.write(
            check_parity.DOCUMENT, "\n".join(["| number | PyTorch | Marey |", "|---|---|---|", *self.rows.values()])
        )
        return check_parity.check(self.root)

    def assert_one(self, *parts: str) -> None:
        findings = self.findings()
        self.assertEqual(len(findings), 1, findings)
        for part in parts:
            self.assertIn(part, findings[0])

    def test_a_correct_table_has_no_findings(self) -> None:
        self.assertEqual(self.findings(), [])

    def test_a_missing_row_is_found(self) -> None:
        del self.rows["L25"]
        self.assert_one("no row for L25")

    def test_a_second_row_is_found(self) -> None:
        self.rows["again"] = "| C31 | something | part D |"
        self.assert_one("C31 has a second row")

    def test_a_row_without_test_or_reason_is_found(self) -> None:
        self.cite("C13", " ")
        self.assert_one("C13 has an empty cell")

    def test_a_test_that_does_not_exist_is_found(self) -> None:
        self.cite("R5", "`Suite.Gone`")
        self.assert_one("R5 cites Suite.Gone, which does not exist")
        self.cite("R5", "`Gone.*`")
        self.assert_one("R5 cites Gone.*, which does not exist")

    def test_a_test_without_the_number_is_found(self) -> None:
        for cell in ("`Suite.Name`", "`Suite.Bare`", "`Suite.*`"):
            with self.subTest(cell):
                self.cite("R3", cell)
                self.assert_one("R3 cites", "lacks that number")

    def test_pytorch_tests_have_rows_that_cite_existing_tests(self) -> None:
        self.write("tests/torch/test_x.py", 'def test_marey():\n    """upstream: test_upstream, test_more (R1)"""\n')
        self.assertEqual(len(self.findings()), 2)  # one for each missing row
        self.rows["title"] = check_parity.PYTORCH_TESTS
        self.rows["listed"] = "| test_upstream, test_more | `test_marey`, `Suite.*` |"
        self.assertEqual(self.findings(), [])
        self.rows["listed"] = "| test_upstream, test_more | `test_gone` |"
        self.assert_one("cites test_gone, which does not exist")
        self.rows["listed"] = "| test_upstream, test_more |  |"
        self.assert_one("expected two cells: a PyTorch test and its Marey counterpart")

    def test_a_test_whose_row_gives_only_a_reason_is_found(self) -> None:
        self.cite("R2", "part D")
        self.assert_one("Suite.Name has number R2, but that row cites no test")

    def test_unit_tests_count_but_test_programs_in_subfolders_do_not(self) -> None:
        self.cite("R7", "`Unit.Test`")
        self.write("tests/consumer/x.cpp", "// R7\nTEST(Unit, Test) {\n")
        self.assert_one("Unit.Test, which does not exist")
        self.write("src/room/x_test.cpp", "// R7\nTEST(Unit, Test) {\n")
        self.assertEqual(self.findings(), [])

    def test_numbers_of_a_python_test_are_in_its_docstring(self) -> None:
        self.write(
            "tests/python/test_x.py",
            'def test_plain(a):\n    pass\n\n\ndef test_marked(\n    a,\n):\n    """L20. Also this."""\n    pass\n',
        )
        self.cite("L20", "`test_marked`")
        self.assertEqual(self.findings(), [])
        self.cite("L21", "`test_plain`")
        self.assert_one("L21 cites test_plain, whose comment or docstring lacks that number")

    def test_a_python_test_that_does_not_exist_is_found(self) -> None:
        self.cite("L20", "`test_marked`")
        self.assert_one("L20 cites test_marked, which does not exist")


if __name__ == "__main__":
    unittest.main()
