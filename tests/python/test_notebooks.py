"""The magics %marey and %%marey, in a real Jupyter kernel and in IPython on a terminal; traces as HTML."""

import contextlib
import html
import html.parser
import os
import re
import subprocess
import sys
import types
import urllib.error
import urllib.request
import xml.etree.ElementTree

import pytest
from conftest import SOURCE

import marey
from marey.results.notebook_page import (  # private: its limits
    MAX_BYTES,
    PICTURE_WIDTH,
    inline_flame_graph,
    summary_rows,
    within,
)

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")
pytestmark = pytest.mark.skipif("MAREY_TEST_SANITIZER" in os.environ, reason="the kernel starts other programs")


class Kernel:
    """A notebook with a running kernel. Cells are executed one after the other."""

    def __init__(self, client):
        self.client = client

    def run(self, text):
        """Execute a cell; return its outputs."""
        cell = nbformat.v4.new_code_cell(text)
        self.client.nb.cells.append(cell)
        self.client.execute_cell(cell, len(self.client.nb.cells) - 1)
        return cell.outputs

    def printed(self, text):
        """Execute a cell without an error; return what it prints."""
        outputs = self.run(text)
        assert [output for output in outputs if output.output_type == "error"] == []
        return "".join(output.text for output in outputs if output.output_type == "stream")


DEFINITIONS = """
import asyncio, marey

def twice(x):
    return 2 * x

def divide(x):
    return 1 / x

async def wait(n):
    await asyncio.sleep(0)
    return n
"""


@pytest.fixture(scope="module")
def kernel():
    client = nbclient.NotebookClient(nbformat.v4.new_notebook(), timeout=120, kernel_name="python3", allow_errors=True)
    with client.setup_kernel():
        kernel = Kernel(client)
        assert kernel.run("%load_ext marey") == []
        assert kernel.run(DEFINITIONS) == []
        yield kernel


def of_kind(outputs, kind):
    """The data of one MIME type among the outputs."""
    return [output.data[kind] for output in outputs if "data" in output and kind in output.data]


def error_of(outputs):
    (error,) = [output for output in outputs if output.output_type == "error"]
    return error


NAMES = "print(*sorted({e.name for e in _marey.events()}), sep='\\n')"


def test_a_cell_shows_a_summary_and_a_flame_graph_without_scripts(kernel):
    outputs = kernel.run("%%marey\ndef work(n):\n    return sum(i * i for i in range(n))\nwork(200_000)")
    assert of_kind(outputs, "text/plain")[0] == str(sum(i * i for i in range(200_000)))
    (page,) = of_kind(outputs, "text/html")
    (svg,) = of_kind(outputs, "image/svg+xml")
    number = kernel.client.nb.cells[-1].execution_count
    assert f"In[{number}](2): work" in page and f"In[{number}](2): work" in svg
    assert "script" not in page + svg and len(svg) < MAX_BYTES
    xml.etree.ElementTree.fromstring(svg)
    assert kernel.printed("print(type(_marey) is marey.Trace)") == "True\n"


def test_cells_have_their_numbers_and_the_notebook_is_not_in_the_trace(kernel):
    kernel.run("def elsewhere():\n    return 1")
    number = kernel.client.nb.cells[-1].execution_count
    kernel.run("%%marey\nimport json\njson.loads('[]')\nelsewhere()")
    names = kernel.printed(NAMES)
    assert f"In[{number}](1): elsewhere" in names
    assert "json/__init__.py" in names
    assert not re.search(r"IPython|ipykernel|traitlets|tornado|zmq|run_forever|runpy", names), names


def test_the_own_work_of_the_kernel_is_not_in_the_trace(kernel):
    kernel.run("%%marey\nfor i in range(300):\n    print(twice(i), flush=True)\n[twice(i) for i in range(1000)]")
    names = set(kernel.printed(NAMES).split("\n")) - {""}
    others = {name for name in names - {"range"} if not name.startswith(("In[", "builtins."))}
    assert any(name.endswith("): twice") for name in names) and not others, others


def test_the_summary_counts_calls_as_its_table_does(kernel):
    outputs = kernel.run("%marey sum(i * i for i in range(30_000))")
    (page,) = of_kind(outputs, "text/html")
    headline = re.search(r"<p>([\d,]+) calls? in ", page)
    assert headline is not None and int(headline[1].replace(",", "")) < 10


def test_the_flame_graph_is_never_wider_than_the_page(kernel):
    outputs = kernel.run("%marey twice(2)")
    (svg,) = of_kind(outputs, "image/svg+xml")
    root = xml.etree.ElementTree.fromstring(svg)
    # A page may show it by an <img>, which has the size that the picture asks for.
    assert root.get("width") == "100%" and root.get("height") is None and root.get("viewBox")


