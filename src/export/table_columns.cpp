// table_columns.cpp: the registry of columns, the choice of columns, and sorting.
#include "export/table_columns.h"

#include <algorithm>

#include <marey/error.h>

namespace marey {
namespace {

template <std::int64_t AverageRow::*member>
CellValue integer(const AverageRow& row) {
    return row.*member;
}

template <std::uint64_t AverageRow::*member>
CellValue count(const AverageRow& row) {
    return static_cast<std::int64_t>(row.*member);
}

template <std::optional<double> AverageRow::*member>
CellValue optional(const AverageRow& row) {
    return row.*member ? CellValue(*(row.*member)) : CellValue();
}

template <std::string AverageRow::*member>
CellValue text(const AverageRow& row) {
    return std::string_view(row.*member);
}

constexpr ColumnInfo kColumns[] = {
    {"name", "Name", CellKind::Name, text<&AverageRow::name>, "name of the ranges"},
    {"overload_name", "Overload Name", CellKind::Name, text<&AverageRow::overload>, "operator overload",
     "overload"},
    {"thread", "Thread", CellKind::Text, text<&AverageRow::thread_name>,
     "thread name, when rows are grouped by thread"},
    {"self_cpu_percent", "Self CPU %", CellKind::CpuShare, integer<&AverageRow::self_cpu_time_total_ns>,
     "self time as a share of all self time", "share"},
    {"self_cpu_time_total", "Self CPU", CellKind::HostTime, integer<&AverageRow::self_cpu_time_total_ns>,
     "time in these ranges, without the ranges inside them", "self"},
    {"total_cpu_percent", "CPU total %", CellKind::CpuShare, integer<&AverageRow::cpu_time_total_ns>,
     "time in these ranges as a share of all self time", "total share"},
    {"cpu_time_total", "CPU total", CellKind::HostTime, integer<&AverageRow::cpu_time_total_ns>,
     "time in these ranges, nested ones counted again", "total"},
    {"cpu_time", "CPU time avg", CellKind::HostTime,
     [](const AverageRow& row) -> CellValue {
         return PerCall{row.cpu_time_total_ns, row.count};
     },
     "average time per range", "per call"},
    {"self_device_time_total", "Self @", CellKind::Time, integer<&AverageRow::self_device_time_total_ns>,
     "device time of these ranges, or of the work they launched", "self device"},
    {"total_device_percent", "Self @ %", CellKind::DeviceShare,
     integer<&AverageRow::self_device_time_total_ns>, "the same as a share of all device time",
     "device share"},
    {"device_time_total", "@ total", CellKind::Time, integer<&AverageRow::device_time_total_ns>,
     "device time, including ranges inside", "device"},
    {"device_time", "@ time avg", CellKind::Time,
     [](const AverageRow& row) -> CellValue {
         return PerCall{row.device_time_total_ns, row.count};
     },
     "average device time per range", "device per call"},
    {"cpu_memory_usage", "CPU Mem", CellKind::Bytes, integer<&AverageRow::cpu_memory_bytes>,
     "memory allocated minus memory freed", "memory"},
    {"self_cpu_memory_usage", "Self CPU Mem", CellKind::Bytes, integer<&AverageRow::self_cpu_memory_bytes>,
     "the same, without the ranges inside", "self memory"},
    {"device_memory_usage", "@ Mem", CellKind::Bytes, integer<&AverageRow::device_memory_bytes>,
     "device memory allocated minus freed", "device memory"},
    {"self_device_memory_usage", "Self @ Mem", CellKind::Bytes,
     integer<&AverageRow::self_device_memory_bytes>, "the same, without the ranges inside",
     "self device memory"},
    {"count", "# of Calls", CellKind::Count, count<&AverageRow::count>, "number of ranges", "calls"},
    {"node_id", "Node ID", CellKind::Count,
     [](const AverageRow& row) -> CellValue { return std::int64_t{row.node}; }, "rank or node", "node"},
    {"input_shapes", "Input Shapes", CellKind::Shapes, text<&AverageRow::input_shapes>,
     "shapes of the input tensors"},
    {"stack", "Source Location", CellKind::Stack,
     [](const AverageRow& row) -> CellValue {
         return row.stack.empty() ? std::string_view() : std::string_view(row.stack[0]);
     },
     "call stack, innermost frame first"},
    {"flops", "FLOPs", CellKind::Flops, optional<&AverageRow::flops>, "floating-point operations"},
    {"min", "Min", CellKind::Time, integer<&AverageRow::min_ns>, "time of the shortest range"},
    {"p50", "p50", CellKind::Time, integer<&AverageRow::p50_ns>, "median time"},
    {"p90", "p90", CellKind::Time, integer<&AverageRow::p90_ns>, "90th percentile of the time"},
    {"p99", "p99", CellKind::Time, integer<&AverageRow::p99_ns>, "99th percentile of the time"},
    {"max", "Max", CellKind::Time, integer<&AverageRow::max_ns>, "time of the longest range"},
    {"covered", "Covered", CellKind::HostTime, integer<&AverageRow::covered_ns>,
     "time in these ranges, recursive calls counted once", "total"},
    {"self_overhead", "Self overhead", CellKind::Time, optional<&AverageRow::self_overhead_ns>,
     "estimated recording overhead within the self time", "", 13},
    {"overhead", "Overhead", CellKind::Time, optional<&AverageRow::overhead_ns>,
     "estimated recording overhead within the total time"},
    {"threads", "Threads", CellKind::Count,
     [](const AverageRow& row) -> CellValue { return std::int64_t{row.threads}; }, "number of threads"},
    {"unfinished", "Unfinished", CellKind::Count, count<&AverageRow::unfinished>,
     "ranges still open at the end"},
    {"async_count", "Async", CellKind::Count, count<&AverageRow::async_count>, "number of async ranges",
     "async"},
    {"scope", "Scope", CellKind::Text,
     [](const AverageRow& row) -> CellValue { return std::string_view(scope_name(row.scope)); },
     "kind of range"},
    {"device_type", "Device", CellKind::Text,
     [](const AverageRow& row) -> CellValue { return std::string_view(device_type_name(row.device_type)); },
     "device on which they ran", "where"},
};

struct Alias {
    std::string_view from, to;
};
constexpr Alias kAliases[] = {
    {"key", "name"},    {"self", "self_cpu_time_total"}, {"total", "cpu_time_total"}, {"average", "cpu_time"},
    {"calls", "count"}, {"overload", "overload_name"},
};

/// Replaces every device name in the key by "device".
std::string with_device(std::string_view key) {
    std::string result(key);
    std::vector<std::string_view> names = {"privateuse1"};
    for (const DeviceType type : {DeviceType::Cuda, DeviceType::Hip, DeviceType::Xpu, DeviceType::Mps,
                                  DeviceType::Meta, DeviceType::Hpu, DeviceType::Mtia, DeviceType::Other})
        names.emplace_back(device_type_name(type));
    for (const std::string_view name : names) {
        for (std::size_t at = 0; (at = result.find(name, at)) != std::string::npos; at += 6)
            result.replace(at, name.size(), "device");
    }
    return result;
}

/// Returns -1, 0 or 1. Unknown values come before known ones.
template <typename T>
int order(const T& a, const T& b) {
    return a < b ? -1 : b < a ? 1 : 0;
}

int order(const CellValue& a, const CellValue& b) {
    if (a.index() != b.index()) return order(a.index(), b.index());
    const auto per_call = [](const PerCall& value) {
        return value.count == 0 ? 0.0 : static_cast<double>(value.total) / static_cast<double>(value.count);
    };
    if (const auto* whole = std::get_if<std::int64_t>(&a)) return order(*whole, std::get<std::int64_t>(b));
    if (const auto* real = std::get_if<double>(&a)) return order(*real, std::get<double>(b));
    if (const auto* each = std::get_if<PerCall>(&a))
        return order(per_call(*each), per_call(std::get<PerCall>(b)));
    if (const auto* words = std::get_if<std::string_view>(&a))
        return order(*words, std::get<std::string_view>(b));
    return 0;
}

/// The optional columns for which averages have data.
struct Contents {
    bool overload = false, device_time = false, device_memory = false, node = false, shapes = false,
         stack = false, flops = false, overhead = false;

