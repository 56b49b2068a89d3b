// gpu_waits.cpp: device API calls of the host, and the calls that wait for devices.
#include <algorithm>
#include <map>

#include "analyze/gpu/gpu_tables.h"
#include "analyze/time_percentiles.h"
#include "analyze/track_place.h"

namespace marey {
namespace {

/// The caller of a call: the enclosing Python function, else the nearest range, else the call itself.
Row caller_of(const HostRanges& host, Row call) {
    const Row function = host.function_around(call);
    if (function != kNoRow) return function;
    const Row range = host.range_around(call);
    return range != kNoRow ? range : call;
}

/// By thread.
std::map<Row, std::vector<Row>> waiting_calls(const HostRanges& host) {
    const Trace& trace = host.trace();
    std::vector<bool> is_wait;
    for (const SiteInfo& site : trace.sites())
        is_wait.push_back(site.scope == Scope::DeviceRuntime && is_wait_call(trace.string(site.name)));
    std::map<Row, std::vector<Row>> calls;
    for (const TrackInfo& track : trace.tracks()) {
        if (place_of(track) != Place::Host) continue;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            if (is_wait[host.ranges().site[row]]) calls[track.thread].push_back(row);
        }
    }
    return calls;
}

/// Sums the time from the first end of a wait in each gap of the thread to the end of the gap. Both inputs
/// are sorted by time.
std::int64_t idle_after(const std::vector<std::int64_t>& ends, const std::vector<ThreadGap>& gaps,
                        Row thread) {
    std::int64_t idle_ns = 0;
    auto end = ends.begin();
    for (const ThreadGap& gap : gaps) {
        if (gap.thread != thread) continue;
        while (end != ends.end() && *end < gap.start_ns) ++end;
        if (end != ends.end() && *end < gap.end_ns) idle_ns += gap.end_ns - *end;
    }
    return idle_ns;
}

}  // namespace

std::vector<GpuCall> gpu_calls(const HostRanges& host) {
    const Trace& trace = host.trace();
    std::vector<std::vector<std::int64_t>> times(host.names().names.size());
    for (const TrackInfo& track : trace.tracks()) {
        if (place_of(track) != Place::Host) continue;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            if (host.scope(row) == Scope::DeviceRuntime)
                times[host.name(row)].push_back(host.clipped_ns(row));
        }
    }
    std::vector<GpuCall> calls;
    for (std::size_t name = 0; name < times.size(); ++name) {
        if (times[name].empty()) continue;
        calls.push_back({std::string(host.names().names[name]), time_statistics(std::move(times[name]))});
    }
    std::ranges::sort(calls, {}, [](const GpuCall& call) {
        return std::pair(-call.times.total_ns, std::string_view(call.name));
    });
    return calls;
}

std::vector<GpuWaits> gpu_waits(const HostRanges& host, const std::vector<std::vector<ThreadGap>>& gaps) {
    const RangeColumns& ranges = host.ranges();
    std::vector<GpuWaits> all;
    for (auto& [thread, rows] : waiting_calls(host)) {
        std::ranges::stable_sort(rows, [&](Row a, Row b) { return ranges.start_ns[a] < ranges.start_ns[b]; });
        GpuWaits waits;
        waits.thread = thread;
        LauncherTable callers(host.names());
        std::vector<std::int64_t> ends;
        for (const Row row : rows) {
            // A wait inside another one (driver API inside runtime API) is the same wait.
            const std::int64_t end = ranges.start_ns[row] + ranges.duration_ns[row];
            if (!ends.empty() && end <= ends.back()) continue;
            ends.push_back(end);
            const std::int64_t time_ns = host.clipped_ns(row);
            ++waits.count;
            waits.time_ns += time_ns;
            callers.add(host.name(caller_of(host, row)), time_ns);
        }
        for (const std::vector<ThreadGap>& of_device : gaps)
            waits.idle_after_ns += idle_after(ends, of_device, thread);
        waits.callers = callers.rows();
        all.push_back(std::move(waits));
    }
    std::ranges::stable_sort(all, std::greater<>(), &GpuWaits::time_ns);
    return all;
}

}  // namespace marey
