// averages_data.cpp: averages in machine-readable formats: CSV, JSON, Markdown.
#include <charconv>

#include <marey/table.h>

#include "export/table_cells.h"
#include "export/table_columns.h"
#include "json/json_writer.h"
#include "results/csv_field.h"
#include "results/problems_json.h"

namespace marey {
namespace {

/// Formats an average of integers with one decimal, which is precise enough and identical on all platforms.
std::string one_decimal(double value) {
    char text[400];
    const auto result = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, 1);
    return {text, result.ptr};
}

bool is_share(const ColumnInfo& column) {
    return column.kind == CellKind::CpuShare || column.kind == CellKind::DeviceShare;
}

/// The column key with its unit.
std::string data_key(const ColumnInfo& column) {
    std::string key(column.key);
    if (column.kind == CellKind::Time) key += "_ns";
    if (column.kind == CellKind::Bytes) key += "_bytes";
    return key;
}

double per_call(const PerCall& value) {
    return value.count == 0 ? 0.0 : static_cast<double>(value.total) / static_cast<double>(value.count);
}

std::string joined_stack(const AverageRow& row) {
    std::string text;
    for (const std::string& entry : row.stack) text += (text.empty() ? "" : ";") + entry;
    return text;
}

void append_field(std::string& out, const TableCells& cells, const ColumnInfo& column,
                  const AverageRow& row) {
    const CellValue value = column.value(row);
    if (is_share(column)) {
        append_csv_field(out, cells.text(column, row));
    } else if (const auto* whole = std::get_if<std::int64_t>(&value)) {
        append_csv_field(out, std::to_string(*whole));
    } else if (const auto* real = std::get_if<double>(&value)) {
        append_csv_field(out, one_decimal(*real));
    } else if (const auto* each = std::get_if<PerCall>(&value)) {
        append_csv_field(out, one_decimal(per_call(*each)));
    } else if (column.kind == CellKind::Stack) {
        append_csv_text(out, joined_stack(row));
    } else if (const auto* text = std::get_if<std::string_view>(&value)) {
        append_csv_text(out, *text);
    }
}

void write_value(JsonWriter& json, const ColumnInfo& column, const AverageRow& row) {
    const CellValue value = column.value(row);
    if (column.kind == CellKind::Stack) {
        json.begin_array();
        for (const std::string& entry : row.stack) json.value(entry);
        json.end_array();
    } else if (const auto* whole = std::get_if<std::int64_t>(&value)) {
        json.value(*whole);
    } else if (const auto* real = std::get_if<double>(&value)) {
        json.value(*real);
    } else if (const auto* each = std::get_if<PerCall>(&value)) {
        json.value(per_call(*each));
    } else if (const auto* text = std::get_if<std::string_view>(&value)) {
        json.value(*text);
    } else {
        json.null();
    }
}

std::vector<const AverageRow*> wanted_rows(const Averages& averages, const TableOptions& options) {
    std::vector<const AverageRow*> rows = sorted_rows(averages, options);
    limit_rows(rows, options);
    return rows;
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

std::string averages_csv(const Averages& averages, const TableOptions& options) {
    const std::vector<const ColumnInfo*> columns = data_columns(averages, options);
    const TableCells cells(averages, columns, options);
    std::string out;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        if (i > 0) out += ',';
        append_csv_field(out, data_key(*columns[i]));
    }
    out += '\n';
    for (const AverageRow* row : wanted_rows(averages, options)) {
        for (std::size_t i = 0; i < columns.size(); ++i) {
            if (i > 0) out += ',';
            append_field(out, cells, *columns[i], *row);
        }
        out += '\n';
    }
    return out;
}

std::string averages_json(const Trace& trace, const Averages& averages, const TableOptions& options) {
    const std::vector<const ColumnInfo*> columns = data_columns(averages, options);
    const TableCells cells(averages, columns, options);
    std::string out;
    JsonWriter json(out, kJsonIndent);
    json.begin_object();
    json.member("window_ns", averages.window_ns).member("recorded_ns", averages.recorded_ns);
    json.member("range_count", averages.range_count);
    json.key("rows").begin_array();
    for (const AverageRow* row : wanted_rows(averages, options)) {
        json.begin_object();
        for (const ColumnInfo* column : columns) {
            json.key(data_key(*column));
            if (is_share(*column)) {
                json.value(cells.text(*column, *row));
            } else {
                write_value(json, *column, *row);
            }
        }
        json.end_object();
    }
    json.end_array();
    write_problems(json, trace);
    json.end_object();
    out += '\n';
    return out;
}

std::string averages_markdown(const Averages& averages, const TableOptions& options) {
    const std::vector<const ColumnInfo*> columns = shown_columns(averages, options);
    const TableCells cells(averages, columns, options);
    std::string out = "|";
    const auto is_text = [](CellKind kind) {
        return kind == CellKind::Name || kind == CellKind::Text || kind == CellKind::Shapes ||
               kind == CellKind::Stack;
    };
    for (const ColumnInfo* column : columns) out += " " + cells.title(*column) + " |";
    out += "\n|";
    for (const ColumnInfo* column : columns) out += is_text(column->kind) ? ":---|" : "---:|";
    out += '\n';
    for (const AverageRow* row : wanted_rows(averages, options)) {
        out += '|';
        for (const ColumnInfo* column : columns) {
            const bool is_stack = column->kind == CellKind::Stack;
            out += " " + markdown_text(is_stack ? joined_stack(*row) : cells.text(*column, *row)) + " |";
        }
        out += '\n';
    }
    return out;
}

}  // namespace marey