def test_the_flame_graph_has_the_name_of_its_cell_and_counts_calls(kernel):
    outputs = kernel.run("%marey sum(i * i for i in range(30_000))")
    (page,), (svg,) = of_kind(outputs, "text/html"), of_kind(outputs, "image/svg+xml")
    headline = re.search(r"<p>([\d,]+ calls?) in ", page)
    root = xml.etree.ElementTree.fromstring(svg)
    title, about = (each.text for each in list(root.iter("{http://www.w3.org/2000/svg}text"))[:2])
    assert re.fullmatch(r"In\[\d+\]", title)
    assert headline[1] in about and "range" not in about.replace("in ranges", "")


def test_a_statement_is_recorded_and_its_value_is_the_result(kernel):
    outputs = kernel.run("%marey twice(21)")
    assert of_kind(outputs, "text/plain")[0] == "42" and of_kind(outputs, "image/svg+xml")
    assert "twice" in kernel.printed(NAMES)


def test_a_statement_in_a_block_is_recorded_too(kernel):
    outputs = kernel.run("for x in (1, 2):\n    %marey print(twice(x))")
    assert "".join(output.text for output in outputs if output.output_type == "stream") == "2\n4\n"
    assert len(of_kind(outputs, "image/svg+xml")) == 2


def test_a_cell_can_await(kernel):
    outputs = kernel.run("%%marey\nsum(await asyncio.gather(wait(1), wait(2)))")
    assert of_kind(outputs, "text/plain")[0] == "3"
    assert kernel.printed("print(_marey.key_averages().table())").count("): wait") == 1


def test_the_statement_of_a_magic_can_await(kernel):
    assert of_kind(kernel.run("%marey await wait(7)"), "text/plain")[0] == "7"


def test_another_cell_magic_may_follow(kernel):
    outputs = kernel.run("%%marey\n%%time\ntwice(4)")
    assert "Wall time" in "".join(output.get("text", "") for output in outputs)
    assert "twice" in kernel.printed(NAMES)


def test_an_exception_shows_the_users_traceback_and_keeps_the_recording(kernel):
    recorded = kernel.run("%%marey\n\ndivide(0)")
    plain = kernel.run("#\n\ndivide(0)")
    texts = []
    for outputs in (recorded, plain):
        text = re.sub(r"\x1b\[[\d;]*m|In\[\d+\]", "", "\n".join(error_of(outputs).traceback))
        texts.append(text.replace("1 #\n", "1 \n"))  # the line of the magic is empty
    assert texts[0] == texts[1] and "divide" in texts[0]
    assert of_kind(recorded, "image/svg+xml")


def test_the_recording_ends_with_the_exception(kernel):
    kernel.run("from IPython import get_ipython; before = get_ipython().showtraceback")
    kernel.run("%marey divide(0)")
    names = kernel.printed(NAMES)
    assert "divide" in names and not re.search(r"inspect|stack_data|linecache|traceback", names), names
    outputs = kernel.run("%marey import sys; sys.exit(3)")
    assert error_of(outputs).ename == "SystemExit" and of_kind(outputs, "image/svg+xml")
    assert kernel.printed("print(get_ipython().showtraceback == before)") == "True\n"
    kernel.run("get_ipython().showtraceback = lambda *_, **__: print('own')")  # as the package rich does
    assert kernel.printed("%marey divide(0)").startswith("own\n")
    assert kernel.printed("divide(0)") == "own\n"
    kernel.run("del get_ipython().showtraceback")


def test_a_cell_that_calls_exit_shows_its_results():
    client = nbclient.NotebookClient(nbformat.v4.new_notebook(), timeout=120, kernel_name="python3")
    cells = ("%load_ext marey", "%%marey\nsum(range(1000))\nexit()")
    client.nb.cells = [nbformat.v4.new_code_cell(text) for text in cells]
    with contextlib.suppress(nbclient.exceptions.DeadKernelError):  # it ends some time after the cell
        client.execute()
    assert of_kind(client.nb.cells[1].outputs, "image/svg+xml")


def test_a_syntax_error_is_reported_in_its_line_and_nothing_is_recorded(kernel):
    kernel.run("%marey twice(1)")
    outputs = kernel.run("%%marey\nx = 1\nif x\n    pass")
    assert error_of(outputs).ename == "SyntaxError" and "line 3" in "".join(error_of(outputs).traceback)
    assert of_kind(outputs, "image/svg+xml") == []
    assert "twice" in kernel.printed(NAMES)


