// statistics_json.h: statistics of times as a JSON object.
#pragma once

#include <marey/time_statistics.h>

#include "json/json_writer.h"

namespace marey {

inline void write_statistics(JsonWriter& json, const TimeStatistics& statistics) {
    json.begin_object().member("count", statistics.count).member("total_ns", statistics.total_ns);
    json.member("mean_ns", statistics.mean_ns).member("stdev_ns", statistics.stdev_ns);
    json.member("min_ns", statistics.min_ns).member("median_ns", statistics.median_ns);
    json.member("p90_ns", statistics.p90_ns).member("p99_ns", statistics.p99_ns);
    json.member("max_ns", statistics.max_ns).end_object();
}

}  // namespace marey
