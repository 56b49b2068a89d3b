"""check_words_test.py: the phrases that check_words finds, and those it leaves alone."""

import unittest

from check_words import phrase_findings, subject_findings, width_findings


def count(line: str, path: str = "docs/x.md") -> int:
    return len(phrase_findings(path, line))


class Phrases(unittest.TestCase):
    def test_wrong_negations_are_found(self):
        self.assertEqual(count("'12q' is no size"), 1)
        self.assertEqual(count("// these are no ranges", "src/x.cpp"), 1)

    def test_right_negations_are_left_alone(self):
        for line in ("There is no session.", "there are no threads", "It is no longer open.", "It is not a size."):
            self.assertEqual(count(line), 0, line)

    def test_of_chains_and_old_words_are_found(self):
        self.assertEqual(count("Programs of Python are recorded."), 1)
        self.assertEqual(count("The table is made anew."), 1)
        self.assertEqual(count("The name of the program of the user."), 0)

    def test_sentences_with_a_what_clause_as_subject_are_found(self):
        self.assertEqual(count("What is dropped is counted."), 1)
        self.assertEqual(count("It records. What is dropped is counted."), 1)
        self.assertEqual(count("    // What is dropped is counted.", "src/x.cpp"), 1)

    def test_questions_headings_code_and_inner_clauses_are_left_alone(self):
        self.assertEqual(count("What is a range?"), 0)
        self.assertEqual(count("## What it costs"), 0)
        self.assertEqual(count("```\nWhat is this\n```"), 0)
        self.assertEqual(count("It shows what was recorded."), 0)


class Widths(unittest.TestCase):
    def test_long_lines_are_found_outside_tables_code_and_urls(self):
        long = "word " * 25
        self.assertEqual(len(width_findings("x.md", long)), 1)
        for line in (f"| {long} |", f"```\n{long}\n```", f"https://example.org/{'x' * 100}"):
            self.assertEqual(width_findings("x.md", line), [], line)

    def test_long_subjects_are_found(self):
        self.assertEqual(len(subject_findings(["Add a check", "x" * 73])), 1)


if __name__ == "__main__":
    unittest.main()
