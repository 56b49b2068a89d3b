// problems_json.h: the problems of a trace and the clocks of its hosts, for JSON output.
#pragma once

#include <marey/host_clocks.h>
#include <marey/trace.h>

#include "json/json_writer.h"

namespace marey {

/// Writes the member "problems" of the current object.
inline void write_problems(JsonWriter& json, const Trace& trace) {
    json.list("problems", trace.problems(), [&](const ProblemInfo& problem) {
        json.member("code", problem.code).member("text", problem.text).member("count", problem.count);
    });
}

/// Writes the clocks of the hosts as an array. An error is null if it is unknown.
inline void write_host_clocks(JsonWriter& json, const Trace& trace) {
    json.list(trace.host_clocks(), [&](const HostClockInfo& clock) {
        json.member("host", trace.string(clock.host)).member("reference", trace.string(clock.reference));
        json.member("offset_ns", clock.offset_ns).member("rate", clock.rate).key("error_ns");
        clock.error_ns == kUnknownClockError ? json.null() : json.value(clock.error_ns);
        json.member("evidence", trace.string(clock.evidence)).member("method", trace.string(clock.method));
    });
}

}  // namespace marey
