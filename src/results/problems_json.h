// problems_json.h: the problems of a trace and the clocks of its hosts, for JSON output.
#pragma once

#include <marey/host_clocks.h>
#include <marey/trace.h>

#include "json/json_writer.h"

namespace marey {

/// Writes the member "problems" of the current object.
inline void write_problems(JsonWriter& json, std::span<const ProblemInfo> problems) {
    json.key("problems").begin_array();
    for (const ProblemInfo& problem : problems) {
        json.begin_object().member("code", problem.code).member("text", problem.text);
        json.member("count", problem.count).end_object();
    }
    json.end_array();
}
inline void write_problems(JsonWriter& json, const Trace& trace) {
    write_problems(json, trace.problems());
}

/// Writes the error of a clock as a member; null: unknown.
inline void write_clock_error(JsonWriter& json, std::string_view key, std::int64_t error_ns) {
    json.key(key);
    if (error_ns == kUnknownClockError) {
        json.null();
    } else {
        json.value(error_ns);
    }
}

/// Writes the clocks of the hosts as an array.
inline void write_host_clocks(JsonWriter& json, const Trace& trace) {
    json.begin_array();
    for (const HostClockInfo& clock : trace.host_clocks()) {
        json.begin_object().member("host", trace.string(clock.host));
        json.member("reference", trace.string(clock.reference)).member("offset_ns", clock.offset_ns);
        json.member("rate", clock.rate);
        write_clock_error(json, "error_ns", clock.error_ns);
        json.member("evidence", trace.string(clock.evidence));
        json.member("method", trace.string(clock.method)).end_object();
    }
    json.end_array();
}

}  // namespace marey
