// average_result.cpp: the columns of averages as a result.
#include <marey/results.h>

#include "analyze/result_keys.h"

namespace marey {

Result average_result(const Trace& trace, const Averages& averages) {
    using enum ResultUnit;
    using enum ResultShown;
    ResultRows<AverageRow> rows("averages", "Ranges by name");
    rows.columns({
        {"name", &AverageRow::name, "name of the ranges", "name", Name},
        {"scope", [](auto& r) { return scope_name(r.scope); }, "kind of range"},
        {"device", [](auto& r) { return device_type_name(r.device_type); }, "device on which they ran"},
        {"count", &AverageRow::count, "number of ranges", "calls"},
        {"total_ns", &AverageRow::cpu_time_total_ns, "time in these ranges, nested ones counted again",
         "total"},
        {"self_ns", &AverageRow::self_cpu_time_total_ns,
         "time in these ranges, without the ranges inside them", "self"},
        {"device_total_ns", &AverageRow::device_time_total_ns, "device time, including ranges inside"},
        {"self_device_ns", &AverageRow::self_device_time_total_ns,
         "device time of these ranges, or of the work they launched"},
        {"min_ns", &AverageRow::min_ns, "time of the shortest range"},
        {"p50_ns", &AverageRow::p50_ns, "median time"},
        {"p90_ns", &AverageRow::p90_ns, "90th percentile of the time"},
        {"p99_ns", &AverageRow::p99_ns, "99th percentile of the time"},
        {"max_ns", &AverageRow::max_ns, "time of the longest range"},
        {"threads", &AverageRow::threads, "number of threads"},
        {"unfinished", &AverageRow::unfinished, "ranges still open at the end"},
        {"async_count", &AverageRow::async_count, "number of async ranges"},
        {"cpu_memory_bytes", &AverageRow::cpu_memory_bytes, "memory allocated minus memory freed"},
        {"self_cpu_memory_bytes", &AverageRow::self_cpu_memory_bytes, "the same, without the ranges inside"},
        {"device_memory_bytes", &AverageRow::device_memory_bytes, "device memory allocated minus freed"},
        {"self_device_memory_bytes", &AverageRow::self_device_memory_bytes,
         "the same, without the ranges inside"},
        {"flops", &AverageRow::flops, "floating-point operations", "", No, Flops},
        {"first_range", [](auto& r) { return when(r.first_range != kNoRow, r.first_range); },
         "row of the first range", "", No, None},
    });
    for (const AverageRow& row : averages.rows) rows.add(row);
    return made_result(trace, rows);
}

}  // namespace marey
