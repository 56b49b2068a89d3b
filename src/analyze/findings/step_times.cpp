// step_times.cpp: step.first, step.outlier and step.between: steps that take longer than the median, and the
// time between steps.
#include <map>

#include "analyze/findings/finding_rule.h"
#include "analyze/gpu/gpu_host.h"

namespace marey {
namespace {

struct StepTimes {
    const std::vector<StepInfo>& steps;
    std::int64_t median_ns = 0, total_ns = 0;
    std::size_t first = 0;  ///< number of slow steps at the beginning

    bool is_slow(const StepInfo& step) const { return FindingInput::part(step.duration_ns, median_ns) > 1.5; }
};

std::string short_time(std::int64_t ns) {
    return time_text(static_cast<double>(ns));
}

std::int64_t more_ns(const StepDifference& difference) {
    return difference.slow.self_ns - difference.median.self_ns;
}

std::string place_in_words(const StepDifference& difference) {
    return in_words(difference.is_rest ? "" : difference.name);
}

/// The names in which a step takes more time than the median step, by self time; empty if it was not
/// compared.
std::vector<StepDifference> step_causes(const StepReport& report, const StepInfo& step) {
    std::vector<StepDifference> found;
    for (const SlowStep& slow : report.slowest) {
        if (report.steps[slow.step].range != step.range) continue;
        std::ranges::copy_if(slow.differences, std::back_inserter(found), [](const StepDifference& each) {
            return each.place == StepPlace::Inside && more_ns(each) > 0;
        });
    }
    std::ranges::stable_sort(found, std::greater<>(), more_ns);
    found.resize(std::min(found.size(), kMostEvidence));
    std::erase_if(found, [&, most = found.empty() ? 0 : more_ns(found.front())](const StepDifference& each) {
        return more_ns(each) * 20 < most;
    });
    return found;
}

void add_step_causes(Finding& finding, const StepReport& report, const StepInfo& step) {
    for (const StepDifference& each : step_causes(report, step)) {
        std::string text = "step " + std::to_string(step.number) + ": more time in " + place_in_words(each);
        if (each.slow.count != each.median.count && !each.is_rest)
            text += ", " + times_text(each.slow.count) + " instead of " + count_text(each.median.count);
        add_evidence(finding, text, -1, more_ns(each));
    }
}

void find_first(const FindingInput& in, const StepTimes& times, Findings& findings) {
    constexpr double kFirstShare = 0.1;  // of the time of all steps
    std::int64_t lost_ns = 0;
    for (std::size_t i = 0; i < times.first; ++i) lost_ns += times.steps[i].duration_ns - times.median_ns;
    if (!in.is_much(lost_ns, 0) || FindingInput::part(lost_ns, times.total_ns) < kFirstShare) return;
    const StepInfo& step = times.steps.front();
    Finding& finding = add_finding(
        in, findings, "step.first", lost_ns,
        (times.first == 1 ? "the first step takes " : "the first of the slow first steps takes ") +
            short_time(step.duration_ns) + ", the median step " + short_time(times.median_ns));
    set_place(finding, step);
    add_evidence(finding, "slow first steps, and their time beyond the median",
                 static_cast<std::int64_t>(times.first), lost_ns);
    add_evidence(finding, "all steps", std::ssize(times.steps), times.total_ns);
    add_step_causes(finding, in.steps, step);
}

/// Slow steps whose time beyond the median went mostly into one name.
struct Outliers {
    std::vector<const StepInfo*> steps{};  ///< slowest first
    std::int64_t lost_ns = 0;
};

void find_outliers(const FindingInput& in, const StepTimes& times, Findings& findings) {
    constexpr double kOutlierShare = 0.05;  // of the time of all steps; one step alone: twice that
    std::map<std::string, Outliers> by_cause;
    std::int64_t slow = 0;
    for (std::size_t i = times.first; i < times.steps.size(); ++i) {
        const StepInfo& step = times.steps[i];
        if (!times.is_slow(step)) continue;
        ++slow;
        const std::int64_t lost_ns = step.duration_ns - times.median_ns;
        const std::vector<StepDifference> why = step_causes(in.steps, step);
        if (why.empty() || more_ns(why.front()) * 2 < lost_ns) continue;
        Outliers& outliers = by_cause[place_in_words(why.front())];
        outliers.steps.push_back(&step);
        outliers.lost_ns += lost_ns;
    }
    const auto most =
        std::ranges::max_element(by_cause, {}, [](const auto& each) { return each.second.lost_ns; });
    if (most == by_cause.end() || slow * 5 > std::ssize(times.steps)) return;
    auto& [cause, outliers] = *most;
    const std::int64_t count = std::ssize(outliers.steps);
    if (!in.is_much(outliers.lost_ns, 0) ||
        FindingInput::part(outliers.lost_ns, times.total_ns) < (count == 1 ? 2 : 1) * kOutlierShare)
        return;
    std::ranges::stable_sort(outliers.steps, std::greater<>(), &StepInfo::duration_ns);
    const StepInfo& worst = *outliers.steps.front();
    Finding& finding = add_finding(
        in, findings, "step.outlier", outliers.lost_ns,
        count_text(static_cast<std::uint64_t>(count)) + " of " + count_text(times.steps.size()) +
            (count == 1 ? " steps takes " : " steps take up to ") + short_time(worst.duration_ns) +
            " instead of " + short_time(times.median_ns) + ", most of it in " + cause);
    if (count == 1) finding.certainty = FindingCertainty::Possible;
    set_place(finding, worst);
    add_evidence(finding, "these steps, and their time beyond the median", count, outliers.lost_ns);
    outliers.steps.resize(std::min<std::size_t>(outliers.steps.size(), 2));
    for (const StepInfo* const step : outliers.steps) add_step_causes(finding, in.steps, *step);
}

void find_between(const FindingInput& in, const StepTimes& times, Findings& findings) {
    constexpr double kBetweenShare = 0.15;  // of steps and the time between them
    std::int64_t gaps_ns = 0;
    const StepInfo* longest = &times.steps.front();
    HostTimes work;  // by the innermost range of the thread
    std::vector<HostGap> gaps;
    for (const StepInfo& step : times.steps) {
        if (step.gap_ns <= 0) continue;
        gaps.push_back({step.start_ns - step.gap_ns, step.start_ns, &work, nullptr});
        gaps_ns += step.gap_ns;
        if (step.gap_ns > longest->gap_ns) longest = &step;
    }
    const double share = FindingInput::part(gaps_ns, gaps_ns + times.total_ns);
    if (!in.is_much(gaps_ns, 0) || share < kBetweenShare) return;
    Finding& finding = add_finding(in, findings, "step.between", gaps_ns,
                                   percent_text(share) + " of the loop's time passes between its steps, " +
                                       short_time(gaps_ns / std::ssize(gaps)) + " each time");
    set_place(finding, *longest);
    finding.start_ns -= longest->gap_ns;
    finding.duration_ns = longest->gap_ns;
    add_evidence(finding, "times between steps", std::ssize(gaps), gaps_ns);
    add_evidence(finding, "steps", std::ssize(times.steps), times.total_ns);
    const HostRanges host(in.trace);
    add_host_times(host, longest->thread, gaps);
    const std::vector<GpuHostWork> rows = work.rows(host.names());
    for (std::size_t i = 0; i < std::min(rows.size(), kMostEvidence); ++i)
        add_evidence(finding, "between steps: " + in_words(rows[i].name), -1, rows[i].time_ns);
}

}  // namespace

void find_step_times(const FindingInput& in, Findings& findings) {
    constexpr std::size_t kLeastSteps = 6;
    if (in.whole_steps.size() < kLeastSteps) return;
    StepTimes times{in.whole_steps};
    std::vector<std::int64_t> durations;
    for (const StepInfo& step : times.steps) {
        durations.push_back(step.duration_ns);
        times.total_ns += step.duration_ns;
    }
    const auto middle = durations.begin() + std::ssize(durations) / 2;
    std::ranges::nth_element(durations, middle);
    times.median_ns = *middle;
    while (times.first < times.steps.size() / 4 && times.is_slow(times.steps[times.first])) ++times.first;
    find_first(in, times, findings);
    find_outliers(in, times, findings);
    find_between(in, times, findings);
}

}  // namespace marey
