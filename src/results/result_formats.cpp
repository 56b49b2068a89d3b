// result_formats.cpp: tables of results as JSON and CSV.
#include <marey/result_table.h>

#include "json/json_writer.h"
#include "results/csv_field.h"
#include "results/result_rows.h"

namespace marey {
namespace {

std::string joined(const auto& list, char separator, const auto& text) {
    std::string out;
    for (const auto& entry : list) {
        if (&entry != &list.front()) out += separator;
        out += text(entry);
    }
    return out;
}

struct CellText {
    std::string operator()(std::monostate) const { return ""; }
    std::string operator()(bool truth) const { return truth ? "true" : "false"; }
    std::string operator()(std::string_view text) const { return std::string(text); }
    template <class Number>
    requires std::is_arithmetic_v<Number> std::string operator()(Number number) const {
        std::string text;
        append_json_number(text, number);
        return text;
    }
    std::string operator()(std::span<const std::int64_t> list) const { return joined(list, 'x', *this); }
    std::string operator()(std::span<const std::string> list) const { return joined(list, ';', *this); }
};

void write_cell(JsonWriter& json, const ResultCell& cell) {
    std::visit(
        [&](const auto& value) {
            using T = std::decay_t<decltype(value)>;
            if constexpr (std::is_same_v<T, std::monostate>) {
                json.null();
            } else if constexpr (requires { json.value(value); }) {
                json.value(value);
            } else {
                json.begin_array();
                for (const auto& entry : value) json.value(entry);
                json.end_array();
            }
        },
        cell);
}

void write_members(JsonWriter& json, const ResultTable& table, std::size_t row) {
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
        json.key(table.columns[i].key);
        write_cell(json, table.cell(row, i));
    }
}

void write_row(JsonWriter& json, const ResultTable& table, std::size_t row) {
    json.begin_object();
    write_members(json, table, row);
    json.end_object();
}

}  // namespace

void write_rows(JsonWriter& json, const ResultTable& table) {
    if (table.is_single) return table.rows == 0 ? void(json.null()) : write_row(json, table, 0);
    json.begin_array();
    for (std::size_t row = 0; row < table.rows; ++row) write_row(json, table, row);
    json.end_array();
}

std::string result_text(const ResultCell& cell) {
    return std::visit(CellText{}, cell);
}

std::string result_json(const Result& result) {
    std::string out;
    JsonWriter json(out, kJsonIndent);
    json.begin_object();
    for (const ResultTable& table : result.tables) {
        table.name.empty() ? write_members(json, table, 0) : write_rows(json.key(table.name), table);
    }
    json.end_object();
    return out + "\n";
}

std::string result_csv(const ResultTable& table) {
    std::string out;
    for (const ResultColumn& column : table.columns) {
        if (&column != &table.columns.front()) out += ',';
        append_csv_field(out, column.key);
    }
    out += '\n';
    for (std::size_t row = 0; row < table.rows; ++row) {
        for (std::size_t i = 0; i < table.columns.size(); ++i) {
            if (i > 0) out += ',';
            const ResultCell cell = table.cell(row, i);
            const bool is_text =
                table.columns[i].type == ResultType::Text || table.columns[i].type == ResultType::Texts;
            if (is_text && cell.index() != 0) {
                append_csv_text(out, result_text(cell));
            } else {
                out += result_text(cell);
            }
        }
        out += '\n';
    }
    return out;
}

}  // namespace marey
