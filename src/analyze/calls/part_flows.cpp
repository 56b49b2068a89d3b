// part_flows.cpp: links each part of a suspended call to the next.
#include <algorithm>
#include <memory>
#include <tuple>

#include <marey/suspended_calls.h>

#include "trace/string_pool.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

constexpr std::string_view kName = "next part";
constexpr std::size_t kMaxPerCall = 1000;
constexpr std::size_t kMaxTotal = 100'000;

struct Part {
    Row process;
    std::uint64_t call;
    std::int64_t start_ns;
    Row row;
    bool is_of(const Part& other) const noexcept { return process == other.process && call == other.call; }
};

/// The parts grouped by call, in the order in which they ran.
std::vector<Part> parts_of(const Trace& trace) {
    std::vector<Part> parts;
    const std::span<const TrackInfo> tracks = trace.tracks();
    std::size_t track = 0;
    for (const RangeDetail& detail : trace.range_details()) {
        if (detail.call == 0 || (detail.part & kWholeCall) != 0) continue;
        while (detail.range >= tracks[track].first_range + tracks[track].range_count) ++track;
        parts.push_back({trace.threads()[tracks[track].thread].process, detail.call,
                         trace.ranges().start_ns[detail.range], detail.range});
    }
    std::ranges::sort(parts, {}, [](const Part& part) {
        return std::tie(part.process, part.call, part.start_ns, part.row);
    });
    return parts;
}

bool has_flows(const Trace& trace) {
    return std::ranges::any_of(trace.links(), [&](const LinkInfo& link) {
        return link.kind == LinkKind::Flow && trace.string(link.name) == kName;
    });
}

}  // namespace

Trace with_part_flows(const Trace& trace) {
    const std::vector<Part> parts = parts_of(trace);
    std::vector<LinkInfo> links;
    std::size_t of_call = 0;
    for (std::size_t i = 1; i < parts.size() && links.size() < kMaxTotal; ++i) {
        of_call = parts[i].is_of(parts[i - 1]) ? of_call + 1 : 0;
        if (of_call != 0 && of_call < kMaxPerCall)
            links.push_back({parts[i - 1].row, parts[i].row, LinkKind::Flow, 0});
    }
    if (links.empty() || has_flows(trace)) return trace;
    auto data = std::make_shared<TraceData>(trace.data());
    StringPool strings(data->strings);
    const StringId name = strings.intern(kName);
    for (LinkInfo& link : links) link.name = name;
    data->links.insert(data->links.end(), links.begin(), links.end());
    std::ranges::stable_sort(data->links, {}, &LinkInfo::from);
    return Trace(std::move(data));
}

}  // namespace marey
