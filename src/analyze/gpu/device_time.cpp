// device_time.cpp: follows launch links to the owners, and adds up times from children to parents.
#include "analyze/gpu/device_time.h"

#include "analyze/averages/range_groups.h"

namespace marey {
namespace {

constexpr std::string_view kTimedCategory = "device_time";  // must match DeviceLog::work_site

}  // namespace

bool is_device_work(const SiteInfo& site) noexcept {
    return !is_user_annotation(site.scope);
}

Row EnclosingWork::at(Row range) {
    if (is_work(range)) return range;
    const Row parent = trace_.ranges().parent[range];
    if (parent == kNoRow) return kNoRow;
    Row work = parent;
    if (!is_work(parent)) {
        const auto known = around_.find(parent);
        work = known == around_.end() ? kNoRow : known->second;
    }
    if (work != kNoRow) around_.emplace(range, work);
    return work;
}

Row range_around_call(const RangeColumns& ranges, std::span<const SiteInfo> sites, Row call) noexcept {
    Row range = call;
    while (range != kNoRow && sites[ranges.site[range]].scope == Scope::DeviceRuntime)
        range = ranges.parent[range];
    return range;
}

std::vector<LaunchedTime> launched_times(const Trace& trace) {
    const RangeColumns ranges = trace.ranges();
    const std::span<const SiteInfo> sites = trace.sites();
    std::vector<LaunchedTime> launched;
    std::vector<bool> is_seen;
    for (const LinkInfo& link : trace.links()) {
        if (link.kind != LinkKind::Launch || link.from >= ranges.size() || link.to >= ranges.size()) continue;
        const Row track = trace.track_of(link.to);
        if (track == kNoRow || trace.tracks()[track].device.type == DeviceType::Cpu) continue;
        const SiteInfo& site = sites[ranges.site[link.to]];
        const bool is_timed = trace.string(site.category) == kTimedCategory;
        if (!is_device_work(site) && !is_timed) continue;
        is_seen.resize(ranges.size());
        if (is_seen[link.to]) continue;
        is_seen[link.to] = true;
        Row owner = range_around_call(ranges, sites, link.from);
        if (owner == kNoRow) owner = link.from;
        if ((ranges.flags[owner] & kAsync) != 0) continue;
        // For measured time only the duration is known, not its position.
        launched.push_back({owner, link.to,
                            is_timed ? ranges.duration_ns[link.to] : trace.clipped_duration_ns(link.to),
                            is_timed});
    }
    return launched;
}

DeviceTimes device_times(const Trace& trace, const std::vector<LaunchedTime>& launched) {
    if (launched.empty()) return {};
    const RangeColumns ranges = trace.ranges();
    DeviceTimes times{std::vector<std::int64_t>(ranges.size()), std::vector<std::int64_t>(ranges.size())};
    std::vector<bool> is_timed(ranges.size());
    for (const LaunchedTime& entry : launched) {
        times.self[entry.owner] += entry.duration_ns;
        if (entry.is_timed) is_timed[entry.owner] = true;
    }
    // Children come after their parents, so their totals are complete when they are added.
    std::vector<std::int64_t>& inside = times.total;
    for (std::size_t row = ranges.size(); row-- > 0;) {
        if (is_timed[row]) times.self[row] -= inside[row];
        inside[row] += times.self[row];
        if (const Row parent = ranges.parent[row]; parent != kNoRow) inside[parent] += inside[row];
    }
    return times;
}

}  // namespace marey
