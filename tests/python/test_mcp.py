"""`marey mcp`, asked by the client of the official SDK: a real server process, and traces of real programs."""

import asyncio
import json
import os
import subprocess
import sys

import pytest
from running import environment, write

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")
pytest.importorskip("mcp")

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

import marey

PROGRAM = """
import json

def parse(text): return json.loads(text)

def load():
    sum(range(3_000_000))
    return ['{"a": %d}' % i for i in range(2000)]

def main():
    for text in load(): parse(text)

main()
"""


def recorded(folder, text, name="x"):
    script = write(folder, text, f"{name}.py")
    command = [sys.executable, "-m", "marey", "run", "-q", "-o", f"{name}.marey", script]
    subprocess.run(command, cwd=folder, env=environment(), check=True, timeout=120)


def asked(folder, calls, *words):
    """Return the answers of one server to these calls: (whether it is an error, the text)."""

    async def talk():
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "marey", "mcp", *words], env=environment(), cwd=folder
        )
        answers = []
        async with Client(server) as client:
            listed = await client.list_tools()
            assert all(tool.annotations.read_only_hint for tool in listed.tools)
            for tool, arguments in calls:
                answer = await client.call_tool(tool, arguments)
                answers.append((bool(answer.is_error), answer.content[0].text))
        return answers

    return asyncio.run(talk())


def rows(answer):
    """Return the rows of an answer as dicts."""
    is_error, text = answer
    assert not is_error, text
    table = json.loads(text)
    return [dict(zip(table["columns"], row)) for row in table["rows"]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("mcp")
    recorded(path, PROGRAM)
    return path


def test_an_agent_comes_from_the_summary_to_the_place_in_the_source(folder):
    summary, found, tree = asked(folder, [("summary", {}), ("find", {"pattern": "LOAD"}), ("tree", {})], "x.marey")
    top = json.loads(summary[1])["most_self_time"]
    assert "x.py(5): load" in [row[0] for row in top["rows"]][:2]
    assert json.loads(summary[1])["ranges"]["rows"][0][0] > 4000
    assert "x.py(5): load" in [row["name"] for row in rows(found)]
    (main,) = [row for row in rows(tree) if row["name"] == "x.py(9): main"]
    below, calls, source = asked(
        folder,
        [
            ("tree", {"node": main["node"], "depth": 2, "least_share": 0}),
            ("ranges", {"name": "x.py(5): load"}),
            ("source", {"name": "x.py(5): load"}),
        ],
        "x.marey",
        "--source",
        ".",
    )
    assert {row["name"] for row in rows(below)} == {"x.py(9): main", "x.py(3): parse", "x.py(5): load"}
    (load,) = rows(calls)
    assert 0 <= load["start_ns"] < 60e9 and load["duration_ns"] >= load["self_ns"] > 0
    lines = json.loads(source[1])["lines"]
    assert "5: def load():" in lines and "6:     sum(range(3_000_000))" in lines


def test_an_answer_keeps_to_its_budget_and_pages_have_every_row_once(folder):
    calls = [("ranges", {"name": "x.py(3): parse", "by": "start_ns", "page": page}) for page in (1, 2, 999)]
    first, second, none = asked(folder, calls, "x.marey")
    assert len(first[1].encode()) <= 16_000 and len(rows(first)) > 50
    assert json.loads(first[1])["more"] == f"{2000 - len(rows(first))} rows: ask for page 2"
    starts = [row["start_ns"] for row in rows(first) + rows(second)]
    assert starts == sorted(set(starts))
    assert none[0] and "page 999: there are" in none[1]


def test_tools_reach_only_the_given_files(folder, tmp_path):
    (tmp_path / "secret.txt").write_text("secret\n")
    secret = str(tmp_path / "secret.txt")
    (folder / "inside").mkdir(exist_ok=True)
    calls = [
        ("sql", {"query": f"select * from read_csv('{secret}')"}),
        ("sql", {"query": f"copy (select 1) to '{tmp_path}/out.csv'"}),
        ("find", {"pattern": "x", "file": secret}),
        ("source", {"name": "x.py(5): load"}),  # outside of the folder that was given
        ("ranges", {"name": "x", "by": "1; drop table ranges"}),
        ("ranges", {"name": "' or 1=1 --"}),
    ]
    *refused, quoted = asked(folder, calls, "x.marey", "--source", "inside")
    for is_error, text in refused:
        assert is_error and "secret\n" not in text
    assert rows(quoted) == []
    assert os.listdir(tmp_path) == ["secret.txt"]


def test_source_is_shown_only_from_allowed_folders(folder):
    ((is_error, text),) = asked(folder, [("source", {"name": "x.py(5): load"})], "x.marey")
    assert is_error and "--source FOLDER" in text


def test_a_file_that_grew_is_read_again(tmp_path):
    recorded(tmp_path, "def first(): pass\nfirst()\n")

    async def talk():
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "marey", "mcp", "x.marey"], env=environment(), cwd=tmp_path
        )
        async with Client(server) as client:
            before = await client.call_tool("find", {"pattern": "first"})
            (tmp_path / "x.marey").unlink()
            recorded(tmp_path, "def second(): pass\nsecond()\n")
            return before, await client.call_tool("find", {"pattern": ": second"})

    before, after = asyncio.run(talk())
    assert "x.py(1): first" in before.content[0].text
    assert "x.py(1): second" in after.content[0].text


def test_two_files_are_compared_with_exact_counts_and_in_pages(folder):
    (folder / "changed").mkdir(exist_ok=True)
    many = "".join(f"\ndef f{number}(): pass\nf{number}()" for number in range(300))
    recorded(folder / "changed", PROGRAM.replace("range(2000)", "range(12345)") + many)
    files = ["x.marey", "changed/x.marey"]
    calls = [("diff", {}), *(("diff", {"table": "rows", "by": "name", "page": page}) for page in (1, 2, 3, 4))]
    refused = [("diff", {"table": "columns"}), ("diff", {"by": "nothing"}), ("diff", {"new": "none.marey"})]
    whole, *pages, table, by, file = asked(folder, calls + refused, *files)
    answer = json.loads(whole[1])
    counts = {row["name"]: row for row in rows((False, json.dumps(answer["counts"])))}
    assert (counts["x.py(3): parse"]["old"], counts["x.py(3): parse"]["new"]) == (2000, 12345)
    assert answer["counts"]["more"].endswith("rows: ask for page 2 of table counts")
    assert "change_low" not in answer  # one run each: no interval
    expected = marey.diff(*(str(folder / name) for name in files), by="name")
    assert answer["difference"] == expected["diff"]["difference"]
    shown = [row["name"] for page in pages if not page[0] for row in rows(page)]
    assert shown == [row["name"] for row in expected["diff_rows"]]
    assert all(len(text.encode()) <= 16_000 for _, text in [whole, *pages])
    assert table[0] and "counts, rows or totals" in table[1]
    assert by[0] and file[0] and "give one of x.marey, changed/x.marey" in file[1]


def test_a_missing_file_is_an_error_before_the_first_question(tmp_path):
    command = [sys.executable, "-m", "marey", "mcp", "none.marey"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert "none.marey" in done.stderr
