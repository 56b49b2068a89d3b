"""check_layers_test.py: tests of the layer check: includes that it must reject and includes that it must allow."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import check_layers


class CheckLayers(unittest.TestCase):
    def setUp(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.root = Path(self._folder.name)
        for path in (
            "include/marey/marey.h",
            "include/marey/trace.h",
            "include/marey/detail/log_format.h",
            "src/base/json_writer.h",
            "src/record/clock.h",
            "src/trace/trace_data.h",
        ):
            self.write(path)

    def write(self, path: str, *includes: str, first: str | None = None) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = [first if first is not None else f"// {file.name}: for a test."]
        file.write_text("\n".join(lines + [f"#include {include}" for include in includes]) + "\n")

    def findings(self) -> list[str]:
        return [str(finding) for finding in check_layers.check(self.root)[1]]

    def assert_one(self, *parts: str) -> None:
        findings = self.findings()
        self.assertEqual(len(findings), 1, findings)
        for part in parts:
            self.assertIn(part, findings[0])

    def test_a_clean_tree_has_no_findings(self) -> None:
        self.write(
            "src/collect/session.cpp",
            "<vector>",
            "<sys/mman.h>",
            "<marey/trace.h>",
            '"record/clock.h"',
            '"trace/trace_data.h"',
            '"base/json_writer.h"',
            "<marey/detail/log_format.h>",
        )
        self.assertEqual(self.findings(), [])

    def test_record_may_not_include_the_trace(self) -> None:
        self.write("src/record/recorder.cpp", "<atomic>", '"trace/trace_data.h"')
        self.assert_one("src/record/recorder.cpp:3:", "may not include src/trace/trace_data.h")

    def test_a_path_through_the_parent_folder_is_checked_too(self) -> None:
        self.write("src/analyze/averages/averages.cpp", '"../../record/clock.h"')
        self.assert_one("src/analyze may not include src/record/clock.h")

    def test_base_may_not_include_other_rooms(self) -> None:
        self.write("src/base/file.cpp", "<marey/trace.h>")
        self.assert_one("src/base may not include include/marey/trace.h")

    def test_the_command_uses_the_public_headers_only(self) -> None:
        self.write("src/cli/report.cpp", "<marey/marey.h>", "<fmt/core.h>", "<CLI/CLI.hpp>", '"trace/trace_data.h"')
        self.assert_one("src/cli may not include src/trace/trace_data.h")

    def test_the_command_may_not_include_detail(self) -> None:
        self.write("src/cli/info.cpp", "<marey/detail/log_format.h>")
        self.assert_one("src/cli may not include include/marey/detail/log_format.h")

    def test_external_headers_belong_to_their_rooms(self) -> None:
        for header in ("<Python.h>", "<cupti.h>", "<fmt/format.h>"):
            with self.subTest(header):
                self.write("src/record/clock.cpp", header)
                self.assert_one("src/record may not include " + header.strip("<>"))

    def test_a_test_may_include_gtest_and_the_headers_of_its_room(self) -> None:
        self.write("src/record/clock_test.cpp", "<gtest/gtest.h>", '"record/clock.h"')
        self.assertEqual(self.findings(), [])
        self.write("src/record/clock_test.cpp", "<gtest/gtest.h>", '"trace/trace_data.h"')
        self.assert_one("src/record may not include src/trace/trace_data.h")

    def test_production_code_may_not_include_gtest(self) -> None:
        self.write("src/record/clock.cpp", "<gtest/gtest.h>")
        self.assert_one("src/record may not include gtest/gtest.h")

    def test_a_project_include_that_does_not_exist_is_found(self) -> None:
        self.write("src/record/clock.cpp", '"record/colck.h"')
        self.assert_one("record/colck.h, which does not exist")

    def test_an_example_uses_the_public_headers_only(self) -> None:
        self.write("examples/pipeline/main.cpp", "<marey/marey.h>", "<thread>")
        self.assertEqual(self.findings(), [])
        self.write("examples/pipeline/main.cpp", "<marey/detail/log_format.h>")
        self.assert_one("examples may not include include/marey/detail/log_format.h")

    def test_the_consumer_uses_the_one_header(self) -> None:
        self.write("tests/consumer/main.cpp", "<marey/marey.h>")
        self.assertEqual(self.findings(), [])
        self.write("tests/consumer/main.cpp", "<marey/trace.h>")
        self.assert_one("tests/consumer may not include include/marey/trace.h")

    def test_a_file_begins_with_its_purpose(self) -> None:
        self.write("src/record/clock.cpp", first="// clok.cpp: reads the clock.")
        self.assert_one("src/record/clock.cpp:1:", "// clock.cpp: ...")

    def test_vague_words_in_names_are_rejected_but_not_parts_of_words(self) -> None:
        self.write("src/base/utility_belt.h")
        self.write("src/base/file_v25.h")
        self.assertEqual(self.findings(), [])
        self.write("src/base/string_utils.h")
        self.assert_one("'utils' does not describe the contents")

    def test_only_one_file_reads_environment_variables(self) -> None:
        code = ': for a test.\nint unsetenv(const char*);\nconst char* home() { return std::getenv ("HOME"); }'
        for path in ("src/base/environment.h", "src/base/golden_fixture.h", "tests/behaviour/recording.cpp"):
            self.write(path, first="// " + path.rpartition("/")[2] + code)
        self.assertEqual(self.findings(), [])
        self.write("src/record/clock.cpp", first="// clock.cpp" + code)
        self.assert_one("src/record/clock.cpp:3:", "use environment_text()")

    def test_locks_are_those_that_the_analysis_checks(self) -> None:
        code = ": for a test.\n// A std::mutex_like word.\nstd::mutex lock;"
        for path in ("include/marey/detail/thread_safety.h", "src/base/mutex_test.cpp", "tests/behaviour/locks.cpp"):
            self.write(path, first="// " + path.rpartition("/")[2] + code)
        self.assertEqual(self.findings(), [])
        self.write("src/record/clock.cpp", first="// clock.cpp" + code)
        self.assert_one("src/record/clock.cpp:3:", "use Mutex and ScopedLock")

    def test_a_source_outside_every_room_is_found(self) -> None:
        self.write("src/stuff.cpp")
        self.assert_one("not in any room")

    def write_python(self, path: str, *lines: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(['"""For a test."""', *lines]) + "\n")

    def test_the_package_imports_optional_dependencies_inside_functions(self) -> None:
        self.write_python("python/marey/_events.py", "import os", "from marey import _x", "from . import _x")
        self.write_python("python/marey/_table.py", "def table():", "    import pandas", "    return pandas")
        self.assertEqual(self.findings(), [])

    def test_an_optional_dependency_may_not_be_imported_at_import_time(self) -> None:
        self.write_python("python/marey/_table.py", "class Table:", "    import pandas")
        self.assert_one("python/marey/_table.py:3:", "pandas is optional")

    def test_tests_of_the_package_may_not_import_torch(self) -> None:
        self.write_python("tests/python/test_x.py", "def test_x():", "    from torch import profiler")
        self.assert_one("tests/python/test_x.py:3:", "tests/python may not import torch")

    def test_a_python_module_begins_with_its_purpose(self) -> None:
        self.write_python("python/marey/_table.py")
        (self.root / "python/marey/_table.py").write_text("import os\n")
        self.assert_one("python/marey/_table.py:1:", "docstring")

    def test_packages_import_only_the_layers_below_them(self) -> None:
        self.write_python("python/marey/_names.py")
        self.write_python("python/marey/results/events.py", "from marey import _names")
        self.write_python("python/marey/recording/profile.py", "from marey.results.events import Event")
        self.write_python("python/marey/profiler.py", "from marey.recording import profile")
        self.assertEqual(self.findings(), [])
        self.write_python("python/marey/results/tree.py", "def f():", "    from marey.recording import profile")
        self.assert_one("results/tree.py:3: python/marey/results may not import python/marey/recording/profile.py")

    def test_private_modules_beside_the_packages_import_no_package(self) -> None:
        self.write_python("python/marey/results/events.py")
        self.write_python("python/marey/_names.py", "import marey.results.events")
        self.assert_one("python/marey/_names.py:2: python/marey/_ may not import python/marey/results/events.py")

    def test_only_the_package_for_pytorch_imports_itself(self) -> None:
        self.write_python("python/marey/torch/__init__.py", "from marey.torch import _flag")
        self.write_python("python/marey/torch/_flag.py")
        self.assertEqual(self.findings(), [])
        for path in ("launch/program.py", "profiler.py"):
            self.write_python(f"python/marey/{path}", "def f():", "    import marey.torch")
            self.assert_one(f"python/marey/{path}:3:", "may not import python/marey/torch/__init__.py")
            (self.root / "python/marey" / path).unlink()

    def test_imports_of_the_package_form_no_cycle(self) -> None:
        self.write_python("python/marey/results/a.py", "from marey.results import b")
        self.write_python("python/marey/results/b.py", "def f():", "    from marey.results.c import x")
        self.assertEqual(self.findings(), [])
        self.write_python("python/marey/results/c.py", "from marey.results.a import y")
        cycle = " -> ".join(f"python/marey/results/{name}.py" for name in "abca")
        self.assert_one("python/marey/results/c.py:2:", f"closes an import cycle: {cycle}")


if __name__ == "__main__":
    unittest.main()
