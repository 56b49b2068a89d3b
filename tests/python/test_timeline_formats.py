"""Firefox Profiler and OpenTelemetry files that Marey writes, compared with the trace."""

import collections
import json

import pytest
from conftest import SOURCE

import marey
from marey.trace_context import Span

RANDOM = sorted((SOURCE / "tests/data/corpus/saved_trace").glob("random*.trace"))
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture(scope="module")
def spans():
    values = {"scope": "user_scope", "traceparent": PARENT, "rows": 3, "share": 0.5, "cached": True, "name": 'a"b'}
    with marey.profile() as profiler:
        with marey.record_function("outer"):
            with marey.record_function_fast("GET /cart", keyword_values=values):
                with marey.record_function("query"):
                    marey.instant("row")
            marey.counter("queue", 3.5)
            marey.counter("queue", 1)
    return profiler.trace


@pytest.fixture(params=[file.name for file in RANDOM])
def random_trace(request):
    return marey.load(RANDOM[0].parent / request.param)


def firefox(trace, folder):
    trace.export(folder / "x.profile.json")
    return json.loads((folder / "x.profile.json").read_text("utf-8"))


def columns(table):
    """The columns of a table; all have its length."""
    found = {key: value for key, value in table.items() if isinstance(value, list)}
    assert {len(values) for values in found.values()} <= {table["length"]}
    return found


def check_thread(profile, thread):
    """Every index is valid, and prefixes come before their stacks. Returns milliseconds by function name."""
    texts = profile["shared"]["stringArray"]
    tables = {key: columns(thread[key]) for key in ("samples", "stackTable", "frameTable", "funcTable", "markers")}
    stacks, functions = tables["stackTable"], tables["funcTable"]
    for row, prefix in enumerate(stacks["prefix"]):
        assert prefix is None or 0 <= prefix < row
    times = collections.Counter()
    for stack, weight in zip(tables["samples"]["stack"], tables["samples"]["weight"], strict=True):
        assert weight > 0
        if stack is not None:
            function = tables["frameTable"]["func"][stacks["frame"][stack]]
            times[texts[functions["name"][function]]] += weight
    return times


def track_self_times(trace):
    """For each track, nanoseconds by name that no range of the same track covers, inside the window."""
    window = trace.info()["window"]
    ranges = trace.to_arrow().to_pylist()
    times = collections.defaultdict(collections.Counter)
    for row in ranges:
        start, end = row["start_ns"], row["start_ns"] + row["duration_ns"]
        inside = max(min(end, window["end_ns"]) - max(start, window["start_ns"]), 0)
        times[row["track"]][row["name"]] += inside
        if row["depth"] > 0:
            times[row["track"]][ranges[row["parent"]]["name"]] -= inside
    return times


def test_a_firefox_thread_has_the_self_times_of_its_track(random_trace, tmp_path):
    profile = firefox(random_trace, tmp_path)
    tracks = random_trace.to_arrow("tracks").to_pylist()
    expected = track_self_times(random_trace)
    shown = [number for number, track in enumerate(tracks) if track["kind"] != "async"]
    assert len(profile["threads"]) >= len(shown)
    for number, thread in zip(shown, profile["threads"], strict=False):
        times = {name: round(time * 1e6) for name, time in check_thread(profile, thread).items()}
        assert times == +expected[number]


def test_firefox_profiles_have_markers_and_counters(spans, tmp_path):
    profile = firefox(spans, tmp_path)
    assert profile["meta"]["preprocessedProfileVersion"] == 56
    texts = profile["shared"]["stringArray"]
    (thread,) = profile["threads"]
    markers = columns(thread["markers"])
    shown = {texts[name]: phase for name, phase in zip(markers["name"], markers["phase"], strict=True)}
    assert shown == {"outer": 1, "GET /cart": 1, "query": 1, "row": 0}
    (counter,) = profile["counters"]
    assert (counter["name"], counter["samples"]["count"]) == ("queue", [3.5, -2.5])


def parsed_spans(path):
    """The spans by name, parsed with OpenTelemetry's own message classes."""
    pytest.importorskip("opentelemetry.proto")
    from google.protobuf import json_format
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    data = json_format.Parse(path.read_text("utf-8"), TracesData())
    return [span for each in data.resource_spans for scope in each.scope_spans for span in scope.spans], data


