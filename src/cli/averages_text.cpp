// averages_text.cpp: averages in Marey's own layout: self, share, total, calls, per call, name.
#include "cli/averages_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include <marey/table.h>

#include "cli/text_format.h"

namespace marey::cli {
namespace {

enum class CellUnit : std::uint8_t { Time, Bytes, Count, Flops };

using Number = double (*)(const AverageRow& row);
using Words = std::string (*)(const AverageRow& row);

struct PlainColumn {
    std::string_view key;  ///< of table_columns()
    std::string_view title;
    std::variant<Number, Words> value;
    CellUnit unit = CellUnit::Time;
    bool is_host_only = false;  ///< empty for device work
};

template <auto member>
double field(const AverageRow& row) {
    return static_cast<double>(row.*member);
}

template <std::optional<double> AverageRow::*member>
double optional_field(const AverageRow& row) {
    return (row.*member).value_or(0);
}

double per_call(const AverageRow& row) {
    return row.count == 0 ? 0 : static_cast<double>(row.covered_ns) / static_cast<double>(row.count);
}

double device_per_call(const AverageRow& row) {
    return row.device_time_ns();
}

std::string name_text(const AverageRow& row) {
    return row.name;
}

const PlainColumn kPlainColumns[] = {
    {"self_cpu_time_total", "self", field<&AverageRow::self_cpu_time_total_ns>, CellUnit::Time, true},
    {"self_cpu_percent", "share", field<&AverageRow::self_cpu_time_total_ns>, CellUnit::Time, true},
    {"cpu_time_total", "total", field<&AverageRow::covered_ns>, CellUnit::Time, true},
    {"covered", "total", field<&AverageRow::covered_ns>, CellUnit::Time, true},
    {"total_cpu_percent", "total share", field<&AverageRow::covered_ns>, CellUnit::Time, true},
    {"count", "calls", field<&AverageRow::count>, CellUnit::Count},
    {"cpu_time", "per call", per_call, CellUnit::Time, true},
    {"self_device_time_total", "self device", field<&AverageRow::self_device_time_total_ns>},
    {"total_device_percent", "device share", field<&AverageRow::self_device_time_total_ns>},
    {"device_time_total", "device", field<&AverageRow::device_time_total_ns>},
    {"device_time", "device per call", device_per_call},
    {"cpu_memory_usage", "memory", field<&AverageRow::cpu_memory_bytes>, CellUnit::Bytes},
    {"self_cpu_memory_usage", "self memory", field<&AverageRow::self_cpu_memory_bytes>, CellUnit::Bytes},
    {"device_memory_usage", "device memory", field<&AverageRow::device_memory_bytes>, CellUnit::Bytes},
    {"self_device_memory_usage", "self device memory", field<&AverageRow::self_device_memory_bytes>,
     CellUnit::Bytes},
    {"flops", "flops", optional_field<&AverageRow::flops>, CellUnit::Flops},
    {"min", "min", field<&AverageRow::min_ns>},
    {"p50", "p50", field<&AverageRow::p50_ns>},
    {"p90", "p90", field<&AverageRow::p90_ns>},
    {"p99", "p99", field<&AverageRow::p99_ns>},
    {"max", "max", field<&AverageRow::max_ns>},
    {"self_overhead", "self overhead", optional_field<&AverageRow::self_overhead_ns>},
    {"overhead", "overhead", optional_field<&AverageRow::overhead_ns>},
    {"threads", "threads", field<&AverageRow::threads>, CellUnit::Count},
    {"unfinished", "unfinished", field<&AverageRow::unfinished>, CellUnit::Count},
    {"async_count", "async", field<&AverageRow::async_count>, CellUnit::Count},
    {"node_id", "node", field<&AverageRow::node>, CellUnit::Count},
    {"thread", "thread", [](const AverageRow& row) { return row.thread_name; }},
    {"scope", "scope", [](const AverageRow& row) { return std::string(scope_name(row.scope)); }},
    {"device_type", "where",
     [](const AverageRow& row) { return std::string(device_type_name(row.device_type)); }},
    {"input_shapes", "input shapes", [](const AverageRow& row) { return row.input_shapes; }},
    {"overload_name", "overload", [](const AverageRow& row) { return row.overload; }},
    {"stack", "stack",
     [](const AverageRow& row) { return row.stack.empty() ? std::string() : row.stack.front(); }},
    {"name", "name", name_text},
};

const PlainColumn& plain_column(std::string_view name, const char* what) {
    const std::string key = table_column_key(name, what);
    return *std::ranges::find_if(kPlainColumns, [&](const PlainColumn& column) { return column.key == key; });
}

/// The columns with values, the name last.
std::vector<std::string> default_columns(const Averages& averages) {
    const auto any = [&](auto has) { return std::ranges::any_of(averages.rows, has); };
    std::vector<std::string> keys = {"self_cpu_time_total", "self_cpu_percent", "cpu_time_total", "count",
                                     "cpu_time"};
    const auto append = [&](bool wanted, std::initializer_list<const char*> more) {
        if (wanted) keys.insert(keys.end(), more.begin(), more.end());
    };
    append(any([](const AverageRow& row) { return row.device_time_total_ns > 0; }),
           {"self_device_time_total", "device_time_total"});
    append(averages.has_memory, {"cpu_memory_usage", "self_cpu_memory_usage"});
    append(averages.has_memory && any([](const AverageRow& row) { return row.self_device_memory_bytes > 0; }),
           {"device_memory_usage", "self_device_memory_usage"});
    append(any([](const AverageRow& row) { return row.flops.value_or(0) > 0; }), {"flops"});
    append(any([](const AverageRow& row) { return row.node != -1; }), {"node_id"});
    append(averages.options.by_thread, {"thread"});
    append(any([](const AverageRow& row) { return !row.input_shapes.empty() && row.input_shapes != "[]"; }),
           {"input_shapes"});
    append(any([](const AverageRow& row) { return !row.overload.empty(); }), {"overload_name"});
    keys.emplace_back("name");
    return keys;
}

class AveragesTable {
  public:
    AveragesTable(const Averages& averages, const AveragesLayout& layout) : layout_(layout) {
        const bool chosen = !layout.columns.empty();
        for (const std::string& key : chosen ? layout.columns : default_columns(averages))
            columns_.push_back(&plain_column(key, "column"));
        has_stacks_ = !chosen;
        for (const AverageRow& row : averages.rows) {
            rows_.push_back(&row);
            device_ns_ += row.self_device_time_total_ns * (row.device_type != DeviceType::Cpu);
        }
        recorded_ns_ = averages.recorded_ns;
        sort(plain_column(layout.sort_by, "sort key"));
        if (layout.limit > 0 && rows_.size() > layout.limit) rows_.resize(layout.limit);
    }

