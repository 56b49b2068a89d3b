// steps.cpp: the iterations of a loop: their durations, and how the slow ones differ.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <marey/samples.h>
#include <marey/steps.h>

#include "analyze/name_slots.h"
#include "analyze/time_percentiles.h"
#include "analyze/tree/path_tree.h"
#include "analyze/tree/step_ranges.h"

namespace marey {
namespace {

class StepContents {
  public:
    /// By place and name. The step's time outside any range has the slot kNoSlot.
    using Content = std::map<std::pair<StepPlace, std::uint32_t>, StepWork>;
    static constexpr std::uint32_t kNoSlot = ~0u;

    /// `is_step`: per site. All arguments must outlive this.
    StepContents(const Trace& trace, const NameSlots& slots, const std::vector<bool>& is_step)
        : trace_(trace), slots_(slots), is_step_(is_step), open_(slots.names.size(), 0) {}

    /// The time it takes depends on the result, not on the size of the trace.
    Content of(const StepInfo& step);

  private:
    /// A range and the part of it that lies in the step.
    struct Part {
        Row row;
        std::int64_t ns;
    };
    struct TimeInterval {
        std::int64_t start_ns, end_ns;
        Row step;
        bool is_async;
    };
    std::vector<Part> parts_of(const TrackInfo& track, const TimeInterval& stretch) const;
    bool is_around(Row row, const TimeInterval& stretch) const;
    void add_track(Content& content, StepPlace place, std::span<const Part> parts,
                   const TimeInterval& stretch);

    const Trace& trace_;
    const NameSlots& slots_;
    const std::vector<bool>& is_step_;
    std::vector<std::uint32_t> open_;  ///< per name: enclosing ranges of the current one
};

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
        std::ranges::reverse(parts);
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

std::vector<StepInfo> list_steps(const Trace& trace, const std::string& pattern) {
    const RangeColumns ranges = trace.ranges();
    const WindowClip clip(trace);
    std::vector<StepInfo> steps;
    for (const StepRange& found : find_steps(trace, pattern)) {
        StepInfo step{
            .range = found.row,
            .number = found.number,
            .name = std::string(trace.range_name(found.row)),
            .thread = trace.tracks()[trace.track_of(found.row)].thread,
            .start_ns = std::max(ranges.start_ns[found.row], clip.start_ns),
            .duration_ns = clip.duration(ranges.start_ns[found.row], ranges.duration_ns[found.row])};
        step.is_partial = (ranges.flags[found.row] & (kBeganBefore | kUnfinished)) != 0 ||
                          step.duration_ns != ranges.duration_ns[found.row];
        steps.push_back(std::move(step));
    }
    std::ranges::stable_sort(steps, {}, &StepInfo::start_ns);
    std::vector<std::int64_t> last_end(trace.threads().size(), 0);
    std::vector<bool> has_last(trace.threads().size(), false);
    for (StepInfo& step : steps) {
        const std::int64_t end = step.start_ns + step.duration_ns;
        std::int64_t& last = last_end[step.thread];
        if (has_last[step.thread]) step.gap_ns = std::max<std::int64_t>(step.start_ns - last, 0);
        last = has_last[step.thread] ? std::max(last, end) : end;
        has_last[step.thread] = true;
    }
    return steps;
}

std::vector<StepDifference> differences(const NameSlots& slots, const StepContents::Content& slow,
                                        const StepContents::Content& median) {
    std::set<std::pair<StepPlace, std::uint32_t>> keys;
    for (const auto& [key, work] : slow) keys.insert(key);
    for (const auto& [key, work] : median) keys.insert(key);
    std::vector<StepDifference> result;
    for (const auto& key : keys) {
        StepDifference& difference = result.emplace_back();
        difference.place = key.first;
        difference.is_rest = key.second == StepContents::kNoSlot;
        if (!difference.is_rest) difference.name = slots.names[key.second];
        if (const auto found = slow.find(key); found != slow.end()) difference.slow = found->second;
        if (const auto found = median.find(key); found != median.end()) difference.median = found->second;
    }
    std::ranges::stable_sort(result, {}, [](const StepDifference& each) {
        return std::tuple(each.place, -each.difference_ns(), std::string_view(each.name));
    });
    return result;
}

}  // namespace

StepReport step_report(const Trace& trace, const StepOptions& options) {
    StepReport report;
    report.steps = list_steps(trace, options.name);
    std::vector<std::size_t> whole;  // slowest first
    std::vector<std::int64_t> durations, gaps;
    for (std::size_t i = 0; i < report.steps.size(); ++i) {
        const StepInfo& step = report.steps[i];
        if (step.gap_ns >= 0) gaps.push_back(step.gap_ns);
        if (step.is_partial) continue;
        whole.push_back(i);
        durations.push_back(step.duration_ns);
    }
    report.durations = time_statistics(std::move(durations));
    report.gaps = time_statistics(std::move(gaps));
    if (whole.empty()) return report;
    std::ranges::stable_sort(whole, [&](std::size_t a, std::size_t b) {
        return report.steps[a].duration_ns > report.steps[b].duration_ns;
    });
    const std::size_t median_place = whole.size() - 1 - nearest_rank(whole.size(), 50);
    report.median_step = whole[median_place];

    if (options.slowest == 0) return report;
    const Trace seen = with_sample_tracks(trace);  // what was sampled in a step is in it, too
    const NameSlots slots(seen);
    const std::vector<bool> is_step = step_sites(seen, options.name);
    StepContents contents(seen, slots, is_step);
    const StepContents::Content median = contents.of(report.steps[report.median_step]);
    for (std::size_t i = 0; i < std::min(options.slowest, median_place); ++i) {
        SlowStep& slow = report.slowest.emplace_back();
        slow.step = whole[i];
        slow.differences = differences(slots, contents.of(report.steps[whole[i]]), median);
    }
    return report;
}

}  // namespace marey