def test_an_interrupt_ends_the_cell_and_keeps_the_recording(kernel):
    outputs = kernel.run("%%marey\nimport os, signal\ntwice(2)\nos.kill(os.getpid(), signal.SIGINT)\nprint('no')")
    assert error_of(outputs).ename == "KeyboardInterrupt"
    assert "twice" in kernel.printed(NAMES)


def test_a_wrong_option_is_named_and_the_cell_does_not_run(kernel):
    outputs = kernel.run("%%marey --fast\nprint('no')")
    text = "".join(output.get("text", "") for output in outputs)
    assert "unknown option '--fast'; usage: %%marey [--c-calls" in text and "no\n" not in text
    assert "usage: %marey STATEMENT" in "".join(output.get("text", "") for output in kernel.run("%marey"))


def test_the_old_name_of_an_option_works_and_is_reported(kernel):
    for option, warns in (("--c-calls", False), ("--calls", True)):
        outputs = kernel.run(f"%%marey {option}\nlen('text')\ntwice(1)")
        text = "".join(output.get("text", "") for output in outputs)
        assert ("--calls is now --c-calls" in text) == warns
        assert "len" in kernel.printed(NAMES)


def test_a_part_that_is_missing_is_reported_and_the_cell_runs(kernel):
    text = kernel.printed("import sys\nsys.modules['torch'] = None")
    outputs = kernel.run("%%marey --torch\nprint('ran')")
    texts = "".join(output.get("text", "") for output in outputs)
    assert "marey: not recording: " in texts and "ran\n" in texts
    kernel.run("del sys.modules['torch']")
    assert text == ""


def test_marked_ranges_alone_can_be_recorded(kernel):
    outputs = kernel.run("%%marey --no-calls\nwith marey.record_function('mark <b>'):\n    twice(1)")
    assert "mark &lt;b&gt;" in of_kind(outputs, "text/html")[0]
    assert kernel.printed(NAMES) == "mark <b>\n"


def test_much_output_passes_through(kernel):
    assert len(kernel.printed("%%marey\nfor _ in range(300):\n    print('x' * 1000)")) == 300 * 1001


def test_the_viewer_opens_on_request(kernel):
    kernel.run("import os; os.environ['BROWSER'] = 'true'")
    (page,) = of_kind(kernel.run("%%marey --view\ntwice(1)"), "text/html")
    assert re.search(r'<a href="http://127\.0\.0\.1:\d+/', page)


def test_a_trace_has_the_name_of_its_cell(kernel):
    kernel.run("%%marey\ntwice(1)")
    number = kernel.client.nb.cells[-1].execution_count
    assert kernel.printed("print(_marey.name)") == f"In[{number}]\n"


def test_a_recorded_cell_links_to_the_viewer_until_the_next_one(kernel):
    def link():
        (page,) = of_kind(kernel.run("%marey twice(1)"), "text/html")
        return html.unescape(re.search(r'<a href="([^"]+)"', page)[1])

    first = link()
    with urllib.request.urlopen(first, timeout=60) as response:
        assert b"<html" in response.read()
    link()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(first, timeout=60)


def test_the_extension_can_be_unloaded_and_loaded_again(kernel):
    kernel.run("%unload_ext marey")
    assert "not found" in "".join(output.get("text", "") for output in kernel.run("%marey twice(1)"))
    kernel.run("%load_ext marey")
    assert of_kind(kernel.run("%marey twice(1)"), "image/svg+xml")


def test_the_saved_notebook_is_valid_and_has_no_script(kernel, tmp_path):
    kernel.run("%marey twice(1)")
    nbformat.write(kernel.client.nb, tmp_path / "saved.ipynb")
    nbformat.validate(nbformat.read(tmp_path / "saved.ipynb", as_version=4))
    assert "<script" not in (tmp_path / "saved.ipynb").read_text()


def test_the_first_three_lines_of_the_guide_work_when_pasted():
    page = (SOURCE / "docs" / "guide" / "notebooks.md").read_text()
    lines = page.partition("```ipython\n")[2].partition("```")[0].splitlines()
    assert len(lines) == 3
    client = nbclient.NotebookClient(nbformat.v4.new_notebook(), timeout=120, kernel_name="python3")
    client.nb.cells = [nbformat.v4.new_code_cell(text) for text in (*lines, "\n".join(lines))]
    client.execute()
    for cell in client.nb.cells[1:]:
        assert of_kind(cell.outputs, "text/html")


