"""SVG pictures of traces: well-formed for any reader of XML, and the same from Python and the command."""

import gzip
import subprocess
import sys
from xml.etree import ElementTree

import pytest

import marey

SVG = "{http://www.w3.org/2000/svg}"


def recorded():
    with marey.profile(with_stack=True) as prof:
        with marey.record_function("a < b & 'c'"):
            sum(range(1000))
    return prof.trace


def names(svg):
    root = ElementTree.fromstring(svg)
    assert root.tag == SVG + "svg"
    return [group.find(SVG + "title").text.split("\n")[0] for group in root.iter(SVG + "g")]


@pytest.mark.parametrize("picture", [marey.Trace.flame_graph, marey.Trace.timeline])
def test_pictures_show_the_names_of_ranges(picture):
    assert "a < b & 'c'" in names(picture(recorded()))


def test_the_command_draws_the_same_pictures(tmp_path):
    trace = recorded()
    trace.save(tmp_path / "a.marey")
    for suffix, svg in ((".svg", trace.flame_graph()), (".timeline.svg", trace.timeline())):
        command = [sys.executable, "-m", "marey", "export", "--show-importlib", "a.marey", "-o", "a" + suffix]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
        assert (tmp_path / ("a" + suffix)).read_text(encoding="utf-8") == svg


def test_a_picture_can_be_compressed(tmp_path):
    trace = recorded()
    trace.export(tmp_path / "a.timeline.svg.gz")
    assert gzip.decompress((tmp_path / "a.timeline.svg.gz").read_bytes()).decode() == trace.timeline()
