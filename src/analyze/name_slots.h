// name_slots.h: dense numbers for the distinct site names of a trace, so that analyses can index arrays
// instead of hashing.
#pragma once

#include <unordered_map>

#include <marey/trace.h>

#include "analyze/averages/site_groups.h"

namespace marey {

/// Several sites may share a name; `of_site` maps each site to the slot of its name. The views are valid as
/// long as the trace.
struct NameSlots {
    std::vector<std::uint32_t> of_site;
    std::vector<std::string_view> names;

    /// `merge_steps`: names as in tables, where "ProfilerStep#3" is "ProfilerStep*".
    explicit NameSlots(const Trace& trace, bool merge_steps = false) {
        std::unordered_map<std::string_view, std::uint32_t> known;
        of_site.reserve(trace.sites().size());
        for (const SiteInfo& site : trace.sites()) {
            std::string_view name = trace.string(site.name);
            if (merge_steps) name = group_name(name);
            const auto [entry, fresh] = known.try_emplace(name, static_cast<std::uint32_t>(names.size()));
            if (fresh) names.push_back(name);
            of_site.push_back(entry->second);
        }
    }
};

/// The part of [start, start + duration) that lies in the window; never negative.
struct WindowClip {
    std::int64_t start_ns;
    std::int64_t end_ns;

    explicit WindowClip(const Trace& trace)
        : start_ns(trace.window().start_ns), end_ns(trace.window().end_ns) {}

    std::int64_t duration(std::int64_t start, std::int64_t duration) const noexcept {
        const std::int64_t from = start > start_ns ? start : start_ns;
        const std::int64_t end = start + duration;
        const std::int64_t to = end < end_ns ? end : end_ns;
        return to > from ? to - from : 0;
    }

    /// Whether no range of a track needs to be clipped.
    bool contains(const RangeColumns& ranges, const TrackInfo& track) const noexcept {
        if (track.range_count == 0) return true;
        Row last = track.first_range + track.range_count - 1;  // then: the last of the outermost ranges
        while (ranges.depth[last] > 0 && ranges.parent[last] < last) last = ranges.parent[last];
        return ranges.start_ns[track.first_range] >= start_ns &&
               ranges.start_ns[last] + ranges.duration_ns[last] <= end_ns;
    }
};

}  // namespace marey
