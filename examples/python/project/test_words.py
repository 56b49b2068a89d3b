"""Tests of words.py, for pytest with xdist."""

import pytest
from words import count, distance, words


@pytest.mark.parametrize("number", range(40))
def test_words_are_found(number):
    assert words("One, two; three! " * number) == ["one", "two", "three"] * number


@pytest.mark.parametrize("number", range(1, 40))
def test_words_are_counted(number):
    assert count("to be or not to be " * number)["be"] == 2 * number


@pytest.mark.parametrize("length", range(0, 120, 3))
def test_distance_is_symmetric(length):
    a, b = "phonograph" * length, "telegraph" * length
    assert distance(a[:length], b[:length]) == distance(b[:length], a[:length])
