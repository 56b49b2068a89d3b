"""Records a block and reads its ranges, for the tests in this folder."""

import base64
import contextlib
import re
import zlib

import marey
from marey import _marey

ASYNC, UNFINISHED, BEGAN_BEFORE = 4, 2, 1


class Recorded:
    """The records of a session. Filled when the block of `recording` ends."""

    rows = ()

    def names(self):
        return [row["name"] for row in self.rows]

    def named(self, name):
        return [row for row in self.rows if row["name"] == name]

    def one(self, name):
        (row,) = self.named(name)
        return row

    def parent(self, row):
        """The name of a row's parent, None for a root."""
        return None if row["parent"] is None else self.rows[row["parent"]]["name"]

    def path(self, row):
        """The names from the root down to a row."""
        names = [row["name"]]
        while row["parent"] is not None:
            row = self.rows[row["parent"]]
            names.append(row["name"])
        return tuple(reversed(names))


@contextlib.contextmanager
def recording(**options):
    """A session around a block; gives a Recorded."""
    session = marey.Session()
    recorded = Recorded()
    session.start(**options)
    try:
        yield recorded
    finally:
        recorded.trace = session.stop()
        recorded.rows = _marey.range_rows(recorded.trace)


def is_async(row):
    return row["flags"] & ASYNC != 0


def work(name="work"):
    """A range with nothing in it."""
    with marey.record_function(name):
        pass


def names(prof):
    """The names of a profiler's events, steps with their numbers."""
    return [event.trace_name for event in prof.events()]


def report_data(page):
    """The names and numbers inside an HTML report, as text."""
    (data,) = re.findall(r'<script type="application/marey">\s*([\w+/=]*)\s*</script>', page)
    text = zlib.decompress(base64.b64decode(data), 15 + 32).decode("utf-8", "replace")
    return text.replace("\\u003c", "<").replace("\\u003e", ">")
