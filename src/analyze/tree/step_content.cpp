// step_content.cpp: the work of every thread and device in an interval, by name.
#include "analyze/tree/step_content.h"

#include <algorithm>

#include "analyze/tree/path_tree.h"

namespace marey {

StepContents::Content StepContents::of(const StepInfo& step) {
    const TimeInterval stretch{step.start_ns, step.start_ns + step.duration_ns, step.range,
                               (trace_.ranges().flags[step.range] & kAsync) != 0};
    const Row process = trace_.threads()[step.thread].process;
    Content content;
    content[{StepPlace::Inside, kNoSlot}] = {1, step.duration_ns, step.duration_ns};
    for (const TrackInfo& track : trace_.tracks()) {
        const Place place = place_of(track);
        if (place == Place::Async) continue;
        const bool is_host = place == Place::Host;
        if (is_host && trace_.threads()[track.thread].process != process) continue;
        const StepPlace where = !is_host                      ? StepPlace::Devices
                                : track.thread == step.thread ? StepPlace::Inside
                                                              : StepPlace::OtherThreads;
        add_track(content, where, parts_of(track, stretch), stretch);
    }
    StepWork& rest = content[{StepPlace::Inside, kNoSlot}];
    rest.total_ns = rest.self_ns = std::max<std::int64_t>(rest.self_ns, 0);
    return content;
}

/// In row order: first the ranges that were open at the start of the interval, outermost first.
std::vector<StepContents::Part> StepContents::parts_of(const TrackInfo& track,
                                                       const TimeInterval& stretch) const {
    const RangeColumns ranges = trace_.ranges();
    const auto starts = ranges.start_ns.subspan(track.first_range, track.range_count);
    const auto first = std::lower_bound(starts.begin(), starts.end(), stretch.start_ns);
    const auto end_of = [&](Row row) { return ranges.start_ns[row] + ranges.duration_ns[row]; };
    std::vector<Part> parts;
    Row row = track.first_range + static_cast<Row>(first - starts.begin());
    if (row > track.first_range) {
        // A range that started earlier and is still running is the last one that started earlier, or encloses
        // it.
        for (Row before = row - 1;; before = ranges.parent[before]) {
            if (end_of(before) > stretch.start_ns)
                parts.push_back({before, std::min(end_of(before), stretch.end_ns) - stretch.start_ns});
            if (ranges.depth[before] == 0) break;
        }
        std::reverse(parts.begin(), parts.end());
    }
    const Row end = track.first_range + track.range_count;
    for (; row < end && ranges.start_ns[row] < stretch.end_ns; ++row)
        parts.push_back({row, std::min(end_of(row), stretch.end_ns) - ranges.start_ns[row]});
    return parts;
}

bool StepContents::is_around(Row row, const TimeInterval& stretch) const {
    const RangeColumns ranges = trace_.ranges();
    const bool covers = ranges.start_ns[row] <= stretch.start_ns &&
                        ranges.start_ns[row] + ranges.duration_ns[row] >= stretch.end_ns;
    return covers && (stretch.is_async || row < stretch.step);  // a parent's row comes first
}

void StepContents::add_track(Content& content, StepPlace place, std::span<const Part> parts,
                             const TimeInterval& stretch) {
    const RangeColumns ranges = trace_.ranges();
    const auto counts = [&](Row row) {
        if (is_step_[ranges.site[row]]) return false;
        return place != StepPlace::Inside || !is_around(row, stretch);
    };
    const auto slot_of = [&](Row row) { return slots_.of_site[ranges.site[row]]; };
    std::vector<std::pair<std::uint32_t, std::uint32_t>> around;  // depth, slot
    for (const Part& part : parts) {
        if (!counts(part.row)) continue;
        const std::uint32_t depth = ranges.depth[part.row], slot = slot_of(part.row);
        while (!around.empty() && around.back().first >= depth) {
            --open_[around.back().second];
            around.pop_back();
        }
        StepWork& work = content[{place, slot}];
        ++work.count;
        work.self_ns += part.ns;
        if (open_[slot]++ == 0) work.total_ns += part.ns;
        around.emplace_back(depth, slot);
        const Row parent = ranges.parent[part.row];
        if (parent != kNoRow && counts(parent)) {
            content[{place, slot_of(parent)}].self_ns -= part.ns;
        } else if (place == StepPlace::Inside) {
            content[{place, kNoSlot}].self_ns -= part.ns;
        }
    }
    for (const auto& [depth, slot] : around) --open_[slot];
}

}  // namespace marey
