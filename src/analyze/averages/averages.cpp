// averages.cpp: rows for ranges and allocation reports, in order; sums over rows, and rows grouped again.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>

#include <marey/analyze.h>
#include <marey/averages.h>

#include "analyze/averages/average_rows.h"
#include "analyze/time_percentiles.h"

namespace marey {
namespace {

// ---- allocation reports outside any range

/// Rows for allocation reports outside any range: one per report, or one per kind, node and (if requested)
/// thread, with the time of the first report.
std::vector<AverageRow> rows_outside_ranges(const Trace& trace, const RangeMemory& memory,
                                            const AverageOptions& options, bool each_report,
                                            std::vector<std::int64_t>& times) {
    const MemoryColumns reports = trace.memory();
    std::vector<AverageRow> rows;
    for (std::size_t i = 0; i < reports.size(); ++i) {
        const bool is_refused = reports.out_of_memory[i] != 0;
        if (!is_refused && memory.owner[i] != kNoRow) continue;
        const Row thread = reports.thread[i];
        const char* const name = is_refused ? "[OutOfMemory]" : "[memory]";
        const std::int32_t node = node_of_thread(trace, thread);
        const auto is_of_row = [&](const AverageRow& row) {
            return row.name == name && row.node == node && (!options.by_thread || row.thread == thread);
        };
        std::size_t end = rows.size();  // search from the end: reports are sorted by thread
        while (end > 0 && !is_of_row(rows[end - 1])) --end;
        if (each_report || end == 0) {
            AverageRow& row = rows.emplace_back();
            row.name = name;
            row.node = node;
            if (options.by_thread) row.thread_name = trace.string(trace.threads()[thread].name);
            if (each_report || options.by_input_shape) row.input_shapes = "[]";
            times.push_back(reports.time_ns[i]);
            end = rows.size();
        }
        AverageRow& row = rows[end - 1];
        times[end - 1] = std::min(times[end - 1], reports.time_ns[i]);
        row.threads += row.thread != thread;
        row.thread = thread;
        ++row.count;
        if (is_refused) continue;  // nothing was allocated
        const bool is_cpu = is_cpu_memory(reports.device[i]);
        (is_cpu ? row.cpu_memory_bytes : row.device_memory_bytes) += reports.bytes[i];
        (is_cpu ? row.self_cpu_memory_bytes : row.self_device_memory_bytes) += reports.bytes[i];
    }
    return rows;
}

/// The order in which rows appear: by first range (start, longer first); reports come after ranges.
std::vector<std::size_t> appearance(const Trace& trace, const std::vector<AverageRow>& rows,
                                    const std::vector<std::int64_t>& report_times) {
    const RangeColumns ranges = trace.ranges();
    const std::size_t first_report = rows.size() - report_times.size();
    const auto start = [&](std::size_t i) {
        return i < first_report ? ranges.start_ns[rows[i].first_range] : report_times[i - first_report];
    };
    const auto duration = [&](std::size_t i) {
        return i < first_report ? ranges.duration_ns[rows[i].first_range] : 0;
    };
    std::vector<std::size_t> order(rows.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
        if (start(a) != start(b)) return start(a) < start(b);
        if (duration(a) != duration(b)) return duration(a) > duration(b);
        if (a < first_report && b < first_report) return rows[a].first_range < rows[b].first_range;
        return a < b;
    });
    return order;
}

Averages average(const Trace& trace, const AverageOptions& options, bool each_range) {
    Averages averages{
        .options = options,
        .is_list = each_range,
        .device = used_device(trace),
        .has_memory = trace.memory().size() > 0,
        .range_count = trace.ranges().size(),
        .window_ns = std::max<std::int64_t>(0, trace.window().end_ns - trace.window().start_ns)};

    AverageRowBuilder maker(trace, options, each_range);
    maker.add_device_times();
    if (options.flops) maker.add_flops();
    if (options.percentiles && !each_range) maker.add_percentiles();
    if (options.nesting) maker.add_overheads();
    std::vector<AverageRow> rows;
    std::vector<std::int64_t> report_times;
    if (averages.has_memory) {
        const RangeMemory memory =
            options.memory_of_any_thread ? range_memory_by_time(trace) : range_memory(trace);
        maker.add_memory(memory);
        rows = std::move(maker.rows());
        for (AverageRow& row : rows_outside_ranges(trace, memory, options, each_range, report_times))
            rows.push_back(std::move(row));
    } else {
        rows = std::move(maker.rows());
    }
    averages.rows.reserve(rows.size());
    for (const std::size_t index : appearance(trace, rows, report_times)) {
        averages.recorded_ns += rows[index].self_cpu_time_total_ns;
        averages.rows.push_back(std::move(rows[index]));
    }
    return averages;
}

/// The properties shared by the rows of a group, as bytes.
std::string key_of(const AverageRow& row, const AverageOptions& options) {
    std::string key = row.name;
    const auto add = [&](std::string_view text) {
        key += '\0';
        key += std::to_string(text.size());
        key += ':';
        key += text;
    };
    add(std::to_string(row.node));
    add(std::to_string(static_cast<int>(row.device_type)));
    add(row.is_legacy ? "legacy" : "");
    add(row.is_user_annotation ? "user" : "");
    if (options.by_overload) add(row.overload);
    if (options.by_input_shape) add(row.input_shapes);
    for (std::size_t i = 0; i < std::min<std::size_t>(options.stack_entries, row.stack.size()); ++i)
        add(row.stack[i]);
    return key;
}

}  // namespace

