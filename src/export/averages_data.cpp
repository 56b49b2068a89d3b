// averages_data.cpp: averages as tables of results, and in CSV, JSON and Markdown.
#include <algorithm>

#include <marey/table.h>

#include "analyze/result_keys.h"
#include "export/table_columns.h"

namespace marey {
namespace {

bool is_share(const ColumnInfo& column) {
    return column.kind == CellKind::CpuShare || column.kind == CellKind::DeviceShare;
}
bool is_text(const ColumnInfo& column) {
    return column.kind == CellKind::Name || column.kind == CellKind::Text ||
           column.kind == CellKind::Shapes || column.kind == CellKind::Stack;
}

ResultUnit unit_of(const ColumnInfo& column) {
    switch (column.kind) {
        case CellKind::Time:
        case CellKind::HostTime:
            return ResultUnit::Duration;
        case CellKind::Bytes:
            return ResultUnit::Bytes;
        case CellKind::Flops:
            return ResultUnit::Flops;
        case CellKind::Count:
            return ResultUnit::Count;
        default:
            return is_share(column) ? ResultUnit::Share : ResultUnit::None;
    }
}

/// A number as a real one; empty: unknown.
std::optional<double> real_of(const CellValue& value) {
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
    if (const auto* real = std::get_if<double>(&value)) return *real;
    const auto* each = std::get_if<PerCall>(&value);
    if (each == nullptr) return std::nullopt;
    return each->count == 0 ? 0 : static_cast<double>(each->total) / static_cast<double>(each->count);
}

std::vector<const AverageRow*> wanted_rows(const Averages& averages, const TableOptions& options) {
    std::vector<const AverageRow*> rows = sorted_rows(averages, options);
    limit_rows(rows, options);
    return rows;
}

/// Adds a column with a value for each row. The type is that of the values.
void add_column(ResultTable& table, std::string key, const ColumnInfo& info,
                const std::vector<const AverageRow*>& rows, const auto& value) {
    using Plain = typename detail_results::Plain<decltype(value(*rows[0]))>::type;
    ResultColumn& column = table.columns.emplace_back();
    column.key = std::move(key);
    column.heading = info.heading.empty() ? info.key : info.heading;
    std::ranges::replace(column.heading, '_', ' ');
    column.unit = unit_of(info);
    column.type = detail_results::type_of<Plain>();
    column.description = info.description;
    column.shown = info.key == "name" ? ResultShown::Name : ResultShown::Yes;
    column.is_nullable = true;
    ResultValues& values = table.values.emplace_back();
    for (const AverageRow* row : rows) {
        const auto& each = value(*row);
        add_value(values, column.type, detail_results::cell_of(each));
    }
    table.rows = rows.size();
}

/// Escapes characters that would end a cell or a line.
std::string markdown_text(std::string_view text) {
    std::string result;
    for (const char c : text) {
        if (c == '|' || c == '\\') result += '\\';
        result += c == '\n' || c == '\r' ? ' ' : c;
    }
    return result;
}

}  // namespace

ResultTable averages_data(const Averages& averages, const TableOptions& options) {
    const std::vector<const ColumnInfo*> columns = data_columns(averages, options);
    const TableCells cells(averages, columns, options);
    const std::vector<const AverageRow*> rows = wanted_rows(averages, options);
    ResultTable table;
    table.name = "rows";
    for (const ColumnInfo* column : columns) {
        const auto add = [&](const char* unit, const auto& value) {
            add_column(table, std::string(column->key) + unit, *column, rows, value);
        };
        const auto whole = [&](const AverageRow& row) { return std::get<std::int64_t>(column->value(row)); };
        const bool is_whole = std::holds_alternative<std::int64_t>(column->value(AverageRow()));
        const char* const unit = unit_of(*column) == ResultUnit::Duration ? "_ns"
                                 : unit_of(*column) == ResultUnit::Bytes  ? "_bytes"
                                                                          : "";
        if (column->kind == CellKind::Stack) {
            add("", [](const AverageRow& row) { return row.stack; });
        } else if (is_text(*column) || is_share(*column)) {
            add("", [&](const AverageRow& row) { return cells.text(*column, row); });
        } else if (is_whole) {
            add(unit, whole);
        } else {
            add(unit, [&](const AverageRow& row) { return real_of(column->value(row)); });
        }
    }
    return table;
}

ResultTable averages_for_people(Averages averages, const TableOptions& options) {
    for (AverageRow& row : averages.rows) row.cpu_time_total_ns = row.covered_ns;
    const std::vector<const AverageRow*> rows = wanted_rows(averages, options);
    const double host_ns = static_cast<double>(averages.recorded_ns),
                 device_ns = static_cast<double>(device_time_ns(averages));
    ResultTable table;
    table.name = "rows";
    for (const ColumnInfo* column : plain_columns(averages, options)) {
        const auto add = [&](const auto& value) {
            add_column(table, std::string(column->key), *column, rows, value);
        };
        const bool is_host = column->kind == CellKind::HostTime || column->kind == CellKind::CpuShare;
        const double all = is_share(*column) ? is_host ? host_ns : device_ns : 1;
        if (column->kind == CellKind::Stack && options.columns.empty()) {
            add([](const AverageRow& row) { return row.stack; });
            table.columns.back().shown = ResultShown::No;
        } else if (is_text(*column)) {
            add([&](const AverageRow& row) { return std::get<std::string_view>(column->value(row)); });
        } else {
            add([&](const AverageRow& row) -> std::optional<double> {
                const std::optional<double> value = real_of(column->value(row));
                const bool is_known = value && (column->kind != CellKind::Flops || *value > 0) &&
                                      (column->kind != CellKind::Count || *value >= 0);
                if (!is_known || (is_host && row.device_type != DeviceType::Cpu)) return std::nullopt;
                return all > 0 ? *value / all : 0;
            });
        }
    }
    return table;
}

std::string averages_csv(const Averages& averages, const TableOptions& options) {
    return result_csv(averages_data(averages, options));
}

std::string averages_json(const Trace& trace, const Averages& averages, const TableOptions& options) {
    ResultRows<Averages> whole("", "All rows", true);
    whole.columns({
        {"window_ns", &Averages::window_ns, "length of the window"},
        {"recorded_ns", &Averages::recorded_ns, "self time of all rows"},
        {"range_count", &Averages::range_count, "number of ranges"},
    });
    whole.add(averages);
    return result_json(
        Result{{whole.table, averages_data(averages, options), problems_table(trace.problems()).table}});
}

std::string averages_markdown(const Averages& averages, const TableOptions& options) {
    const std::vector<const ColumnInfo*> columns = shown_columns(averages, options);
    const TableCells cells(averages, columns, options);
    std::string out = "|";
    for (const ColumnInfo* column : columns) out += " " + cells.title(*column) + " |";
    out += "\n|";
    for (const ColumnInfo* column : columns) out += is_text(*column) ? ":---|" : "---:|";
    out += '\n';
    for (const AverageRow* row : wanted_rows(averages, options)) {
        out += '|';
        for (const ColumnInfo* column : columns) {
            std::string text = cells.text(*column, *row);
            if (column->kind == CellKind::Stack && !text.empty()) {
                text.clear();
                for (const std::string& entry : row->stack) text += (text.empty() ? "" : ";") + entry;
            }
            out += " " + markdown_text(text) + " |";
        }
        out += '\n';
    }
    return out;
}

}  // namespace marey
