"""Makes the profiles in tests/data/corpus: PYTHONPATH=tests/python python profile_samples.py FOLDER.

Run it in its own folder, so that the profiles hold no other paths. Needs the packages py-spy, pyinstrument,
protobuf, opentelemetry-sdk and opentelemetry-exporter-otlp-proto-common, and the program perf, which must be allowed
to record. A maker that is missing is left out.
"""

import base64
import cProfile
import gzip
import importlib.util
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path


def leaf(count):
    return sum(number * number for number in range(count))


def branch(count):
    return leaf(count) + leaf(count // 2)


def recurse(depth):
    return leaf(2000) if depth == 0 else recurse(depth - 1)


def work(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        branch(2000)
        recurse(4)


def with_cprofile(folder):
    profiler = cProfile.Profile()
    profiler.runcall(work, 0.05)
    profiler.dump_stats(folder / "pstats/cprofile.prof")


def with_py_spy(folder):
    kinds = {
        "raw": "collapsed/py_spy.folded",
        "speedscope": "speedscope/py_spy.speedscope.json",
        "chrometrace": "chrome/py_spy.json",
    }
    for kind, name in kinds.items():
        command = ["py-spy", "record", "-r", "50", "-f", kind, "-o", str(folder / name)]
        subprocess.run([*command, "--", sys.executable, __file__, "--work"], check=True, capture_output=True)
        text = (folder / name).read_text()
        for path, shown in (
            (sys.base_prefix, "/usr"),
            (sys.prefix, "/usr"),
            (f"{Path(__file__).resolve().parent}/", ""),
        ):
            text = text.replace(path, shown)
        (folder / name).write_text(text)


def with_pyinstrument(folder):
    for kind, name in (
        ("speedscope", "speedscope/pyinstrument.speedscope.json"),
        ("pstats", "pstats/pyinstrument.prof"),
    ):
        command = [sys.executable, "-m", "pyinstrument", "-r", kind, "-o", str(folder / name)]
        subprocess.run([*command, __file__, "--work"], check=True, capture_output=True)


def with_perf(folder):
    data = folder / "perf.data"
    command = ["perf", "record", "-q", "-F", "99", "-e", "cpu-clock", "-g", "-o", str(data)]
    subprocess.run([*command, sys.executable, __file__, "--work"], check=True, capture_output=True)
    done = subprocess.run(["perf", "script", "-i", str(data)], check=True, capture_output=True, text=True)
    data.unlink()
    samples = done.stdout.replace(sys.base_prefix, "/usr").split("\n\n")[:60]
    (folder / "perf/cpu_clock.txt").write_text("\n\n".join(samples) + "\n\n")


def with_opentelemetry(folder):
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

    spans = []

    class Keep(SpanExporter):
        def export(self, batch):
            spans.extend(batch)
            return SpanExportResult.SUCCESS

    provider = TracerProvider(resource=Resource({"service.name": "shop", "process.pid": 77}))
    provider.add_span_processor(SimpleSpanProcessor(Keep()))
    tracer = provider.get_tracer("sample")
    with tracer.start_as_current_span("GET /cart", attributes={"http.status": 200, "cached": False, "share": 0.5}):
        with tracer.start_as_current_span("SELECT", attributes={"db.rows": 3}) as span:
            span.add_event("retried", {"times": 1})
        with tracer.start_as_current_span("render"):
            pass
    message = MessageToDict(encode_spans(spans))
    for resource in message["resourceSpans"]:  # OTLP JSON has hexadecimal ids, protobuf's JSON base64
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for key in {"traceId", "spanId", "parentSpanId"} & set(span):
                    span[key] = base64.b64decode(span[key]).hex()
    text = json.dumps(message)
    (folder / "otlp/sdk.json").write_text(text)
    (folder / "otlp/lines.json").write_text(text + "\n" + text.replace('"shop"', '"bank"') + "\n")


def with_protobuf(folder):
    from pprof_messages import Profile

    texts = ["", "samples", "count", "cpu", "nanoseconds", "main.main", "main.leaf", "runtime.goexit", "/src/main.go",
             "inlined", "thread", "worker 1"]  # fmt: skip
    profile = Profile(string_table=texts, period=10_000_000, time_nanos=1_700_000_000_000_000_000)
    profile.period_type.type, profile.period_type.unit = 3, 4
    for kind, unit in ((1, 2), (3, 4)):
        profile.sample_type.add(type=kind, unit=unit)
    for number, name in enumerate((5, 6, 7, 9), 1):
        profile.function.add(id=number, name=name, system_name=name, filename=8 if number != 3 else 0, start_line=3)
    for number, lines in enumerate(([1], [4, 2], [3]), 1):
        location = profile.location.add(id=number, address=0x1000 * number)
        for function in lines:
            location.line.add(function_id=function, line=10)
    for stack, count in (([2, 1, 3], 7), ([1, 3], 2), ([2, 1, 3], 1)):
        sample = profile.sample.add(location_id=stack, value=[count, count * 10_000_000])
        if count == 1:
            sample.label.add(key=10, str=11)
    (folder / "pprof/go_like.pb.gz").write_bytes(gzip.compress(profile.SerializeToString(), mtime=0))


def main():
    if sys.argv[1] == "--work":
        return work(1.0)
    folder = Path(sys.argv[1])
    for name in ("pstats", "chrome", "collapsed", "speedscope", "perf", "otlp", "pprof"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    with_cprofile(folder)
    if shutil.which("py-spy"):
        with_py_spy(folder)
    if importlib.util.find_spec("pyinstrument"):
        with_pyinstrument(folder)
    if shutil.which("perf"):
        with_perf(folder)
    for make in (with_opentelemetry, with_protobuf):
        try:
            make(folder)
        except ImportError as error:
            print(f"left out: {error}")


if __name__ == "__main__":
    main()