Averages key_averages(const Trace& trace, const AverageOptions& options) {
    return average(trace, options, false);
}

Averages list_ranges(const Trace& trace, const AverageOptions& options) {
    return average(trace,
                   {.merge_repeated = options.merge_repeated,
                    .memory_of_any_thread = options.memory_of_any_thread,
                    .flops = options.flops,
                    .nesting = options.nesting},
                   true);
}

DeviceType used_device(const Trace& trace) {
    for (const TrackInfo& track : trace.tracks()) {
        if (track.device.type != DeviceType::Cpu && track.range_count > 0) return track.device.type;
    }
    for (const Device device : trace.memory().device) {
        if (device.type != DeviceType::Cpu) return device.type;
    }
    return DeviceType::None;
}

std::int64_t device_time_ns(const Averages& averages) {
    std::int64_t sum = 0;
    for (const AverageRow& row : averages.rows) {
        const bool is_device = row.device_type != DeviceType::Cpu;
        if (is_device ? !row.is_user_annotation : row.is_legacy) sum += row.self_device_time_total_ns;
    }
    return sum;
}

void add_row(AverageRow& sum, const AverageRow& row) {
    const auto add = [](std::optional<double>& to, const std::optional<double>& part) {
        if (part) to = to.value_or(0) + *part;
    };
    sum.count += row.count;
    sum.range_count += row.range_count;
    sum.unfinished += row.unfinished;
    sum.async_count += row.async_count;
    sum.cpu_time_total_ns += row.cpu_time_total_ns;
    sum.self_cpu_time_total_ns += row.self_cpu_time_total_ns;
    sum.device_time_total_ns += row.device_time_total_ns;
    sum.self_device_time_total_ns += row.self_device_time_total_ns;
    sum.covered_ns += row.covered_ns;
    sum.min_ns = std::min(sum.min_ns, row.min_ns);
    sum.max_ns = std::max(sum.max_ns, row.max_ns);
    sum.cpu_memory_bytes += row.cpu_memory_bytes;
    sum.self_cpu_memory_bytes += row.self_cpu_memory_bytes;
    sum.device_memory_bytes += row.device_memory_bytes;
    sum.self_device_memory_bytes += row.self_device_memory_bytes;
    add(sum.flops, row.flops);
    sum.nested_flops += row.nested_flops;
    add(sum.self_overhead_ns, row.self_overhead_ns);
    add(sum.overhead_ns, row.overhead_ns);
}

AverageRow total_average(const Averages& averages) {
    constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
    AverageRow total;
    total.min_ns = kNone;
    for (AverageRow row : averages.rows) {
        if (row.first_range == kNoRow) row.min_ns = kNone;  // reports take no time
        if (total.first_range == kNoRow) total.first_range = row.first_range;
        if (row.flops) *row.flops -= std::exchange(row.nested_flops, 0);
        add_row(total, row);
    }
    if (total.min_ns == kNone) total.min_ns = 0;
    total.name = "Total";
    return total;
}

void subtract_overhead(Averages& averages) {
    averages.recorded_ns = 0;
    const auto reduce = [](std::int64_t& time, const std::optional<double>& cost) {
        if (cost) time = std::max<std::int64_t>(0, time - std::llround(*cost));
    };
    for (AverageRow& row : averages.rows) {
        reduce(row.self_cpu_time_total_ns, row.self_overhead_ns);
        reduce(row.cpu_time_total_ns, row.overhead_ns);
        reduce(row.covered_ns, row.overhead_ns);
        averages.recorded_ns += row.self_cpu_time_total_ns;
    }
}

Averages group_rows(const Averages& list, const AverageOptions& options) {
    Averages averages = list;
    averages.rows.clear();
    averages.options = options;
    averages.is_list = false;
    averages.recorded_ns = 0;
    std::unordered_map<std::string, std::size_t> groups;
    std::vector<std::vector<std::int64_t>> durations;  // per group, if percentiles are requested
    for (std::size_t i = 0; i < list.rows.size(); ++i) {
        const AverageRow& row = list.rows[i];
        averages.recorded_ns += row.self_cpu_time_total_ns;
        const auto [place, is_new] = groups.try_emplace(key_of(row, options), averages.rows.size());
        if (is_new) {
            AverageRow& first = averages.rows.emplace_back(row);
            first.first_range = static_cast<Row>(i);
            if (!options.by_overload) first.overload.clear();
            if (!options.by_input_shape) first.input_shapes.clear();
            first.stack.resize(std::min<std::size_t>(first.stack.size(), options.stack_entries));
            durations.emplace_back();
        } else {
            add_row(averages.rows[place->second], row);
        }
        if (options.percentiles) durations[place->second].push_back(row.max_ns);
    }
    if (!options.percentiles) return averages;
    for (std::size_t i = 0; i < averages.rows.size(); ++i) {
        std::ranges::sort(durations[i]);
        averages.rows[i].p50_ns = durations[i][nearest_rank(durations[i].size(), 50)];
        averages.rows[i].p90_ns = durations[i][nearest_rank(durations[i].size(), 90)];
        averages.rows[i].p99_ns = durations[i][nearest_rank(durations[i].size(), 99)];
    }
    return averages;
}

}  // namespace marey
