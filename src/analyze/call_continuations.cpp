// call_continuations.cpp: one pass over the range details, which only a few ranges have.
#include "analyze/call_continuations.h"

#include <tuple>
#include <unordered_map>
#include <utility>

namespace marey {
namespace {

/// A call: its process and its id within the process.
struct Call {
    Row process;
    std::uint64_t number;
    bool operator==(const Call&) const = default;
};

struct CallHash {
    std::size_t operator()(const Call& call) const noexcept {
        return std::hash<std::uint64_t>{}(call.number * 0x9e3779b97f4a7c15 + call.process);
    }
};

}  // namespace

std::vector<Row> further_parts(const Trace& trace) {
    std::vector<Row> further;
    std::unordered_map<Call, const RangeDetail*, CallHash> firsts;
    const std::span<const TrackInfo> tracks = trace.tracks();
    const std::span<const std::int64_t> starts = trace.ranges().start_ns;
    const auto place = [&](const RangeDetail& part) {
        return std::tuple((part.part & kFirstPart) == 0, starts[part.range], part.range);
    };
    std::size_t track = 0;
    for (const RangeDetail& detail : trace.range_details()) {
        if (detail.call == 0 || (detail.part & kWholeCall) != 0) continue;
        while (detail.range >= tracks[track].first_range + tracks[track].range_count) ++track;
        const Row process = trace.threads()[tracks[track].thread].process;
        const auto [entry, is_new] = firsts.try_emplace({process, detail.call}, &detail);
        if (is_new) continue;
        const RangeDetail* later = &detail;
        if (place(*later) < place(*entry->second)) std::swap(later, entry->second);
        further.push_back(later->range);
    }
    return further;
}

}  // namespace marey
