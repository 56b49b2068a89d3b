"""Functions under test."""

import collections
import re


def words(text):
    return re.findall(r"[a-z']+", text.lower())


def count(text):
    return collections.Counter(words(text))


def distance(a, b):
    """How many letters differ (Levenshtein)."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]