def test_otlp_spans_have_the_times_of_the_trace(spans, tmp_path):
    spans.export(tmp_path / "x.otlp.json")
    found, data = parsed_spans(tmp_path / "x.otlp.json")
    offset = spans.to_arrow("processes").to_pylist()[0]["realtime_offset_ns"]
    expected = {
        row["name"]: (row["start_ns"] + offset, row["start_ns"] + offset + row["duration_ns"])
        for row in spans.to_arrow().to_pylist()
    }
    assert {span.name: (span.start_time_unix_nano, span.end_time_unix_nano) for span in found} == expected
    resource = {each.key: each.value for each in data.resource_spans[0].resource.attributes}
    assert resource["process.pid"].int_value > 0 and resource["service.name"].string_value


def test_otlp_spans_nest_and_carry_values(spans, tmp_path):
    spans.export(tmp_path / "x.otlp.json")
    document = json.loads((tmp_path / "x.otlp.json").read_text("utf-8"))
    by_name = {each["name"]: each for each in document["resourceSpans"][0]["scopeSpans"][0]["spans"]}
    assert by_name["query"]["parentSpanId"] == by_name["GET /cart"]["spanId"]
    values = {each["key"]: each["value"] for each in by_name["GET /cart"]["attributes"]}
    assert values["rows"] == {"intValue": "3"} and values["share"] == {"doubleValue": 0.5}
    assert values["cached"] == {"boolValue": True} and values["name"] == {"stringValue": 'a"b'}


def test_a_range_with_a_traceparent_belongs_to_that_trace(spans, tmp_path):
    spans.export(tmp_path / "x.otlp.json")
    document = json.loads((tmp_path / "x.otlp.json").read_text("utf-8"))
    by_name = {each["name"]: each for each in document["resourceSpans"][0]["scopeSpans"][0]["spans"]}
    assert by_name["GET /cart"]["traceId"] == by_name["query"]["traceId"] == PARENT.split("-")[1]
    assert by_name["GET /cart"]["parentSpanId"] == PARENT.split("-")[2]
    assert by_name["outer"]["traceId"] != PARENT.split("-")[1]


def exported_span(span, folder):
    with marey.profile() as profiler, marey.record_function_fast("request", keyword_values=span.values):
        pass
    profiler.trace.export(folder / "x.otlp.json")
    document = json.loads((folder / "x.otlp.json").read_text("utf-8"))
    return document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]


def test_a_span_has_the_ids_that_it_sends_to_others(tmp_path):
    span = Span(PARENT)
    found = exported_span(span, tmp_path)
    assert span.traceparent == f"00-{found['traceId']}-{found['spanId']}-01"
    assert (found["traceId"], found["parentSpanId"]) == tuple(PARENT.split("-")[1:3])


@pytest.mark.parametrize("header", [None, "", "nonsense", PARENT.upper(), PARENT + "-x", PARENT.replace("4", "0")[:-3]])
def test_a_span_without_a_valid_header_begins_a_trace(header, tmp_path):
    span = Span(header)
    found = exported_span(span, tmp_path)
    assert span.traceparent == f"00-{found['traceId']}-{found['spanId']}-01"
    assert found["traceId"] == span.trace_id and "parentSpanId" not in found


def test_ids_survive_reading_and_writing(spans, tmp_path):
    spans.export(tmp_path / "x.otlp.json")
    marey.load(tmp_path / "x.otlp.json").export(tmp_path / "y.otlp.json")
    ids = []
    for name in "xy":
        found, _ = parsed_spans(tmp_path / f"{name}.otlp.json")
        ids.append(sorted((each.name, each.trace_id, each.span_id, each.parent_span_id) for each in found))
    assert [each[:3] for each in ids[0]] == [each[:3] for each in ids[1]]


def test_random_traces_are_valid_otlp(random_trace, tmp_path):
    random_trace.export(tmp_path / "x.otlp.json")
    found, _ = parsed_spans(tmp_path / "x.otlp.json")
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in found)
    assert len({span.span_id for span in found}) == len(found)
