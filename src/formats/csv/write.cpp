// write.cpp: writes a table of the trace as CSV, as a stream.
#include <bit>
#include <charconv>
#include <ostream>
#include <unordered_map>

#include <marey/export.h>

#include "base/output_file.h"
#include "base/utf8.h"
#include "base/work_meter.h"
#include "formats/decimal.h"
#include "formats/formats.h"
#include "formats/trace_columns.h"
#include "results/csv_field.h"

namespace marey {
namespace {

constexpr std::size_t kMaxNumberBytes = 32;

char* put_number(char* out, CellType type, std::uint64_t number) {
    if (type == CellType::Double) {
        const auto real = std::bit_cast<double>(number);
        return std::to_chars(out, out + kMaxNumberBytes, real).ptr;
    }
    if (type == CellType::Bool) {
        const std::string_view text = number != 0 ? "true" : "false";
        return out + text.copy(out, text.size());
    }
    const bool is_signed = type == CellType::Int32 || type == CellType::Int64;
    if (is_signed && number >> 63 != 0) {
        *out++ = '-';
        number = 0 - number;
    }
    return put_decimal(out, number);
}

class CsvWriter {
  public:
    CsvWriter(OutputFile& out, const TraceTables& tables, const TraceTable& table)
        : out_(out), tables_(tables), table_(table) {}

    void write() {
        std::string head;
        for (const TraceColumn& column : table_.columns) {
            if (!head.empty()) head += ',';
            append_csv_field(head, column.name);
        }
        out_.write(head + "\n");
        WorkMeter meter(table_.rows);
        for (std::size_t row = 0; row < table_.rows; ++row) {
            write_row(row);
            meter.add_row(row);
        }
    }

  private:
    void write_row(std::size_t row) {
        bool is_first = true;
        for (const TraceColumn& column : table_.columns) {
            if (!is_first) put(',');
            is_first = false;
            if (column.is_null && column.is_null(row)) continue;
            if (column.type >= CellType::String) {
                out_.write(field(column, row));
            } else {
                char* const at = out_.reserve(kMaxNumberBytes);
                out_.advance(put_number(at, column.type, column.number(row)));
            }
        }
        put('\n');
    }

    void put(char c) {
        char* const at = out_.reserve(1);
        *at = c;
        out_.advance(at + 1);
    }

    // Strings of the trace repeat often, so each is converted to CSV only once.
    std::string_view field(const TraceColumn& column, std::size_t row) {
        if (column.type != CellType::String) {
            text_.clear();
            make_field(text_, tables_.text(column, row));
            return text_;
        }
        const auto id = static_cast<StringId>(column.number(row));
        const auto [found, is_new] = fields_.try_emplace(id);
        if (is_new) make_field(found->second, tables_.trace().string(id));
        return found->second;
    }
    void make_field(std::string& out, std::string_view bytes) {
        valid_.clear();
        append_utf8(valid_, bytes);
        append_csv_text(out, valid_);
        if (bytes.empty()) out += "\"\"";  // an empty field would mean null
    }

    OutputFile& out_;
    const TraceTables& tables_;
    const TraceTable& table_;
    std::unordered_map<StringId, std::string> fields_;
    std::string text_, valid_;
};

}  // namespace

std::span<const std::string_view> table_names() noexcept {
    static const std::vector<std::string_view> names = [] {
        std::vector<std::string_view> all;
        visit_columns([&](const TableInfo& table, const auto&...) {
            if (table.is_exported) all.emplace_back(table.name);
        });
        all.emplace_back("range_places");
        return all;
    }();
    return names;
}

void write_csv(const Trace& trace, const std::string& path, std::string_view table) {
    const TraceTables tables(trace);
    const TraceTable& found = tables.table(table);
    OutputFile out(path);
    CsvWriter(out, tables, found).write();
    out.commit();
}

void write_csv(const Trace& trace, std::ostream& stream, std::string_view table) {
    const TraceTables tables(trace);
    const TraceTable& found = tables.table(table);
    OutputFile out(stream);
    CsvWriter(out, tables, found).write();
    out.commit();
}

FileFormat csv_format() {
    static constexpr std::string_view kSuffixes[] = {".csv", ".csv.gz"};
    return {
        "csv", "Comma-separated values, for spreadsheets and databases", "all tables but one", kSuffixes,
        [](const Trace& trace, const std::string& path) { write_csv(trace, path, table_names().front()); }};
}

}  // namespace marey
