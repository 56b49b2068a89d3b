"""Adds annotations of CUDA graph nodes to an exported Chrome trace, and shows the nodes on lanes of their own."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_WORK = ("kernel", "gpu_memcpy", "gpu_memset")
_LANE_NAME = "Process Group Description"  # the key of an annotation that names its lane


def check(graph_lanes: str, annotations: Mapping[int, Any] | None) -> None:
    """Raise PyTorch's error if the options of an export exclude each other."""
    if graph_lanes not in ("all", "none"):
        raise ValueError(f"graph_lanes must be 'all' or 'none', got {graph_lanes!r}")
    if graph_lanes == "all" and not annotations:
        raise ValueError(
            "graph_lanes='all' needs cuda_graph_annotations: without them every graphed event would land on "
            "default_stream, which loses the stream layout and names nothing in return"
        )


def annotate(path: str, annotations: Mapping[int, Any], moves: bool, default_stream: int) -> None:
    """Rewrite a Chrome trace: device work of an annotated graph node has the annotation's fields among its arguments.

    With `moves`, all work of graphs is shown on the stream that its annotation names, or else on `default_stream`.
    """
    import gzip
    import json

    open_file: Any = gzip.open if path.endswith(".gz") else open
    with open_file(path, "rt", encoding="utf-8") as file:
        trace = json.load(file)
    lanes: dict[tuple[Any, Any], str | None] = {}  # (process, stream) that work was moved to -> its name
    working, is_annotated = set(), False
    for event in trace["traceEvents"]:
        if event.get("cat") not in _WORK:
            continue
        arguments = event.setdefault("args", {})
        node = arguments.get("graph node id")
        if node:
            stream, name, fields = _fields(annotations.get(int(node)))
            is_annotated |= bool(fields) or stream is not None
            arguments.update(fields)
            lane = (default_stream if stream is None else stream) if moves else event["tid"]
            if lane != event["tid"]:
                arguments["stream"], arguments["original_stream"] = lane, event["tid"]
                event["tid"] = lane
                lanes[event["pid"], lane] = name or lanes.get((event["pid"], lane))
            elif stream is not None:
                arguments["annotated_stream"] = stream
        working.add((event["pid"], event["tid"]))
    # An annotation of a stream whose work was moved away would be alone there.
    trace["traceEvents"] = [
        event
        for event in trace["traceEvents"]
        if event.get("cat") != "gpu_user_annotation" or (event["pid"], event["tid"]) in working
    ]
    known = {(event["pid"], event["tid"]) for event in trace["traceEvents"] if event.get("name") == "thread_name"}
    for (process, lane), name in lanes.items():
        if (process, lane) not in known:
            place = {"ph": "M", "ts": 0, "pid": process, "tid": lane}
            trace["traceEvents"] += [
                {**place, "name": "thread_name", "args": {"name": name or f"stream {lane} "}},
                {**place, "name": "thread_sort_index", "args": {"sort_index": lane}},
            ]
    if is_annotated:
        trace = {"cudaGraphInlineAnnotated": True, **trace}
    with open_file(path, "wt", encoding="utf-8") as file:
        json.dump(trace, file)


def _fields(annotation: Any) -> tuple[int | None, str | None, dict[str, str]]:
    """Return (the stream that an annotation names, the name of its lane, its other fields)."""
    stream: int | None = None
    name: str | None = None
    fields: dict[str, str] = {}
    for each in annotation if isinstance(annotation, list) else [annotation]:
        for key, value in each.items() if isinstance(each, dict) else ():
            if key == "stream":
                stream = int(value)
            else:
                fields[str(key)] = str(value)
            if key == _LANE_NAME:
                name = name or str(value)
    return stream, name, fields
