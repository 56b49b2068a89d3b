// rank_findings.cpp: which ranks are slow, and why: rules with thresholds (docs/guide/ranks.md).
#include "analyze/ranks/job_state.h"

#include <algorithm>

#include "analyze/ranks/finding_text.h"
#include "analyze/time_percentiles.h"

namespace marey {
namespace {

constexpr double kLateSteps = 0.5;         // of a rank's steps
constexpr double kLateCollectives = 0.25;  // of a rank's collectives, where there are no steps
constexpr std::uint64_t kFewestCollectives = 8;
constexpr double kExplained = 0.5;       // of the delay, by more work than on the median rank
constexpr double kImbalanceSteps = 0.5;  // of all steps

std::int64_t total_time(const RankInfo& rank) {
    return rank.step_times.total_ns;
}
/// Own work that is neither computing nor waiting for input: launching, Python, other host code.
std::int64_t other_time(const RankInfo& rank) {
    return total_time(rank) - rank.compute_ns - rank.input_ns - rank.exposed_ns();
}

/// A rank's time per step beyond that of the median rank.
double excess(const std::vector<RankInfo>& ranks, const RankInfo& rank, auto time) {
    const auto per_step = [&](const RankInfo& each) {
        return static_cast<double>(time(each)) / static_cast<double>(std::max<std::uint64_t>(each.steps, 1));
    };
    std::vector<double> all(ranks.size());
    std::transform(ranks.begin(), ranks.end(), all.begin(), per_step);
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(nearest_rank(all.size(), 50));
    std::nth_element(all.begin(), middle, all.end());
    return per_step(rank) - *middle;
}

std::string rank_text(const RankInfo& rank) {
    return "rank " + std::to_string(rank.rank) + " on " + (rank.host.empty() ? "an unknown host" : rank.host);
}

bool is_often_late(bool has_steps, const RankInfo& rank, const RankLateness& own) {
    if (has_steps) return static_cast<double>(own.late_steps) >= kLateSteps * static_cast<double>(rank.steps);
    return rank.collectives >= kFewestCollectives &&
           static_cast<double>(own.late_collectives) >=
               kLateCollectives * static_cast<double>(rank.collectives);
}

RankFinding delay_finding(const RankReport& report, const RankInfo& rank, const JobLateness& lateness,
                          const RankLateness& own, double share) {
    const double per_step =
        static_cast<double>(own.delayed_ns) / static_cast<double>(std::max<std::uint64_t>(lateness.steps, 1));
    struct Cause {
        const char* rule;
        double excess_ns;
        const char* text;
    };
    const Cause causes[] = {
        {"late_input", excess(report.ranks, rank, [](const RankInfo& each) { return each.input_ns; }),
         "it waits for input data "},
        {"slow_kernels", excess(report.ranks, rank, [](const RankInfo& each) { return each.compute_ns; }),
         "its kernels and operators take "},
        {"straggler", excess(report.ranks, rank, other_time), "its other code takes "},
    };
    const Cause& most = *std::ranges::max_element(causes, {}, &Cause::excess_ns);
    RankFinding finding{
        .rank = rank.rank,
        .host = rank.host,
        .share = share,
        .text = rank_text(rank) + " keeps the others waiting for " + percent_text(share) + " of the time, " +
                (lateness.has_steps ? "in " + std::to_string(own.late_steps) + " of " +
                                          std::to_string(rank.steps) + " steps: "
                                    : "last in " + std::to_string(rank.times_last) + " of " +
                                          std::to_string(rank.collectives) + " collectives: ")};
    if (most.excess_ns >= kExplained * per_step) {
        finding.rule = most.rule;
        finding.text += most.text + time_text(most.excess_ns) + " longer " +
                        (lateness.has_steps ? "per step " : "") + "than the median rank";
    } else {
        finding.rule = "slow_link";
        finding.text +=
            "its own work takes no longer than that of the median rank, but it leaves "
            "collectives late";
    }
    return finding;
}

}  // namespace

std::vector<RankFinding> rank_findings(const RankReport& report, const JobLateness& lateness) {
    std::vector<RankFinding> findings;
    if (lateness.steps_ns <= 0) return findings;
    double waiting = 0, total = 0, explained = 0;
    for (std::size_t i = 0; i < report.ranks.size(); ++i) {
        const RankInfo& rank = report.ranks[i];
        const RankLateness& own = lateness.ranks[i];
        waiting += static_cast<double>(own.waiting_ns);
        total += static_cast<double>(own.time_ns);
        const double share = static_cast<double>(own.delayed_ns) / lateness.steps_ns;
        if (share < kDelayShare || !is_often_late(lateness.has_steps, rank, own)) continue;
        explained += static_cast<double>(own.delayed_ns) * static_cast<double>(report.ranks.size() - 1);
        findings.push_back(delay_finding(report, rank, lateness, own, share));
    }
    std::ranges::stable_sort(findings, std::greater<>(), &RankFinding::share);
    const double share = total > 0 ? (waiting - explained) / total : 0;
    const bool is_usual =
        static_cast<double>(lateness.waiting_steps) >= kImbalanceSteps * static_cast<double>(lateness.steps);
    if (share >= kImbalanceShare && is_usual) {
        const auto [least, most] =
            std::ranges::minmax_element(report.ranks, [](const RankInfo& a, const RankInfo& b) {
                return total_time(a) - a.waiting_ns < total_time(b) - b.waiting_ns;
            });
        RankFinding& finding = findings.emplace_back();
        finding.rule = "imbalance";
        finding.share = share;
        finding.text = "ranks wait for each other for " + percent_text(share) +
                       " of the time: their work differs, from " +
                       time_text(static_cast<double>(total_time(*least) - least->waiting_ns) /
                                 static_cast<double>(std::max<std::uint64_t>(least->steps, 1))) +
                       " per step on " + rank_text(*least) + " to " +
                       time_text(static_cast<double>(total_time(*most) - most->waiting_ns) /
                                 static_cast<double>(std::max<std::uint64_t>(most->steps, 1))) +
                       " on " + rank_text(*most);
    }
    return findings;
}

}  // namespace marey
