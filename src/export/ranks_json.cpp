// ranks_json.cpp: the comparison of ranks as JSON.
#include <marey/export.h>

#include "export/problems_json.h"
#include "export/statistics_json.h"
#include "json/json_writer.h"

namespace marey {
namespace {

void write_rank(JsonWriter& json, const RankInfo& rank) {
    json.begin_object().member("rank", rank.rank).member("host", rank.host).member("pid", rank.pid);
    json.member("steps", rank.steps);
    write_statistics(json.key("step_times"), rank.step_times);
    json.member("compute_ns", rank.compute_ns).member("communication_ns", rank.communication_ns);
    json.member("overlap_ns", rank.overlap_ns).member("exposed_ns", rank.exposed_ns());
    json.member("input_ns", rank.input_ns).member("collectives", rank.collectives);
    json.member("waiting_ns", rank.waiting_ns).member("times_last", rank.times_last);
    json.member("delayed_ns", rank.delayed_ns).member("critical_ns", rank.critical_ns);
    write_clock_error(json, "clock_error_ns", rank.clock_error_ns);
    json.end_object();
}

void write_host(JsonWriter& json, const RankReport& report, const RankHost& host) {
    const HostClock& clock = host.clock;
    json.begin_object().member("host", host.name);
    json.member("reference", report.hosts[report.reference_host].name);
    json.member("offset_ns", clock.knots.front().offset_ns).member("rate", clock.rate);
    write_clock_error(json, "error_ns", clock.error_ns);
    json.member("method", clock.method).key("evidence").begin_object();
    constexpr const char* kKinds[] = {"exchange", "message", "collective", "wall_clock"};
    for (std::size_t i = 0; i < kClockEvidenceKinds; ++i) json.member(kKinds[i], clock.evidence[i]);
    json.end_object().end_object();
}

}  // namespace

std::string rank_report_json(const RankReport& report) {
    std::string text;
    JsonWriter json(text, kJsonIndent);
    json.begin_object().key("ranks").begin_array();
    for (const RankInfo& rank : report.ranks) write_rank(json, rank);
    json.end_array().key("steps").begin_array();
    for (const RankStepInfo& step : report.steps) {
        json.begin_object().member("number", step.number).member("ranks", step.ranks);
        json.member("duration_ns", step.duration_ns).member("slowest", step.slowest);
        json.member("most_work_ns", step.most_work_ns).member("median_work_ns", step.median_work_ns);
        json.member("imbalance", step.imbalance).end_object();
    }
    json.end_array().key("critical_path").begin_array();
    for (const CriticalPart& part : report.critical_path) {
        json.begin_object().member("rank", part.rank).member("name", part.name);
        json.member("is_collective", part.is_collective).member("count", part.count);
        json.member("time_ns", part.time_ns).end_object();
    }
    json.end_array().key("findings").begin_array();
    for (const RankFinding& finding : report.findings) {
        json.begin_object().member("rule", finding.rule).key("rank");
        if (finding.rank >= 0) {
            json.value(finding.rank);
        } else {
            json.null();
        }
        json.member("host", finding.host).member("share", finding.share).member("text", finding.text);
        json.end_object();
    }
    json.end_array().key("clocks").begin_array();
    for (const RankHost& host : report.hosts) write_host(json, report, host);
    json.end_array().key("world_size");
    if (report.world_size > 0) {
        json.value(report.world_size);
    } else {
        json.null();
    }
    json.member("collectives", report.collectives).member("unmatched", report.unmatched);
    json.member("unfinished", report.unfinished).member("mismatched", report.mismatched);
    json.member("unsynchronised", report.unsynchronised);
    json.member("agreeing", report.agreeing).member("disagreeing", report.disagreeing);
    json.member("mean_step_ns", report.mean_step_ns).key("worst_rank");
    if (report.worst_rank >= 0) {
        json.value(report.worst_rank);
    } else {
        json.null();
    }
    json.member("step_without_worst_ns", report.step_without_worst_ns);
    write_problems(json, report.problems);
    json.end_object();
    return text + "\n";
}

}  // namespace marey
