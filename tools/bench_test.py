"""bench_test.py: tests of bench.py."""

import unittest

import bench


class Met(unittest.TestCase):
    def test_units_are_converted(self):
        figure = {"value": 311, "unit": "us", "target": "0.5 ms"}
        self.assertIs(bench.met(figure), True)
        self.assertIs(bench.met(figure | {"value": 511}), False)
        self.assertIs(bench.met({"value": 0.3, "unit": "s", "target": "<= 200 ms"}), False)
        self.assertIs(bench.met({"value": 2, "unit": "MiB", "target": ">= 2.05 MB"}), True)

    def test_a_target_without_a_unit_is_of_the_ratio(self):
        self.assertIs(bench.met({"value": 13, "unit": "ns", "ratio": 1.05, "target": "<= 1.1"}), True)
        self.assertIs(bench.met({"value": 13, "unit": "ns", "target": "<= 1.1"}), False)

    def test_units_that_are_not_known_are_compared_as_they_are(self):
        self.assertIs(bench.met({"value": 1, "unit": "per 64 MB", "target": "<= 1 per 64 MB"}), True)

    def test_a_time_is_not_compared_with_a_size(self):
        self.assertIsNone(bench.met({"value": 1, "unit": "ms", "target": "<= 1 MB"}))
        self.assertIsNone(bench.met({"value": 1, "unit": "ns"}))


if __name__ == "__main__":
    unittest.main()
