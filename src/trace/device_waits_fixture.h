// device_waits_fixture.h: for tests: device queues with ranges that only wait for them.
#pragma once

#include <set>
#include <string>

#include "trace/trace_assembler.h"

namespace marey::testing {

/// A thread, a queue that is waited for before it works, and one that is only waited for.
inline Trace device_waits_trace() {
    TraceAssembler assembler;
    ProcessInfo process;
    process.pid = 4000;
    assembler.add_process(process);
    const auto thread = [&](std::uint32_t id, const char* name, std::int64_t os_tid) {
        ThreadInfo info;
        info.id = id;
        info.os_tid = os_tid;
        info.name = assembler.string(name);
        return assembler.add_thread(info);
    };
    const auto add = [&](const Lane& lane, std::int64_t start, const char* name, Scope scope) {
        assembler.add_range(assembler.add_lane(lane), start, 50,
                            assembler.site({assembler.string(name), 0, 0, scope}));
    };
    const Device device{DeviceType::Cuda, 1};
    const StringId waits = assembler.string("stream 7");
    const Row queue = thread(2, "stream 7", 0), other = thread(3, "stream 9", 0);
    add({thread(1, "main", 11), TrackKind::Thread, {}, -1, 0}, 0, "call", Scope::Function);
    add({queue, TrackKind::Async, device, 7, waits}, 10, "wait", Scope::Device);
    add({queue, TrackKind::Device, device, 7, 0}, 100, "kernel", Scope::Device);
    add({other, TrackKind::Async, device, 9, assembler.string("stream 9")}, 200, "wait", Scope::Device);
    return assembler.finish();
}

/// A line for each range, sorted: its name, and the kind, device, queue and thread of its track.
inline std::multiset<std::string> places_of_ranges(const Trace& trace) {
    std::multiset<std::string> lines;
    for (Row row = 0; row < trace.ranges().size(); ++row) {
        const TrackInfo& track = trace.tracks()[trace.track_of(row)];
        lines.insert(std::string(trace.range_name(row)) + " " + std::to_string(static_cast<int>(track.kind)) +
                     " " + device_type_name(track.device.type) + ":" + std::to_string(track.device.index) +
                     " " + std::to_string(track.stream) + " " +
                     std::string(trace.string(trace.threads()[track.thread].name)));
    }
    return lines;
}

}  // namespace marey::testing
