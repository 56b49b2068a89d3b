// call_averages.cpp: averages of a program's calls.
#include "cli/call_averages.h"

namespace marey::cli {
namespace {

bool is_call(const AverageRow& row) {
    return row.scope == Scope::PythonFunction || row.scope == Scope::CFunction;
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

}  // namespace marey::cli
