// findings_result.cpp: the columns of what `marey explain` reports.
#include <marey/findings.h>
#include <marey/results.h>

#include "analyze/result_keys.h"

namespace marey {
namespace findings_columns {
namespace {
using enum ResultUnit;
using enum ResultShown;

std::optional<std::int64_t> known(std::int64_t number) {
    return when(number >= 0, number);
}

struct FindingRow {
    const Trace& trace;
    std::size_t number;
    const Finding& it;
    Row thread() const { return it.thread; }
};

struct EvidenceRow {
    std::size_t number;
    const FindingEvidence& it;
};

}  // namespace
}  // namespace findings_columns

Result findings_result(const Trace& trace, std::span<const Finding> findings) {
    using namespace findings_columns;

    ResultRows<FindingRow> rows("findings", "Findings, faults first, then the largest possible gain");
    rows.columns({
        {"finding", [](auto& r) { return r.number; }, "number of the finding, from 1", "", No, None},
        {"id", &Finding::id, "the rule; docs/guide/explain.md has the thresholds", "finding"},
        {"gain_ns", [](auto& r) { return when(r.it.gain_ns > 0, r.it.gain_ns); },
         "the largest possible gain; of function.self, that of twice the speed", "up to"},
        {"gain_share", [](auto& r) { return when(r.it.gain_ns > 0, r.it.gain_share); },
         "the same as a share of the window", "share"},
        {"gain_bytes", [](auto& r) { return when(r.it.gain_bytes > 0, r.it.gain_bytes); },
         "the largest possible gain of memory", "memory", Used},
        {"is_fault", &Finding::is_fault, "something is wrong: events were lost, a rank hangs"},
        {"certainty", [](auto& r) { return std::string_view(certainty_name(r.it.certainty)); },
         "certain: a sum of what was recorded; likely: the gain may be much smaller; possible: there may be "
         "a reason that a trace cannot show",
         "certainty"},
        {"claim", &Finding::claim, "the finding in one sentence", "claim", Name},
        {"name", [](auto& r) { return text_or_null(r.it.name); },
         "the range, function or rank that it is about"},
        {"advice", &Finding::advice, "what to do"},
        {"command", &Finding::command, "shows it"},
        {"start_ns", [](auto& r) { return known(r.it.start_ns); }, "a place to look at", "", No, Time},
        {"duration_ns", [](auto& r) { return when(r.it.start_ns >= 0, r.it.duration_ns); },
         "the length of that place"},
        {"pid", [](auto& r) { return process_id(r.trace, r.it.process); }, "process id", "", No, None},
    });
    rows.columns(thread_key<FindingRow>());
    ResultRows<EvidenceRow> evidence("finding_evidence", "Evidence for the findings");
    evidence.columns({
        {"finding", [](auto& r) { return r.number; }, "number of the finding", "finding", Yes, None},
        {"count", [](auto& r) { return known(r.it.count); }, "how many", "count"},
        {"time_ns", [](auto& r) { return known(r.it.time_ns); }, "how long", "time"},
        {"bytes", [](auto& r) { return known(r.it.bytes); }, "how much", "memory", Used},
        {"text", &FindingEvidence::text, "what was counted", "evidence", Name},
    });
    for (std::size_t i = 0; i < findings.size(); ++i) {
        rows.add({trace, i + 1, findings[i]});
        for (const FindingEvidence& each : findings[i].evidence) evidence.add({i + 1, each});
    }
    return made_result(trace, rows, evidence);
}

}  // namespace marey
