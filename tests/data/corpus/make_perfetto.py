#!/usr/bin/env python3
"""make_perfetto.py FOLDER: writes small traces in the style of Perfetto's producers (pip install perfetto protobuf).

It made sdk.pftrace, phases.pftrace and compressed.pftrace in tests/data/corpus/perfetto. Marey wrote the others there, from
made-up traces (src/trace/random_trace_fixture.h).
"""

import sys
import zlib
from pathlib import Path

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

FOLDER = Path(sys.argv[1])


def packet(trace: pb.Trace, sequence: int, **fields: object) -> pb.TracePacket:
    return trace.packet.add(trusted_packet_sequence_id=sequence, **fields)


def sdk() -> pb.Trace:
    """In the style of the tracing SDK: interned names, an incremental clock, counters attached to slices, flows."""
    trace = pb.Trace()
    first = packet(trace, 3, sequence_flags=1)
    first.clock_snapshot.clocks.add(clock_id=6, timestamp=1000)
    first.clock_snapshot.clocks.add(clock_id=64, timestamp=1, is_incremental=True, unit_multiplier_ns=1000)
    first.trace_packet_defaults.timestamp_clock_id = 64
    first.trace_packet_defaults.track_event_defaults.track_uuid = 22
    first.trace_packet_defaults.track_event_defaults.extra_counter_track_uuids.append(33)
    process = packet(trace, 3).track_descriptor
    process.uuid = 11
    process.process.pid, process.process.process_name = 5, "p"
    thread = packet(trace, 3).track_descriptor
    thread.uuid, thread.parent_uuid = 22, 11
    thread.thread.pid, thread.thread.tid, thread.thread.thread_name = 5, 6, "t"
    counter = packet(trace, 3).track_descriptor
    counter.uuid, counter.parent_uuid, counter.name = 33, 22, "c"
    counter.counter.is_incremental = True
    for i in range(3):
        begin = packet(trace, 3, sequence_flags=2, timestamp=5)
        event = begin.track_event
        event.type, event.name_iid = 1, 1
        event.category_iids.append(1)
        event.extra_counter_values.append(4)
        event.flow_ids.append(9)
        event.debug_annotations.add(name_iid=1, string_value_iid=1)
        event.debug_annotations.add(name="d").dict_entries.add(name="k").array_values.add(int_value=2)
        if i == 0:
            begin.interned_data.event_names.add(iid=1, name="n")
            begin.interned_data.event_categories.add(iid=1, name="cat")
            begin.interned_data.debug_annotation_names.add(iid=1, name="a")
            begin.interned_data.debug_annotation_string_values.add(iid=1, str=b"v")
    for _ in range(3):
        packet(trace, 3, timestamp=5).track_event.type = 2
    return trace


def phases() -> pb.Trace:
    """In the style of old Chrome versions: a thread per sequence, time deltas, events with Chrome JSON phases."""
    trace = pb.Trace()
    first = packet(trace, 1, incremental_state_cleared=True).thread_descriptor
    first.pid, first.tid, first.reference_timestamp_us = 1, 2, 100
    packet(trace, 1).process_descriptor.pid = 1
    for phase in "BEXbeInSTpFC":
        event = packet(trace, 1).track_event
        event.timestamp_delta_us, event.name = 3, "x"
        event.categories.append("c")
        old = event.legacy_event
        old.phase, old.duration_us, old.unscoped_id, old.bind_id, old.flow_direction = ord(phase), 4, 7, 8, 2
    tree = trace.packet.add().process_tree
    tree.processes.add(pid=1)
    tree.threads.add(tid=2)
    trace.packet.add().ftrace_events.cpu = 1
    return trace


def main() -> None:
    compressed = pb.Trace()
    compressed.packet.add(compressed_packets=zlib.compress(phases().SerializeToString()))
    for name, trace in (("sdk", sdk()), ("phases", phases()), ("compressed", compressed)):
        (FOLDER / f"{name}.pftrace").write_bytes(trace.SerializeToString())


main()