def test_ipython_on_a_terminal_prints_the_summary(tmp_path):
    text = "%load_ext marey\ndef work(): return sum(range(10**6))\n\n%marey work()\nexit()\n"
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--colors=nocolor"],
        input=text,
        cwd=tmp_path,
        env={**os.environ, "IPYTHONDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert re.search(r"self +share +total +calls  function\n(.*\n)*.*In\[2\]\(1\): work", done.stdout), done.stdout
    assert "svg" not in done.stdout


class Averages:
    """A trace with these averages: (name, self time, total time) each."""

    def __init__(self, *rows):
        self.rows = [
            types.SimpleNamespace(key=key, scope=10, self_cpu_time_total=own, cpu_time_total=total, count=1)
            for key, own, total in rows
        ]

    def key_averages(self):
        return self.rows


def test_a_summary_has_the_cells_functions_even_if_others_take_the_time():
    called = [(f"c{i}", 100 - i, 100 - i) for i in range(20)]
    names = [row[-1] for row in summary_rows(Averages(*called, ("In[3](1): work", 1, 1900)))]
    assert names == [*(f"c{i}" for i in range(9)), "In[3](1): work"]
    many = [(f"In[{i}](1): f", 0.5, i) for i in range(20)]
    names = [row[-1] for row in summary_rows(Averages(*called, *many))]
    assert names == [*(f"c{i}" for i in range(5)), *(f"In[{i}](1): f" for i in range(15, 20))]
    only = [row[-1] for row in summary_rows(Averages(("In[1](1): f", 2, 2), ("len", 1, 1)))]
    assert only == ["In[1](1): f", "len"]


# ---- traces as HTML


class Tags(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found.append(tag)


def test_a_trace_as_html_escapes_names_and_has_no_script():
    with marey.profile() as prof:
        with marey.record_function("<script>alert(1)</script> & \u202e"):
            pass
    page = prof.trace._repr_html_()
    tags = Tags()
    tags.feed(page)
    assert set(tags.found) == {"p", "table", "tr", "th", "td", "img"}
    assert "&lt;script&gt;" in page and "\\u202e" in page
    assert marey.Trace()._repr_html_().startswith("<p>")


def test_the_narrowest_boxes_are_left_out_of_a_large_picture():
    events = []
    for n in range(1500):  # boxes of about a pixel, with one inside each
        events.append(marey.FunctionEvent(2 * n, f"range {n}", 1, 100 * n, 100 * n + 100))
        events.append(marey.FunctionEvent(2 * n + 1, f"inner range {n} with a long name", 1, 100 * n, 100 * n + 99))
    trace = marey.EventList(events)._trace()
    whole = trace.flame_graph(width=PICTURE_WIDTH)
    svg = inline_flame_graph(trace)
    assert len(whole) > MAX_BYTES >= len(svg.encode())
    assert "narrow boxes not shown" in svg and svg.count("<g>") > 10
    xml.etree.ElementTree.fromstring(svg)
    widths = [float(w) for w in re.findall(r'<rect [^>]*? width="([\d.]+)"', svg)]
    left_out = sorted((float(w) for w in re.findall(r'<rect [^>]*? width="([\d.]+)"', whole)), reverse=True)
    assert sorted(widths, reverse=True) == left_out[: len(widths)]
    assert within(svg, MAX_BYTES) == svg


def test_a_picture_keeps_its_colors_without_its_style_sheet():
    """GitHub and nbviewer remove it."""
    events = [marey.FunctionEvent(n, f'<rect class="c1" {n}', 1, 100 * n, 100 * n + 99) for n in range(30)]
    svg = xml.etree.ElementTree.fromstring(inline_flame_graph(marey.EventList(events)._trace()))
    space = "{http://www.w3.org/2000/svg}"
    light = svg.find(f"{space}style").text.partition("@media")[0]
    boxes = list(svg.iter(f"{space}rect"))
    assert len(boxes) == 30 and len({box.get("fill") for box in boxes}) > 3
    assert all(f".{box.get('class')}{{fill:{box.get('fill')}}}" in light for box in boxes)
    assert svg.get("font-size") == "11.5"
    width = float(svg.get("viewBox").split()[2])
    assert 7 < 11.5 * 600 / width  # the size of letters in a page of 600 pixels


def test_calls_that_were_running_at_the_start_can_be_left_out():
    def inner():
        return 1

    with marey.profile(with_stack=True) as prof:
        inner()
    names = [event.name for event in prof.trace.filtered(exclude_running=True).events()]
    assert any("inner" in name for name in names)
    assert not any(name.endswith("): test_calls_that_were_running_at_the_start_can_be_left_out") for name in names)
    assert len(names) < len(prof.trace.events())
