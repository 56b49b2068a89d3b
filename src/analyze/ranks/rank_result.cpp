// rank_result.cpp: the columns of what `marey ranks` reports.
#include <algorithm>

#include <marey/results.h>

#include "analyze/result_keys.h"

namespace marey {
namespace rank_columns {
namespace {
using enum ResultUnit;
using enum ResultShown;

std::optional<std::int32_t> known_rank(std::int32_t rank) {
    return when(rank >= 0, rank);
}
double per_step(const RankInfo& rank, std::int64_t ns) {
    return static_cast<double>(ns) / static_cast<double>(std::max<std::uint64_t>(rank.steps, 1));
}

struct PartRow {
    const CriticalPart& part;
    std::int64_t whole_ns;
    std::string title() const { return part.name + (part.is_collective ? " (collective)" : ""); }
};

struct HostRow {
    const RankReport& report;
    const RankHost& host;
    std::uint64_t facts(ClockEvidenceKind kind) const {
        return host.clock.evidence[static_cast<std::size_t>(kind)];
    }
};

}  // namespace
}  // namespace rank_columns

Result rank_result(const RankReport& report) {
    using namespace rank_columns;

    ResultRows<RankReport> totals("rank_totals", "The job as a whole", true);
    totals.columns({
        {"world_size", [](auto& r) { return when(r.world_size > 0, r.world_size); },
         "number of ranks that the program was started with"},
        {"collectives", &RankReport::collectives, "collectives with at least two ranks"},
        {"unmatched", &RankReport::unmatched, "recorded by one rank only"},
        {"unfinished", &RankReport::unfinished, "not left by all ranks that entered them"},
        {"mismatched", &RankReport::mismatched, "after the ranks disagree"},
        {"unsynchronised", &RankReport::unsynchronised, "a rank left before another one entered"},
        {"agreeing", &RankReport::agreeing, "the rank that came last by the clocks stayed shortest"},
        {"disagreeing", &RankReport::disagreeing,
         "it did not, although the error of the clocks cannot be the reason"},
        {"mean_step_ns", &RankReport::mean_step_ns, "mean of the slowest rank's times"},
        {"worst_rank", [](auto& r) { return known_rank(r.worst_rank); },
         "the rank that delayed the others most", "", No, None},
        {"step_without_worst_ns", &RankReport::step_without_worst_ns,
         "the mean step if that rank were as fast as the median"},
    });
    totals.add(report);

    ResultRows<RankInfo> ranks("ranks", "The ranks, over all of their complete steps");
    ranks.columns({
        {"rank", &RankInfo::rank, "number of the rank", "rank", Yes, None},
        {"host", &RankInfo::host, "name of its host", "host", Name},
        {"pid", &RankInfo::pid, "process id", "", No, None},
        {"steps", &RankInfo::steps, "number of complete steps", "steps"},
        {"step_mean_ns", [](auto& r) { return r.step_times.mean_ns; }, "mean time of a step", "step"},
        {"step_median_ns", [](auto& r) { return r.step_times.median_ns; }, "median time of a step"},
        {"step_p99_ns", [](auto& r) { return r.step_times.p99_ns; }, "99th percentile of the times"},
        {"step_max_ns", [](auto& r) { return r.step_times.max_ns; }, "time of the longest step"},
        {"compute_ns", &RankInfo::compute_ns, "kernels were running; without a device: operators"},
        {"input_ns", &RankInfo::input_ns, "its thread waited for input"},
        {"communication_ns", &RankInfo::communication_ns, "collectives were running"},
        {"overlap_ns", &RankInfo::overlap_ns, "it computed at the same time"},
        {"exposed_ns", &RankInfo::exposed_ns, "collectives were running and nothing was computed"},
        {"waiting_ns", &RankInfo::waiting_ns, "in collectives, before the last rank entered them"},
        {"delayed_ns", &RankInfo::delayed_ns, "time for which only this rank kept the others waiting"},
        {"critical_ns", &RankInfo::critical_ns, "its part of the critical path"},
        {"collectives", &RankInfo::collectives, "collectives with other ranks, in all steps"},
        {"step_compute_ns", [](auto& r) { return per_step(r, r.compute_ns); }, "compute_ns per step",
         "compute"},
        {"step_input_ns", [](auto& r) { return per_step(r, r.input_ns); }, "input_ns per step", "input"},
        {"step_communication_ns", [](auto& r) { return per_step(r, r.communication_ns); },
         "communication_ns per step", "communication"},
        {"step_exposed_ns", [](auto& r) { return per_step(r, r.exposed_ns()); }, "exposed_ns per step",
         "exposed"},
        {"step_waiting_ns", [](auto& r) { return per_step(r, r.waiting_ns); }, "waiting_ns per step",
         "waiting"},
        {"times_last", &RankInfo::times_last, "collectives that it entered last", "last"},
        {"step_delayed_ns", [](auto& r) { return per_step(r, r.delayed_ns); }, "delayed_ns per step",
         "delayed"},
        {"step_critical_ns", [](auto& r) { return per_step(r, r.critical_ns); }, "critical_ns per step",
         "critical"},
        {"clock_error_ns", [](auto& r) { return known_error(r.clock_error_ns); },
         "error of its host's clock"},
    });
    for (const RankInfo& rank : report.ranks) ranks.add(rank);

    ResultRows<RankStepInfo> steps("rank_steps", "Steps that at least two ranks have completed");
    steps.columns({
        {"number", &RankStepInfo::number, "number of the step", "step", Yes, None},
        {"ranks", &RankStepInfo::ranks, "number of ranks", "ranks"},
        {"duration_ns", &RankStepInfo::duration_ns, "time on the slowest rank", "duration"},
        {"most_work_ns", &RankStepInfo::most_work_ns,
         "time without waiting, on the rank where it was longest", "most work"},
        {"slowest", &RankStepInfo::slowest, "that rank", "on rank", Yes, None},
        {"median_work_ns", &RankStepInfo::median_work_ns, "the median of these times", "median"},
        {"imbalance", &RankStepInfo::imbalance, "most work / mean work - 1", "imbalance", Yes, Share},
    });
    for (const RankStepInfo& step : report.steps) steps.add(step);

    ResultRows<PartRow> parts("rank_critical_path", "The critical path over ranks, by rank and name");
    parts.columns({
        {"time_ns", [](auto& r) { return r.part.time_ns; }, "time", "time"},
        {"share", [](auto& r) { return share_of(r.part.time_ns, r.whole_ns); }, "share of the path", "share"},
        {"count", [](auto& r) { return r.part.count; }, "number of parts", "count"},
        {"rank", [](auto& r) { return r.part.rank; }, "the rank", "rank", Yes, None},
        {"name", [](auto& r) { return r.part.name; },
         "the range with most self time, or the name of the collectives"},
        {"is_collective", [](auto& r) { return r.part.is_collective; }, "the parts are collectives"},
        {"title", [](auto& r) { return when(!r.part.name.empty(), r.title()); }, "both in words", "name",
         Name, Auto, "(in no range)"},
    });
    std::int64_t path_ns = 0;
    for (const CriticalPart& part : report.critical_path) path_ns += part.time_ns;
    for (const CriticalPart& part : report.critical_path) parts.add({part, path_ns});

    ResultRows<RankFinding> findings("rank_findings", "Faults of the job, and performance problems");
    findings.columns({
        {"rule", &RankFinding::rule, "name of the rule; docs/guide/ranks.md has the thresholds", "rule"},
        {"rank", [](auto& r) { return known_rank(r.rank); }, "the rank", "rank", Yes, None},
        {"host", &RankFinding::host, "its host", "host"},
        {"share", &RankFinding::share, "of the time of all steps; 0: something is wrong", "share"},
        {"text", &RankFinding::text, "the finding in one sentence", "text", Name},
    });
    for (const RankFinding& finding : report.findings) findings.add(finding);

    ResultRows<HostRow> clocks("rank_clocks", "The clocks of the hosts");
    clocks.columns({
        {"host", [](auto& r) { return r.host.name; }, "name of the host", "host", Name},
        {"reference", [](auto& r) { return r.report.hosts[r.report.reference_host].name; },
         "the host whose clock all times are on", "reference"},
        {"offset_ns", [](auto& r) { return r.host.clock.knots.front().offset_ns; },
         "was added to its first times", "offset"},
        {"rate", [](auto& r) { return r.host.clock.rate; }, "against the reference, minus 1"},
        {"error_ns", [](auto& r) { return known_error(r.host.clock.error_ns); }, "largest error of its times",
         "error"},
        {"method", [](auto& r) { return r.host.clock.method; }, "the strongest kind of evidence", "method"},
        {"exchanges", [](auto& r) { return r.facts(ClockEvidenceKind::Exchange); },
         "facts from requests and answers"},
        {"messages", [](auto& r) { return r.facts(ClockEvidenceKind::Message); }, "facts from messages"},
        {"collectives", [](auto& r) { return r.facts(ClockEvidenceKind::Collective); },
         "facts from collectives"},
        {"wall_clocks", [](auto& r) { return r.facts(ClockEvidenceKind::WallClock); },
         "facts from wall clocks"},
    });
    for (const RankHost& host : report.hosts) clocks.add({report, host});
    auto problems = problems_table(report.problems);
    return made_result({}, totals, ranks, steps, parts, findings, clocks, problems);
}

}  // namespace marey
