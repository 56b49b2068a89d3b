// problems_json.h: the problems of a trace, for the JSON output of every table.
#pragma once

#include <span>

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

}  // namespace marey
