"""A trace inside a notebook: a summary, and a flame graph of limited size. Without scripts."""

from __future__ import annotations

import html
import re
from itertools import compress
from operator import not_

from marey._text import dotted, duration_text, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from marey._marey import Trace

MAX_BYTES = 150_000
PICTURE_WIDTH = 960  # about a cell's: pages scale the picture to theirs, and its letters with it

_BOX_END = "</g>\n"
_WIDTH = re.compile(r'<rect [^>]*? width="([\d.]+)"')
_COLOR = re.compile(r"\.(c\d)\{fill:(#\w+)\}")
_COLORED = re.compile(r'<rect class="(c\d)"')
_SIZE = re.compile(r' width="[\d.]+" height="[\d.]+"')


_TITLES = ("self", "share", "total", "calls", "function")
_ROWS = 10
_WAITS = 3
_CALLS = (10, 11)  # the scopes of Python and C functions


def _work_and_waiting(trace: Trace) -> tuple[list[Any], list[Any]]:
    """Return the averages of a trace by self time: those of functions that work, and that only wait."""
    from marey._marey import known_waits

    waits = set(known_waits())
    averages = sorted(trace.key_averages(), key=lambda average: -average.self_cpu_time_total)
    is_wait = [average.scope in _CALLS and dotted(average.key) in waits for average in averages]
    return list(compress(averages, map(not_, is_wait))), list(compress(averages, is_wait))


def waiting_text(trace: Trace) -> str:
    """Return "waiting 1.2 s: time.sleep 1.1 s, ..."; "" if no function only waits."""
    _, waiting = _work_and_waiting(trace)
    total = sum(average.self_cpu_time_total for average in waiting)
    if not total:
        return ""
    named = [f"{printable(each.key)} {duration_text(each.self_cpu_time_total * 1000)}" for each in waiting[:_WAITS]]
    return f"waiting {duration_text(total * 1000)}: {', '.join(named)}{', ...' if len(waiting) > _WAITS else ''}"


def summary_rows(trace: Trace) -> list[tuple[str, str, str, str, str]]:
    """Return the cells below _TITLES for the functions with the most self time, without those that only wait.

    Half of the rows may be taken by the notebook's own functions with the most total time, even if their time is spent
    in the functions that they call.
    """
    averages, _ = _work_and_waiting(trace)
    own = sorted((each for each in averages if each.key.startswith("In[")), key=lambda each: -each.cpu_time_total)
    kept = {id(each) for each in own[: _ROWS // 2]}
    others = [each for each in averages if id(each) not in kept][: _ROWS - len(kept)]
    kept |= {id(each) for each in others}
    whole = sum(average.self_cpu_time_total for average in averages) or 1
    return [
        (
            duration_text(average.self_cpu_time_total * 1000),
            f"{100 * average.self_cpu_time_total / whole:.1f}%",
            duration_text(average.cpu_time_total * 1000),
            f"{average.count:,}",
            printable(average.key),
        )
        for average in averages
        if id(average) in kept
    ]


def headline(trace: Trace) -> str:
    """Return "1,204 calls in 70.1 ms": a generator is one call, however many ranges its parts have."""
    averages = trace.key_averages()
    calls = sum(average.count for average in averages)
    is_calls = any(average.scope in _CALLS for average in averages)
    noun = ("call" if is_calls else "range") + ("" if calls == 1 else "s")
    return f"{calls:,} {noun} in {duration_text(trace.window_ns)}"


def summary_text(trace: Trace) -> str:
    """Return the summary for a terminal."""
    lines = [headline(trace), *(f"marey: {printable(text)}" for _, text, _ in trace.problems)]
    for row in [_TITLES, *summary_rows(trace)]:
        lines.append(f"{row[0]:>8} {row[1]:>6} {row[2]:>8} {row[3]:>9}  {row[4]}")
    return "\n".join([*lines, *filter(None, [waiting_text(trace)])])


def summary_html(trace: Trace) -> str:
    """Return the summary as HTML."""

    def line(row: tuple[str, ...], kind: str) -> str:
        aligned = ["right;white-space:nowrap"] * 4 + ["left"]
        cells = (
            f'<{kind} style="text-align:{align}">{html.escape(text)}</{kind}>'
            for align, text in zip(aligned, row, strict=True)
        )
        return f"<tr>{''.join(cells)}</tr>"

    notes = "".join(f"<p>{html.escape(text)}</p>" for _, text, _ in trace.problems)
    waiting = f"<p>{html.escape(text)}</p>" if (text := waiting_text(trace)) else ""
    rows = "".join(line(row, "td") for row in summary_rows(trace))
    return f"<p>{html.escape(headline(trace))}</p>{notes}<table>{line(_TITLES, 'th')}{rows}</table>{waiting}"


def page_of(trace: Trace) -> str:
    """Return the summary and the flame graph as HTML."""
    return summary_html(trace) + (as_image(inline_flame_graph(trace)) if len(trace) else "")


def inline_flame_graph(trace: Trace, limit: int = MAX_BYTES) -> str:
    """Return the flame graph of a trace as SVG of at most `limit` bytes: the narrowest boxes are left out."""
    # Named after its cell, not after the kernel. It counts calls as the summary does.
    title = trace.name if trace.name.startswith("In[") else ""
    return within(colored(trace.flame_graph(title, headline(trace).partition(" in ")[0], PICTURE_WIDTH)), limit)


def colored(svg: str) -> str:
    """Return a picture that is readable without its style sheet, which GitHub and nbviewer remove."""
    colors = dict(_COLOR.findall(svg.partition("@media")[0]))
    svg = _COLORED.sub(lambda match: f'{match[0]} fill="{colors[match[1]]}"', svg)
    # It is as wide as the page, also where the page shows it by an <img>, which does not see its style.
    style = 'font-family="sans-serif" font-size="11.5" style="max-width:100%;height:auto" width="100%"'
    return _SIZE.sub("", svg, count=1).replace("<svg ", f"<svg {style} ", 1)


def within(svg: str, limit: int) -> str:
    """Return a picture without its narrowest boxes, as many as needed. A box is wider than those above it."""
    if len(svg.encode()) <= limit:
        return svg
    head, first, rest = svg.partition("<g>")
    parts = (first + rest).split(_BOX_END)
    tail = parts.pop()
    boxes = [(_width(part), part + _BOX_END) for part in parts]
    note = "; narrow boxes not shown"
    left = limit - len((head + tail + note).encode())
    kept = set()  # places; a box comes after the one below it, so that this is taken first
    for place in sorted(range(len(boxes)), key=lambda place: (-boxes[place][0], place)):
        left -= len(boxes[place][1].encode())
        if left < 0:
            break
        kept.add(place)
    return _noted(head, note) + "".join(boxes[place][1] for place in sorted(kept)) + tail


def _width(box: str) -> float:
    match = _WIDTH.search(box)
    return float(match[1]) if match is not None else 0.0


def _noted(head: str, note: str) -> str:
    """Add a note to the line below the title."""
    before, mark, after = head.partition('<text class="s"')
    line, end, more = after.partition("</text>")
    return before + mark + line + (note if mark else "") + end + more


def as_image(svg: str) -> str:
    """Return an <img> element with the picture inside, so that its styles do not affect the page."""
    import base64

    data = base64.b64encode(svg.encode()).decode()
    return f'<img alt="flame graph" style="width:100%" src="data:image/svg+xml;base64,{data}"/>'
