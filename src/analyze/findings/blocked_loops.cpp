// blocked_loops.cpp: asyncio.blocked: a task runs for long without awaiting, while others wait for the loop.
#include <marey/suspended_calls.h>

#include "analyze/findings/finding_rule.h"

namespace marey {
namespace {

/// The call in a range that has most of its time: the largest child, as long as it has half of the time.
Row heaviest_call(const Trace& trace, Row row) {
    const RangeColumns ranges = trace.ranges();
    const TrackInfo& track = trace.tracks()[trace.track_of(row)];
    const Row end = track.first_range + track.range_count;
    for (;;) {
        Row largest = kNoRow;
        for (Row child = row + 1; child < end && ranges.depth[child] > ranges.depth[row]; ++child) {
            if (ranges.parent[child] != row) continue;
            if (largest == kNoRow || ranges.duration_ns[child] > ranges.duration_ns[largest]) largest = child;
        }
        if (largest == kNoRow || ranges.duration_ns[largest] * 2 < ranges.duration_ns[row]) return row;
        row = largest;
    }
}

/// Whether at least two other tasks were alive during a step of this one: one may only wait for it.
bool has_others(const std::vector<TaskTimes>& tasks, Row process, std::uint64_t call, std::int64_t start_ns,
                std::int64_t end_ns) {
    return std::ranges::count_if(tasks, [&](const TaskTimes& task) {
               return task.process == process && task.number != call && task.start_ns <= start_ns &&
                      (task.end_ns >= end_ns || !task.is_finished);
           }) >= 2;
}

}  // namespace

void find_blocked_loops(const FindingInput& in, Findings& findings) {
    constexpr std::int64_t kLongNs = 50'000'000;
    constexpr double kBlockedShare = 0.1;  // of the window
    const std::span<const TaskInfo> names = in.trace.task_names();
    if (names.empty()) return;
    const RangeColumns ranges = in.trace.ranges();
    const std::vector<TaskTimes> all = tasks(in.trace);
    std::vector<Row> steps;  // that block the loop, longest first
    std::int64_t blocked_ns = 0;
    for (const RangeDetail& detail : in.trace.range_details()) {
        const Row row = detail.range;
        const std::int64_t ns = in.trace.clipped_duration_ns(row), start_ns = ranges.start_ns[row];
        if (detail.call == 0 || ns < kLongNs) continue;
        const Row process = in.trace.threads()[in.trace.tracks()[in.trace.track_of(row)].thread].process;
        const auto is_it = [&](const TaskInfo& task) {
            return task.process == process && task.call == detail.call;
        };
        if (std::ranges::none_of(names, is_it) ||
            !has_others(all, process, detail.call, start_ns, start_ns + ns))
            continue;
        steps.push_back(row);
        blocked_ns += ns;
    }
    if (!in.is_much(blocked_ns, kBlockedShare)) return;
    std::ranges::stable_sort(steps, std::greater<>(), [&](Row row) { return ranges.duration_ns[row]; });
    const Row longest = steps.front(), cause = heaviest_call(in.trace, longest);
    Finding& finding = add_finding(in, findings, "asyncio.blocked", blocked_ns,
                                   "tasks block the event loop " + times_text(steps.size()) + ", for up to " +
                                       time_text(static_cast<double>(ranges.duration_ns[longest])) +
                                       ", while other tasks wait: " + in_words(in.trace.range_name(cause)) +
                                       " runs without awaiting",
                                   in.trace.range_name(cause));
    set_place(in, finding, longest);
    add_evidence(finding, "steps of tasks that take 50 ms or more", std::ssize(steps), blocked_ns);
    steps.resize(std::min(steps.size(), kMostEvidence));
    for (const Row step : steps) {
        const Row inside = heaviest_call(in.trace, step);
        std::string text(in.trace.range_name(step));
        if (inside != step) text += ", most of it in " + std::string(in.trace.range_name(inside));
        add_evidence(finding, text, -1, ranges.duration_ns[step]);
    }
}

}  // namespace marey
