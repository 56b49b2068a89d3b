// problems_json.h: what a reader of a trace should know, in the JSON of every table.
#pragma once

#include <marey/trace.h>

#include "base/json_writer.h"

namespace marey {

/// The member "problems" of the object that is open.
inline void write_problems(JsonWriter& json, const Trace& trace) {
    json.key("problems").begin_array();
    for (const ProblemInfo& problem : trace.problems()) {
        json.begin_object().member("code", problem.code).member("text", problem.text);
        json.member("count", problem.count).end_object();
    }
    json.end_array();
}

}  // namespace marey
