// write_test.cpp: tables as CSV: a golden file, and any RFC 4180 reader gets the cells back.
#include <marey/export.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include <marey/error.h>

#include "analyze/trace_fixture.h"
#include "base/golden_fixture.h"
#include "base/utf8.h"
#include "formats/trace_columns.h"
#include "results/csv_field.h"
#include "trace/random_trace_fixture.h"

namespace marey {
namespace {

std::string csv_of(const Trace& trace, std::string_view table = "ranges") {
    std::ostringstream stream;
    write_csv(trace, stream, table);
    return stream.str();
}

/// The fields of each line; an unquoted empty field is null.
std::vector<std::vector<std::string>> parse(const std::string& text) {
    std::vector<std::vector<std::string>> lines;
    for (std::size_t at = 0; at < text.size();) {
        std::vector<std::string> fields;
        for (;;) {
            std::string field;
            const bool is_quoted = text[at] == '"';
            if (is_quoted) {
                for (++at; text[at] != '"' || text[at + 1] == '"'; ++at) {
                    if (text[at] == '"') ++at;
                    field += text[at];
                }
                ++at;
            } else {
                while (text[at] != ',' && text[at] != '\n') field += text[at++];
                if (field.empty()) field = "null";
            }
            fields.push_back(field);
            if (text[at++] == '\n') break;
        }
        lines.push_back(fields);
    }
    return lines;
}

Trace sample() {
    TraceFixture fixture;
    fixture
        .thread("main", {{"load, \"all\"", 0, 100, {{"read\nline", 10, 20}, {"caf\xC3\xA9 \xFF", 40, 5}}},
                         {"", 200, 10, {}, kUnfinished}})
        .async("main async", {{"moved", 50, 500, {}, kAsync}})
        .instant("tick", 7)
        .counter("load", 12, 0.25);
    Argument number;
    number.kind = ValueKind::Int;
    number.integer = -7;
    fixture.value("n", number);
    return fixture.trace();
}

TEST(Csv, OfRangesMatchesTheGoldenFile) {
    expect_golden(csv_of(sample()), "ranges.csv");
}

/// Removes the apostrophe that protects a text from being run as a formula.
std::string without_protection(const std::string& field) {
    const std::size_t first = field.find_first_not_of('\'');
    const bool is_protected = first != field.npos && first > 0 && std::strchr("=+-@\t\r", field[first]);
    return field.substr(is_protected ? 1 : 0);
}

TEST(Csv, TextsThatSpreadsheetsWouldRunGetAnApostrophe) {
    const auto field = [](std::string_view text) {
        std::string out;
        append_csv_text(out, text);
        return out;
    };
    EXPECT_EQ(field("=HYPERLINK(\"http://x\",1)"), "\"'=HYPERLINK(\"\"http://x\"\",1)\"");
    EXPECT_EQ(field("+1"), "'+1");
    EXPECT_EQ(field("-2+3"), "'-2+3");
    EXPECT_EQ(field("@SUM(1)"), "'@SUM(1)");
    EXPECT_EQ(field("\t=1"), "'\t=1");
    EXPECT_EQ(field("\r=1"), "\"'\r=1\"");
    EXPECT_EQ(field("'=1"), "''=1");
    for (const char* const other : {"", "f", "a=1", "'quoted'", "'", "operator-"})
        EXPECT_EQ(field(other), other);
    for (const char* const text : {"=1", "'=1", "''-1", "'", "x", "-"})
        EXPECT_EQ(without_protection(field(text)), text);
}

TEST(Csv, NumbersStayNumbers) {
    const std::string text = csv_of(sample(), "arguments");
    EXPECT_NE(text.find(",-7,"), std::string::npos) << text;
}

std::string number_text(CellType type, std::uint64_t number) {
    if (type == CellType::Bool) return number != 0 ? "true" : "false";
    if (type == CellType::Int32 || type == CellType::Int64)
        return std::to_string(static_cast<std::int64_t>(number));
    if (type != CellType::Double) return std::to_string(number);
    char text[32];
    return {text, std::to_chars(text, std::end(text), std::bit_cast<double>(number)).ptr};
}

TEST(Csv, PreservesEveryCell) {
    for (std::uint32_t seed = 1; seed <= 10; ++seed) {
        const Trace trace(testing::random_data(seed));
        const TraceTables tables(trace);
        for (const TraceTable& table : tables.all()) {
            if (!table.is_exported) continue;
            const auto lines = parse(csv_of(trace, table.name));
            ASSERT_EQ(lines.size(), table.rows + 1) << table.name;
            for (std::size_t row = 0; row + 1 < lines.size(); ++row) {
                ASSERT_EQ(lines[row + 1].size(), table.columns.size());
                for (std::size_t c = 0; c < table.columns.size(); ++c) {
                    const TraceColumn& column = table.columns[c];
                    const bool is_null = column.is_null != nullptr && column.is_null(row);
                    if (is_null) {
                        ASSERT_EQ(lines[row + 1][c], "null");
                    } else if (column.type >= CellType::String) {
                        std::string valid;
                        append_utf8(valid, tables.text(column, row));
                        ASSERT_EQ(without_protection(lines[row + 1][c]), valid);
                    } else {
                        ASSERT_EQ(lines[row + 1][c], number_text(column.type, column.number(row)));
                    }
                }
            }
        }
    }
}

TEST(Csv, IsAFormatLikeTheOthers) {
    EXPECT_EQ(export_format("", "x.csv").name, "csv");
    EXPECT_EQ(export_format("", "x.csv.gz").name, "csv");
    const auto path = std::filesystem::temp_directory_path() / ("marey-" + std::to_string(getpid()) + ".csv");
    export_trace(sample(), path.string());
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    EXPECT_EQ(text, csv_of(sample()));
    EXPECT_THROW(write_csv(sample(), path.string(), "chairs"), Error);
    std::filesystem::remove(path);
}

}  // namespace
}  // namespace marey