    Table table() const {
        std::vector<Table::Column> titles;
        for (const PlainColumn* column : columns_) {
            const bool is_name = column->key == "name";
            const bool is_count = layout_.is_sampled && !layout_.is_summed && column->key == "count";
            titles.push_back({is_name    ? layout_.name_title
                              : is_count ? "ranges"
                                         : std::string(column->title),
                              std::holds_alternative<Words>(column->value), is_name, is_name});
        }
        Table table(titles);
        for (const AverageRow* row : rows_) {
            std::vector<std::string> cells;
            for (const PlainColumn* column : columns_) cells.push_back(cell(*column, *row));
            table.add(cells);
            if (!has_stacks_) continue;
            for (const std::string& entry : row->stack) {
                std::vector<std::string> line(columns_.size());
                line.back() = "  at " + entry;
                table.add(line, Style::Dim);
            }
        }
        return table;
    }

  private:
    void sort(const PlainColumn& by) {
        const auto sort_by = [&](auto value) {
            std::ranges::stable_sort(rows_, [&](const AverageRow* a, const AverageRow* b) {
                return layout_.ascending ? value(*a) < value(*b) : value(*b) < value(*a);
            });
        };
        std::visit(sort_by, by.value);
    }

    bool is_estimate(const PlainColumn& column) const {
        return layout_.is_sampled && !(layout_.is_summed && column.key == "self_cpu_time_total");
    }

    std::string cell(const PlainColumn& column, const AverageRow& row) const {
        if (const auto* const words = std::get_if<Words>(&column.value)) return (*words)(row);
        if (column.is_host_only && row.device_type != DeviceType::Cpu) return "";
        const double value = std::get<Number>(column.value)(row);
        if (column.key.ends_with("_percent")) {
            const std::int64_t whole = column.is_host_only ? recorded_ns_ : device_ns_;
            return format_share(whole > 0 ? value / static_cast<double>(whole) : 0);
        }
        switch (column.unit) {
            case CellUnit::Time:
                return (is_estimate(column) ? "~" : "") + format_duration(value, layout_.time_unit);
            case CellUnit::Bytes:
                return format_bytes(value);
            case CellUnit::Count:
                return value < 0 ? "" : format_count(static_cast<std::uint64_t>(value));
            case CellUnit::Flops:
                return value > 0 ? fmt::format("{:.3g}", value) : "";
        }
        return "";
    }

    const AveragesLayout& layout_;
    std::vector<const PlainColumn*> columns_;
    std::vector<const AverageRow*> rows_;
    std::int64_t recorded_ns_ = 0;
    std::int64_t device_ns_ = 0;
    bool has_stacks_ = false;
};

}  // namespace

Table averages_in_columns(const Averages& averages, const AveragesLayout& layout) {
    return AveragesTable(averages, layout).table();
}

}  // namespace marey::cli
