"""Files that earlier versions of Marey wrote stay readable (docs/formats/compatibility.md)."""

import csv
import gzip
import io
from pathlib import Path

import pytest

import marey

CORPUS = Path(__file__).resolve().parents[1] / "data" / "corpus" / "compatibility"
FILES = sorted(CORPUS.glob("*/*.marey.gz"))


def test_every_release_from_0_2_0_on_has_files():
    assert {path.parent.name for path in FILES} >= {"0.2.0"}
    for folder in {path.parent for path in FILES}:
        names = {path.name.removesuffix(".marey.gz") for path in folder.glob("*.marey.gz")}
        assert names >= {"capture", "compacted", "killed", "ring", "run", "saved"}, folder
        run = gzip.decompress((folder / "run.marey.gz").read_bytes())
        assert run.startswith(b"MAREYTRE") and run[8] == 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_old_files_are_read_with_the_content_they_had(path, tmp_path):
    capture = tmp_path / path.name.removesuffix(".gz")
    capture.write_bytes(gzip.decompress(path.read_bytes()))
    trace = marey.load(capture)
    tables = sorted(path.parent.glob(f"{path.name.removesuffix('.marey.gz')}.*.csv"))
    assert tables
    for expected_path in tables:
        expected = list(csv.reader(io.StringIO(expected_path.read_text(encoding="utf-8"))))
        table = expected_path.name.split(".")[1]
        actual = list(csv.reader(io.StringIO(trace.tables[table].to_csv())))
        # Later versions may add columns.
        columns = [actual[0].index(name) for name in expected[0]]
        rows = [[row[column] for column in columns] for row in actual[1:]]
        assert len(rows) == len(expected) - 1, (table, len(rows))
        for row, wanted in zip(rows, expected[1:]):
            # Paths were replaced in the expected text; texts that report a problem may be reworded.
            differing = [
                name
                for name, cell, old in zip(expected[0], row, wanted)
                if cell != old and "FOLDER" not in old and (table, name) != ("problems", "text")
            ]
            assert differing == [], (table, row, wanted)
