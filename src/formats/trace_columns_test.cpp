// trace_columns_test.cpp: docs/reference/tables.md lists exactly the tables and columns that there are.
#include "formats/trace_columns.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "base/golden_fixture.h"

namespace marey {
namespace {

constexpr std::string_view kMark =
    "<!-- From here on, formats_test writes this page (MAREY_WRITE_GOLDENS=1). -->\n";

std::string type_text(CellType type) {
    static constexpr const char* kTypes[] = {"bool", "u8",  "u16",  "u32",  "u64", "i32",
                                             "i64",  "f64", "name", "name", "text"};
    return kTypes[static_cast<int>(type)];
}

std::string document(const TraceTable& table) {
    std::string text = "\n### `" + std::string(table.name) + "`\n\n" + std::string(table.meaning) +
                       "\n\n| column | type | id | meaning |\n|---|---|---|---|\n";
    for (const TraceColumn& column : table.columns) {
        const std::string id = column.saved_id == 0 ? ""
                                                    : std::to_string(table.saved_id) + "." +
                                                          std::to_string(column.saved_id) + " ";
        text += "| `" + std::string(column.name) + "`" + (column.is_null ? " ?" : "") + " | " +
                type_text(column.type) + " | " + id + "| " + column.meaning + " |\n";
    }
    return text;
}

TEST(TraceTables, AreDocumented) {
    const std::filesystem::path page =
        std::filesystem::path(MAREY_SOURCE_DIR) / "docs" / "reference" / "tables.md";
    const std::string now = read_text(page);
    const std::size_t mark = now.find(kMark);
    ASSERT_NE(mark, now.npos);
    const TraceTables tables{Trace()};
    std::string exported, saved;
    for (const TraceTable& table : tables.all()) (table.is_exported ? exported : saved) += document(table);
    expect_file(now.substr(0, mark + kMark.size()) + exported + "\n## Tables that are only saved\n" + saved,
                page);
}

}  // namespace
}  // namespace marey
