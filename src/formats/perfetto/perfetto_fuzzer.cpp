// perfetto_fuzzer.cpp: reads any bytes as a Perfetto trace, validates and writes it, and reads it again.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include <marey/error.h>
#include <marey/export.h>

#include "formats/perfetto/read.h"

namespace {

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "broken promise: %s\n", what);
    std::abort();
}

void check_value(const marey::Trace& trace, const marey::Argument& value) {
    require(value.key < trace.string_count(), "keys are strings of the trace");
    if (value.kind == marey::ValueKind::String)
        require(value.string < trace.string_count(), "texts are strings of the trace");
    if (value.kind == marey::ValueKind::List) {
        const std::size_t count = trace.list_items().size();
        require(value.list.first <= count && value.list.count <= count - value.list.first,
                "lists have their items");
    }
    if (value.kind == marey::ValueKind::Array)
        require(value.array < trace.arrays().size(), "arrays are in the trace");
}

void check(const marey::Trace& trace) {
    const marey::RangeColumns ranges = trace.ranges();
    for (const marey::TrackInfo& track : trace.tracks()) {
        require(track.thread < trace.threads().size(), "tracks have a thread");
        std::vector<marey::Row> open;
        for (marey::Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            require(ranges.duration_ns[row] >= 0, "durations are not negative");
            require(ranges.site[row] < trace.sites().size(), "ranges have a site");
            require(ranges.depth[row] <= open.size(), "depths grow by one");
            open.resize(ranges.depth[row]);
            if (!open.empty()) {
                require(ranges.parent[row] == open.back(), "ranges lie in their parents");
                require(ranges.start_ns[row] >= ranges.start_ns[open.back()] &&
                            ranges.start_ns[row] + ranges.duration_ns[row] <=
                                ranges.start_ns[open.back()] + ranges.duration_ns[open.back()],
                        "ranges lie within the times of their parents");
            }
            open.push_back(row);
            for (const marey::Argument& value : trace.range_arguments(row)) check_value(trace, value);
        }
    }
    for (const marey::Argument& value : trace.list_items()) check_value(trace, value);
    for (marey::Row row = 0; row < trace.instants().size(); ++row) {
        require(trace.instants().thread[row] < trace.threads().size(), "instants have a thread");
        for (const marey::Argument& value : trace.instant_arguments(row)) check_value(trace, value);
    }
    for (const marey::LinkInfo& link : trace.links())
        require(link.from < ranges.size() && link.to < ranges.size(), "links join ranges");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        const marey::Trace trace =
            marey::read_perfetto_bytes({reinterpret_cast<const char*>(data), size}, "fuzzed");
        check(trace);
        std::ostringstream out;
        marey::write_perfetto(trace, out);
        const marey::Trace again = marey::read_perfetto_bytes(out.str(), "written");
        check(again);
        require(again.ranges().size() == trace.ranges().size(), "every range is written and read");
        require(again.instants().size() == trace.instants().size(), "so is every instant");
        require(again.counters().size() == trace.counters().size(), "and every counter value");
    } catch (const marey::Error&) {
    }
    return 0;
}
