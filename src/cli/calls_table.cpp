// calls_table.cpp: the table of a program's calls.
#include "cli/calls_table.h"

#include <algorithm>
#include <vector>

#include "cli/table.h"
#include "cli/text_format.h"

namespace marey::cli {
namespace {

bool is_call(const AverageRow& row) {
    return row.scope == Scope::PythonFunction || row.scope == Scope::CFunction;
}

bool is_total(const std::string& key) {
    return key == "total" || key == "cpu_time_total" || key == "covered";
}

bool is_self(const std::string& key) {
    return key.empty() || key == "self" || key == "self_cpu_time_total";
}

double sort_value(const AverageRow& row, const std::string& key) {
    if (is_total(key)) return static_cast<double>(row.covered_ns);
    if (key == "count") return static_cast<double>(row.count);
    if (is_self(key)) return static_cast<double>(row.self_cpu_time_total_ns);
    return row.cpu_time_ns();
}

}  // namespace

AverageOptions call_options(GroupBy by) {
    AverageOptions options;
    options.group_by = by;
    options.merge_repeated = false;
    options.covered = true;
    return options;
}

bool are_host_calls(const Averages& averages) {
    std::uint64_t calls = 0;
    std::uint64_t all = 0;
    for (const AverageRow& row : averages.rows) {
        if (row.device_type != DeviceType::Cpu || row.scope == Scope::DeviceRuntime ||
            row.scope == Scope::GarbageCollection)
            continue;
        calls += is_call(row) ? row.range_count : 0;
        all += row.range_count;
    }
    return calls > 0 && calls * 2 >= all;
}

std::uint64_t count_calls(const Averages& averages) {
    std::uint64_t calls = 0;
    for (const AverageRow& row : averages.rows) calls += is_call(row) ? row.count : 0;
    return calls;
}

bool are_calls(const Averages& averages) {
    return averages.device == DeviceType::None && are_host_calls(averages);
}

bool is_call_sort_key(const std::string& key) {
    return is_total(key) || is_self(key) || key == "count" || key == "average" || key == "cpu_time";
}

std::string calls_text(const Averages& averages, const std::string& title, const std::string& sort_by,
                       bool ascending, std::size_t limit, const Terminal& terminal) {
    std::vector<const AverageRow*> rows;
    rows.reserve(averages.rows.size());
    for (const AverageRow& row : averages.rows) rows.push_back(&row);
    std::stable_sort(rows.begin(), rows.end(), [&](const AverageRow* a, const AverageRow* b) {
        const double left = sort_value(*a, sort_by);
        const double right = sort_value(*b, sort_by);
        return ascending ? left < right : left > right;
    });
    if (limit > 0 && rows.size() > limit) rows.resize(limit);
    Table table({{"self"}, {"share"}, {"total"}, {"calls"}, {"per call"}, {title, true, true, true}});
    for (const AverageRow* row : rows) {
        const double share = averages.recorded_ns > 0 ? static_cast<double>(row->self_cpu_time_total_ns) /
                                                            static_cast<double>(averages.recorded_ns)
                                                      : 0;
        table.add({format_duration(static_cast<double>(row->self_cpu_time_total_ns)), format_share(share),
                   format_duration(static_cast<double>(row->covered_ns)), format_count(row->count),
                   format_duration(row->cpu_time_ns()), row->name});
    }
    return table.text(terminal);
}

}  // namespace marey::cli