    explicit Contents(const Averages& averages) {
        for (const AverageRow& row : averages.rows) {
            overload |= !row.overload.empty();
            device_time |= row.self_device_time_total_ns > 0;
            device_memory |= row.self_device_memory_bytes > 0;
            node |= row.node != -1;
            shapes |= !row.input_shapes.empty() && row.input_shapes != "[]";
            stack |= !row.stack.empty();
            flops |= row.flops.value_or(0) > 0;
            overhead |= row.overhead_ns.has_value();
        }
    }
};

/// Whether averages have values for a column, if nobody chooses columns.
bool is_used(std::string_view key, const Averages& averages, const Contents& has) {
    const auto contains = [&](std::string_view part) { return key.find(part) != key.npos; };
    if (key == "overload_name") return has.overload;
    if (key == "thread") return averages.options.by_thread;
    if (key == "node_id") return has.node;
    if (key == "covered") return averages.options.nesting;
    if (key.starts_with('p')) return averages.options.percentiles;  // p50, p90, p99
    if (contains("memory")) return averages.has_memory && (has.device_memory || !contains("device"));
    if (contains("device") && key != "device_type") return has.device_time;
    if (key == "flops") return has.flops;
    if (contains("overhead")) return has.overhead;
    if (key == "input_shapes") return has.shapes;
    return key != "stack" || has.stack;
}

/// The columns that were chosen, or those of a list that have values.
std::vector<const ColumnInfo*> chosen(const Averages& averages, const TableOptions& options,
                                      std::string_view by_default) {
    std::vector<const ColumnInfo*> columns;
    for (const std::string& key : options.columns) columns.push_back(&find_column(key, "column"));
    const Contents has(averages);
    while (options.columns.empty() && !by_default.empty()) {
        const std::string_view key = by_default.substr(0, by_default.find(' '));
        if (is_used(key, averages, has)) columns.push_back(&find_column(key, "column"));
        by_default.remove_prefix(std::min(key.size() + 1, by_default.size()));
    }
    return columns;
}

}  // namespace

const ColumnInfo& find_column(std::string_view key, const char* what) {
    std::string wanted = with_device(key);
    for (const Alias& alias : kAliases) {
        if (wanted == alias.from) wanted = alias.to;
    }
    std::string known;
    for (const ColumnInfo& column : kColumns) {
        if (column.key == wanted) return column;
        known += (known.empty() ? "" : ", ") + std::string(column.key);
    }
    throw Error("unknown " + std::string(what) + " '" + std::string(key) + "'; known: " + known);
}

std::vector<const ColumnInfo*> shown_columns(const Averages& averages, const TableOptions& options) {
    return chosen(averages, options,
                  "name overload_name thread self_cpu_percent self_cpu_time_total total_cpu_percent "
                  "cpu_time_total cpu_time self_device_time_total total_device_percent device_time_total "
                  "device_time cpu_memory_usage self_cpu_memory_usage device_memory_usage "
                  "self_device_memory_usage count node_id input_shapes stack flops");
}

std::vector<const ColumnInfo*> data_columns(const Averages& averages, const TableOptions& options) {
    return chosen(averages, options,
                  "name overload_name thread scope device_type node_id count unfinished async_count threads "
                  "self_cpu_time_total cpu_time_total covered cpu_time min p50 p90 p99 max "
                  "self_device_time_total device_time_total device_time cpu_memory_usage "
                  "self_cpu_memory_usage device_memory_usage self_device_memory_usage flops self_overhead "
                  "overhead input_shapes stack");
}

std::vector<const ColumnInfo*> plain_columns(const Averages& averages, const TableOptions& options) {
    return chosen(averages, options,
                  "self_cpu_time_total self_cpu_percent cpu_time_total count cpu_time "
                  "self_device_time_total device_time_total cpu_memory_usage self_cpu_memory_usage "
                  "device_memory_usage self_device_memory_usage flops node_id thread input_shapes "
                  "overload_name name stack");
}

std::vector<const AverageRow*> sorted_rows(const Averages& averages, const TableOptions& options) {
    std::vector<const AverageRow*> rows;
    rows.reserve(averages.rows.size());
    for (const AverageRow& row : averages.rows) rows.push_back(&row);
    if (options.sort_by.empty()) return rows;
    const ColumnInfo& column = find_column(options.sort_by, "sort key");
    std::ranges::stable_sort(rows, [&](const AverageRow* a, const AverageRow* b) {
        const int ordered = order(column.value(*a), column.value(*b));
        return options.ascending ? ordered < 0 : ordered > 0;
    });
    return rows;
}

void limit_rows(std::vector<const AverageRow*>& rows, const TableOptions& options) {
    if (options.top_level_events_only)
        std::erase_if(rows, [](const AverageRow* row) { return !row->is_top_level; });
    if (options.shows) std::erase_if(rows, [&](const AverageRow* row) { return !options.shows(*row); });
    if (options.row_limit >= 0 && rows.size() > static_cast<std::size_t>(options.row_limit))
        rows.resize(static_cast<std::size_t>(options.row_limit));
}

std::string table_column_key(std::string_view name, const char* what) {
    return std::string(find_column(name, what).key);
}

std::vector<TableColumn> table_columns() {
    std::vector<TableColumn> columns;
    for (const ColumnInfo& column : kColumns)
        columns.push_back({std::string(column.key), std::string(column.description)});
    return columns;
}

}  // namespace marey
