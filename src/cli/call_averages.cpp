// call_averages.cpp: averages of a program's calls.
#include "cli/call_averages.h"

#include <vector>

namespace marey::cli {
namespace {

bool is_call(Scope scope) {
    return scope == Scope::PythonFunction || scope == Scope::CFunction;
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
        calls += is_call(row.scope) ? row.range_count : 0;
        all += row.range_count;
    }
    return calls > 0 && calls * 2 >= all;
}

std::uint64_t count_calls(const Trace& trace) {
    std::vector<std::uint8_t> calls_of_site;  // by site; bytes, because every range is looked up
    for (const SiteInfo& site : trace.sites()) calls_of_site.push_back(is_call(site.scope) ? 1 : 0);
    const RangeColumns ranges = trace.ranges();
    std::uint64_t calls = 0;
    for (Row row = 0; row < ranges.size(); ++row)
        calls += (ranges.flags[row] & kFurtherPart) == 0 ? calls_of_site[ranges.site[row]] : 0;
    return calls;
}

}  // namespace marey::cli
