"""Records a block and reads its ranges, for the tests in this folder."""

import base64
import contextlib
import gzip
import json

from range_rows import range_rows

import marey

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
        recorded.rows = range_rows(recorded.trace)


def is_async(row):
    return row["flags"] & ASYNC != 0


def work(name="work"):
    """A range with nothing in it."""
    with marey.record_function(name):
        pass


def names(prof):
    """The names of a profiler's events, steps with their numbers."""
    return [event.trace_name for event in prof.events()]


def report_names(page):
    """The names in the table of an HTML report."""
    packed = page.split('<script type="application/marey">')[1].split("</script>")[0]
    data = gzip.decompress(base64.b64decode(packed))
    size = int.from_bytes(data[:4], "little")
    first, count = json.loads(data[4 : 4 + size])["requests"]["table?trace=0"]
    return {row["name"] for row in json.loads(data[4 + size :][first : first + count])["rows"]}
