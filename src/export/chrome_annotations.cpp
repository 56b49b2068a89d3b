// chrome_annotations.cpp: joins the work on each queue by the user range that launched it.
#include "export/chrome_annotations.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "export/chrome_rows.h"

namespace marey {
namespace {

bool is_annotation(Scope scope) noexcept {
    return scope == Scope::User || scope == Scope::Step;
}

bool has_annotations(const Trace& trace) {
    const RangeColumns ranges = trace.ranges();
    return std::ranges::any_of(trace.tracks(), [&](const TrackInfo& track) {
        const auto sites = ranges.site.subspan(track.first_range, track.range_count);
        return is_of_device(track) && std::ranges::any_of(sites, [&](std::uint32_t site) {
                   return is_annotation(trace.sites()[site].scope);
               });
    });
}

}  // namespace

std::vector<ChromeAnnotation> chrome_annotations(const Trace& trace) {
    std::vector<ChromeAnnotation> all;
    if (trace.links().empty() || has_annotations(trace)) return all;
    const RangeColumns ranges = trace.ranges();
    std::map<std::pair<Row, Row>, std::size_t> places;  // by range and track
    for (const LinkInfo& link : trace.links()) {
        if (link.kind != LinkKind::Launch || link.from >= ranges.size() || link.to >= ranges.size()) continue;
        Row range = link.from;
        while (range != kNoRow && !is_annotation(trace.sites()[ranges.site[range]].scope))
            range = ranges.parent[range];
        const auto track = static_cast<Row>(trace.track_of(link.to));
        if (range == kNoRow || !is_of_device(trace.tracks()[track])) continue;
        const std::int64_t start = ranges.start_ns[link.to];
        const std::int64_t end = start + ranges.duration_ns[link.to];
        const auto [place, is_new] = places.try_emplace({range, track}, all.size());
        if (is_new) all.push_back({range, track, start, end});
        ChromeAnnotation& annotation = all[place->second];
        annotation.start_ns = std::min(annotation.start_ns, start);
        annotation.end_ns = std::max(annotation.end_ns, end);
    }
    return all;
}

}  // namespace marey
