// steps.cpp: the iterations of a loop: their durations, and how the slow ones differ.
#include <marey/steps.h>

#include <algorithm>
#include <set>

#include "analyze/time_ranks.h"
#include "analyze/tree/step_content.h"
#include "analyze/tree/step_ranges.h"

namespace marey {
namespace {

std::vector<StepInfo> list_steps(const Trace& trace, const std::string& pattern) {
    const RangeColumns ranges = trace.ranges();
    const WindowClip clip(trace);
    std::vector<StepInfo> steps;
    for (const StepRange& found : find_steps(trace, pattern)) {
        StepInfo step;
        step.range = found.row;
        step.number = found.number;
        step.name = trace.range_name(found.row);
        step.thread = trace.tracks()[trace.track_of(found.row)].thread;
        step.start_ns = std::max(ranges.start_ns[found.row], clip.start_ns);
        step.duration_ns = clip.duration(ranges.start_ns[found.row], ranges.duration_ns[found.row]);
        step.is_partial = (ranges.flags[found.row] & (kBeganBefore | kUnfinished)) != 0 ||
                          step.duration_ns != ranges.duration_ns[found.row];
        steps.push_back(std::move(step));
    }
    std::stable_sort(steps.begin(), steps.end(),
                     [](const StepInfo& a, const StepInfo& b) { return a.start_ns < b.start_ns; });
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
    std::stable_sort(result.begin(), result.end(), [](const StepDifference& a, const StepDifference& b) {
        if (a.place != b.place) return a.place < b.place;
        if (a.difference_ns() != b.difference_ns()) return a.difference_ns() > b.difference_ns();
        return a.name < b.name;
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
    std::stable_sort(whole.begin(), whole.end(), [&](std::size_t a, std::size_t b) {
        return report.steps[a].duration_ns > report.steps[b].duration_ns;
    });
    const std::size_t median_place = whole.size() - 1 - nearest_rank(whole.size(), 50);
    report.median_step = whole[median_place];

    const NameSlots slots(trace);
    const std::vector<bool> is_step = step_sites(trace, options.name);
    StepContents contents(trace, slots, is_step);
    const StepContents::Content median = contents.of(report.steps[report.median_step]);
    for (std::size_t i = 0; i < std::min(options.slowest, median_place); ++i) {
        SlowStep& slow = report.slowest.emplace_back();
        slow.step = whole[i];
        slow.differences = differences(slots, contents.of(report.steps[whole[i]]), median);
    }
    return report;
}

}  // namespace marey
