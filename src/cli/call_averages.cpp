// call_averages.cpp: averages of a program's calls.
#include "cli/call_averages.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include <marey/known_waits.h>

#include "cli/text_format.h"

namespace marey::cli {
namespace {

constexpr std::size_t kWaitsShown = 3;

bool is_call(Scope scope) {
    return scope == Scope::PythonFunction || scope == Scope::CFunction;
}

Averages take_rows(Averages& averages, const std::function<bool(const AverageRow&)>& is_taken) {
    const auto first = std::stable_partition(averages.rows.begin(), averages.rows.end(),
                                             [&](const AverageRow& row) { return !is_taken(row); });
    Averages taken;
    taken.rows.assign(std::make_move_iterator(first), std::make_move_iterator(averages.rows.end()));
    averages.rows.erase(first, averages.rows.end());
    for (const AverageRow& row : taken.rows) taken.recorded_ns += row.self_cpu_time_total_ns;
    averages.recorded_ns -= taken.recorded_ns;
    return taken;
}

}  // namespace

AverageOptions call_options(GroupBy by) {
    return AverageOptions{.group_by = by, .merge_repeated = false, .covered = true};
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

Averages take_waiting(const Trace& trace, Averages& averages) {
    return take_rows(averages, [&](const AverageRow& row) {
        return is_call(row.scope) && row.first_range != kNoRow &&
               is_known_wait(trace, trace.sites()[trace.ranges().site[row.first_range]]);
    });
}

Averages take_imports(Averages& averages) {
    return take_rows(averages, [](const AverageRow& row) {
        return row.scope == Scope::PythonFunction && row.name.starts_with("import ");
    });
}

std::string waiting_fact(const Averages& waiting, std::string_view command) {
    if (waiting.recorded_ns == 0) return "";
    std::vector<const AverageRow*> rows;
    for (const AverageRow& row : waiting.rows) {
        if (row.self_cpu_time_total_ns > 0) rows.push_back(&row);
    }
    std::ranges::stable_sort(rows, std::greater<>(), &AverageRow::self_cpu_time_total_ns);
    std::string text = format_duration(waiting.recorded_ns);
    for (std::size_t i = 0; i < rows.size() && i < kWaitsShown; ++i)
        text += fmt::format("{}{} {}", i == 0 ? ": " : ", ", printable(rows[i]->name),
                            format_duration(rows[i]->self_cpu_time_total_ns));
    if (rows.size() > kWaitsShown) text += ", ...";
    return command.empty() ? text : text + fmt::format(" ({} adds them to the table)", command);
}

void CallSum::add(const Averages& averages) {
    sum_.recorded_ns += averages.recorded_ns;
    sum_.range_count += averages.range_count;
    for (const AverageRow& row : averages.rows) {
        const auto [place, is_new] =
            rows_.try_emplace(fmt::format("{} {}", static_cast<int>(row.scope), row.name), sum_.rows.size());
        if (is_new) {
            sum_.rows.push_back(row);
            continue;
        }
        add_row(sum_.rows[place->second], row);
    }
}

}  // namespace marey::cli
