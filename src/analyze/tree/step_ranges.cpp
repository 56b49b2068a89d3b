// step_ranges.cpp: finds the ranges that are the iterations of a loop; those on async tracks, and the ranges
// that began and ended in them.
#include "analyze/tree/step_ranges.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "analyze/track_place.h"
#include "analyze/tree/path_tree.h"

namespace marey {
namespace {

constexpr std::string_view kTorchPrefix = "ProfilerStep#";

/// The number after the last '#', if only digits follow.
std::optional<std::int64_t> step_number(std::string_view name) {
    const std::size_t mark = name.find_last_of('#');
    if (mark == std::string_view::npos || mark + 1 == name.size()) return {};
    const char *first = name.data() + mark + 1, *last = name.data() + name.size();
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(first, last, number);
    if (*first == '-' || end != last || error != std::errc()) return {};
    return number;
}

bool matches(std::string_view pattern, std::string_view text) {
    std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            resume = t;
        } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
            ++p, ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++resume;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

}  // namespace

std::vector<bool> step_sites(const Trace& trace, std::string_view pattern) {
    std::vector<bool> result;
    result.reserve(trace.sites().size());
    for (const SiteInfo& site : trace.sites()) {
        const std::string_view name = trace.string(site.name);
        const bool named_so = name.starts_with(kTorchPrefix) && step_number(name);
        result.push_back(pattern.empty() ? site.scope == Scope::Step || named_so : matches(pattern, name));
    }
    return result;
}

std::vector<StepRange> find_steps(const Trace& trace, std::string_view pattern) {
    const RangeColumns ranges = trace.ranges();
    const std::vector<bool> is_step = step_sites(trace, pattern);
    std::vector<StepRange> steps;
    if (std::ranges::find(is_step, true) == is_step.end()) return steps;
    std::vector<std::int64_t> count_of_thread(trace.threads().size(), 0);
    for (const TrackInfo& track : trace.tracks()) {
        if (place_of(track) == Place::Device) continue;
        const Row end = track.first_range + track.range_count;
        for (Row row = track.first_range; row < end;) {
            if (!is_step[ranges.site[row]]) {
                ++row;
                continue;
            }
            const std::int64_t ordinal = count_of_thread[track.thread]++;
            steps.push_back({row, step_number(trace.range_name(row)).value_or(ordinal)});
            const std::uint32_t depth = ranges.depth[row];
            do {
                ++row;
            } while (row < end && ranges.depth[row] > depth);
        }
    }
    return steps;
}

CrossingSteps::CrossingSteps(const Trace& trace) {
    for (const StepRange& step : find_steps(trace, "")) {
        const TrackInfo& own = trace.tracks()[trace.track_of(step.row)];
        if (own.kind != TrackKind::Async) continue;
        const auto is_of_thread = [&](const TrackInfo& track) {
            return track.thread == own.thread && track.kind == TrackKind::Thread;
        };
        const auto track = std::find_if(trace.tracks().begin(), trace.tracks().end(), is_of_thread);
        if (track != trace.tracks().end()) add(trace, step.row, *track);
    }
}

void CrossingSteps::add(const Trace& trace, Row step, const TrackInfo& track) {
    const RangeColumns ranges = trace.ranges();
    const auto end_of = [&](Row row) { return ranges.start_ns[row] + ranges.duration_ns[row]; };
    const Row last = track.first_range + track.range_count;
    const auto starts = ranges.start_ns.subspan(track.first_range, track.range_count);
    const auto first = std::lower_bound(starts.begin(), starts.end(), ranges.start_ns[step]);
    Row row = track.first_range + static_cast<Row>(first - starts.begin());
    Row around = row > track.first_range ? row - 1 : kNoRow;
    while (around != kNoRow && end_of(around) < end_of(step)) around = ranges.parent[around];
    steps.push_back(step);
    parent[step] = around;
    std::int64_t inside = 0;
    while (row < last && ranges.start_ns[row] < end_of(step)) {
        if (end_of(row) <= end_of(step)) {
            parent[row] = step;
            const std::int64_t duration = trace.clipped_duration_ns(row);
            inside += duration;
            if (ranges.parent[row] != kNoRow) more_self_ns.emplace_back(ranges.parent[row], duration);
        }
        const std::uint32_t depth = ranges.depth[row];
        if ((ranges.flags[row] & kUnfinished) != 0)
            open.insert(row++);
        else
            do {
                ++row;
            } while (row < last && ranges.depth[row] > depth);
    }
    more_self_ns.emplace_back(step, -inside);
    if (around != kNoRow) more_self_ns.emplace_back(around, -trace.clipped_duration_ns(step));
}

}  // namespace marey
