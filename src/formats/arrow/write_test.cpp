// write_test.cpp: lengths, buffers, nulls, texts, and ownership.
#include <marey/arrow.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <sstream>
#include <string>

#include <marey/error.h>

#include "base/utf8.h"
#include "formats/trace_columns.h"
#include "json/json_scanner.h"
#include "trace/random_trace_fixture.h"

namespace marey {
namespace {

/// A table read through the Arrow interface; released at the end unless it was released before.
struct Exported {
    Exported(const Trace& trace, std::string_view table) { export_arrow(trace, table, &schema, &array); }
    ~Exported() {
        if (array.release != nullptr) array.release(&array);
        if (schema.release != nullptr) schema.release(&schema);
    }
    std::size_t column(std::string_view name) const {
        for (std::int64_t i = 0; i < schema.n_children; ++i) {
            if (schema.children[i]->name == name) return static_cast<std::size_t>(i);
        }
        ADD_FAILURE() << name;
        return 0;
    }
    const ArrowArray& operator[](std::string_view name) const { return *array.children[column(name)]; }

    ArrowSchema schema{};
    ArrowArray array{};
};

bool bit(const void* bits, std::size_t at) {
    return (static_cast<const std::uint8_t*>(bits)[at / 8] >> (at % 8) & 1) != 0;
}
bool is_valid(const ArrowArray& array, std::size_t row) {
    return array.buffers[0] == nullptr || bit(array.buffers[0], row);
}
template <class T>
T number(const ArrowArray& array, std::size_t row) {
    return static_cast<const T*>(array.buffers[1])[row];
}
std::string text(const ArrowArray& array, std::size_t row) {
    const auto* const offsets = static_cast<const std::int64_t*>(array.buffers[1]);
    return {static_cast<const char*>(array.buffers[2]) + offsets[row],
            static_cast<std::size_t>(offsets[row + 1] - offsets[row])};
}

/// The cell in CSV form, read only through the interface.
std::string cell(const ArrowSchema& schema, const ArrowArray& array, std::size_t row) {
    if (!is_valid(array, row)) return "null";
    if (array.dictionary != nullptr)
        return text(*array.dictionary, static_cast<std::size_t>(number<std::int32_t>(array, row)));
    switch (schema.format[0]) {
        case 'b':
            return bit(array.buffers[1], row) ? "true" : "false";
        case 'C':
            return std::to_string(number<std::uint8_t>(array, row));
        case 'S':
            return std::to_string(number<std::uint16_t>(array, row));
        case 'I':
            return std::to_string(number<std::uint32_t>(array, row));
        case 'L':
            return std::to_string(number<std::uint64_t>(array, row));
        case 'i':
            return std::to_string(number<std::int32_t>(array, row));
        case 'l':
            return std::to_string(number<std::int64_t>(array, row));
        case 'g':
            return std::to_string(number<double>(array, row));
        default:
            return text(array, row);
    }
}

/// The cell according to the table definition.
std::string expected_cell(const TraceTables& tables, const TraceColumn& column, std::size_t row) {
    if (column.is_null != nullptr && column.is_null(row)) return "null";
    if (column.type >= CellType::String) {
        std::string valid;
        append_utf8(valid, tables.text(column, row));
        return valid;
    }
    const std::uint64_t bits = column.number(row);
    if (column.type == CellType::Bool) return bits != 0 ? "true" : "false";
    if (column.type == CellType::Double) {
        double real;
        std::memcpy(&real, &bits, sizeof real);
        return std::to_string(real);
    }
    const bool is_signed = column.type == CellType::Int32 || column.type == CellType::Int64;
    return is_signed ? std::to_string(static_cast<std::int64_t>(bits)) : std::to_string(bits);
}

TEST(Arrow, ShowsEveryCellOfEveryTable) {
    std::set<std::string> filled;
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
        const Trace trace(testing::random_data(seed));
        const TraceTables tables(trace);
        for (const TraceTable& table : tables.all()) {
            if (!table.is_exported) continue;
            const Exported exported(trace, table.name);
            const std::size_t rows = table.rows;
            ASSERT_EQ(exported.array.length, static_cast<std::int64_t>(rows));
            ASSERT_EQ(exported.array.n_children, static_cast<std::int64_t>(table.columns.size()));
            ASSERT_EQ(exported.schema.n_children, exported.array.n_children);
            EXPECT_STREQ(exported.schema.format, "+s");
            if (rows != 0) filled.insert(std::string(table.name));
            for (std::size_t c = 0; c < table.columns.size(); ++c) {
                const ArrowArray& array = *exported.array.children[c];
                ASSERT_EQ(array.length, static_cast<std::int64_t>(rows));
                ASSERT_EQ(array.dictionary != nullptr, exported.schema.children[c]->dictionary != nullptr);
                std::int64_t nulls = 0;
                for (std::size_t row = 0; row < rows; ++row) {
                    nulls += !is_valid(array, row);
                    ASSERT_EQ(cell(*exported.schema.children[c], array, row),
                              expected_cell(tables, table.columns[c], row))
                        << table.name << " " << table.columns[c].name << " " << row;
                }
                EXPECT_EQ(array.null_count, nulls);
                if (nulls != 0) {
                    EXPECT_NE(exported.schema.children[c]->flags & ARROW_FLAG_NULLABLE, 0);
                }
            }
        }
    }
    EXPECT_EQ(filled.size(), table_names().size());
}

TEST(Arrow, StreamsBatchesWithTheCellsOfTheTable) {
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
        const Trace trace(testing::random_data(seed));
        const TraceTables tables(trace);
        for (const TraceTable& table : tables.all()) {
            if (!table.is_exported) continue;
            for (const std::size_t batch_rows : {0, 1, 7}) {
                ArrowArrayStream stream;
                export_arrow_stream(trace, table.name, {}, batch_rows, &stream);
                ArrowSchema schema;
                ASSERT_EQ(stream.get_schema(&stream, &schema), 0);
                std::size_t row = 0;
                ArrowArray batch;
                while (stream.get_next(&stream, &batch) == 0 && batch.release != nullptr) {
                    ASSERT_TRUE(batch_rows == 0 || static_cast<std::size_t>(batch.length) <= batch_rows);
                    for (std::int64_t at = 0; at < batch.length; ++at, ++row) {
                        for (std::size_t c = 0; c < table.columns.size(); ++c)
                            ASSERT_EQ(
                                cell(*schema.children[c], *batch.children[c], static_cast<std::size_t>(at)),
                                expected_cell(tables, table.columns[c], row))
                                << table.name << " " << table.columns[c].name << " " << row;
                    }
                    batch.release(&batch);
                }
                EXPECT_EQ(row, table.rows);
                schema.release(&schema);
                stream.release(&stream);
            }
        }
    }
}

TEST(Arrow, AStreamReportsErrorsWhenItIsRead) {
    ArrowArrayStream stream;
    export_arrow_stream(Trace(), "ranges", {"nam"}, 0, &stream);
    ArrowSchema schema;
    ArrowArray batch;
    EXPECT_NE(stream.get_schema(&stream, &schema), 0);
    EXPECT_NE(stream.get_next(&stream, &batch), 0);
    EXPECT_EQ(batch.release, nullptr);
    EXPECT_STREQ(stream.get_last_error(&stream), "unknown column 'nam' of the table ranges");
    stream.release(&stream);
}

TEST(Arrow, DoesNotCopyContiguousColumns) {
    const Trace trace(testing::random_data(3));
    const Exported ranges(trace, "ranges");
    EXPECT_EQ(ranges["start_ns"].buffers[1], trace.ranges().start_ns.data());
    EXPECT_EQ(ranges["parent"].buffers[1], trace.ranges().parent.data());
    EXPECT_EQ(ranges["depth"].buffers[1], trace.ranges().depth.data());
    const Exported counters(trace, "counters");
    EXPECT_EQ(counters["value"].buffers[1], trace.counters().value.data());
}

TEST(Arrow, SelectedColumnsEqualThoseOfTheWholeTable) {
    const Trace trace(testing::random_data(3));
    const Exported whole(trace, "ranges");
    ArrowSchema schema{};
    ArrowArray array{};
    export_arrow(trace, "ranges", {"parent", "name"}, &schema, &array);
    ASSERT_EQ(array.n_children, 2);
    EXPECT_STREQ(schema.children[1]->name, "name");
    for (std::size_t row = 0; row < static_cast<std::size_t>(array.length); ++row) {
        EXPECT_EQ(cell(*schema.children[0], *array.children[0], row),
                  cell(*whole.schema.children[whole.column("parent")], whole["parent"], row));
        EXPECT_EQ(cell(*schema.children[1], *array.children[1], row),
                  cell(*whole.schema.children[whole.column("name")], whole["name"], row));
    }
    array.release(&array);
    schema.release(&schema);
    export_arrow_schema(trace, "ranges", {}, &schema);
    EXPECT_EQ(schema.n_children, whole.schema.n_children);
    schema.release(&schema);
    EXPECT_THROW(export_arrow(trace, "ranges", {"nam"}, &schema, &array), Error);
    EXPECT_EQ(array.release, nullptr);
}

TEST(Arrow, KeepsTheTraceUntilTheLastArrayIsReleased) {
    std::weak_ptr<const TraceData> watched;
    ArrowSchema schema{};
    ArrowArray array{};
    {
        std::shared_ptr<const TraceData> data = testing::random_data(3);
        watched = data;
        export_arrow(Trace(std::move(data)), "ranges", &schema, &array);
    }
    EXPECT_FALSE(watched.expired());
    // A reader may move a column out and release the rest.
    ArrowArray moved{};
    for (std::int64_t i = 0; i < array.n_children; ++i) {
        if (std::string_view(schema.children[i]->name) != "start_ns") continue;
        moved = *array.children[i];
        array.children[i]->release = nullptr;
    }
    ASSERT_NE(moved.release, nullptr);
    array.release(&array);
    EXPECT_EQ(array.release, nullptr);
    EXPECT_FALSE(watched.expired());
    EXPECT_EQ(number<std::int64_t>(moved, 0), watched.lock()->range_start_ns[0]);
    moved.release(&moved);
    EXPECT_EQ(moved.release, nullptr);
    EXPECT_TRUE(watched.expired());
    schema.release(&schema);
    EXPECT_EQ(schema.release, nullptr);
}

TEST(Arrow, DictionariesHoldEachNameOnce) {
    auto data = testing::random_data(3);
    data->strings[data->sites[0].name] = "\xFF";
    data->strings[data->sites[1].name] = "\xFE";  // identical after conversion to UTF-8
    const Trace trace(data);
    const Exported ranges(trace, "ranges");
    const ArrowArray& dictionary = *ranges["name"].dictionary;
    std::set<std::string> names;
    for (std::int64_t i = 0; i < dictionary.length; ++i)
        EXPECT_TRUE(names.insert(text(dictionary, static_cast<std::size_t>(i))).second);
}

TEST(Arrow, TablesOfAnEmptyTraceHaveNoRows) {
    for (const std::string_view table : table_names()) {
        const Exported exported(Trace(), table);
        EXPECT_EQ(exported.array.length, table == "strings" ? 1 : 0) << table;
        for (std::int64_t i = 0; i < exported.array.n_children; ++i)
            EXPECT_NE(exported.array.children[i]->buffers[1], nullptr);
    }
}

TEST(Arrow, AnUnknownTableIsAnErrorThatListsTheKnownOnes) {
    ArrowSchema schema{};
    ArrowArray array{};
    try {
        export_arrow(Trace(), "chairs", &schema, &array);
        ADD_FAILURE();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("ranges, instants"), std::string::npos) << error.what();
    }
    EXPECT_EQ(schema.release, nullptr);
    EXPECT_EQ(array.release, nullptr);
}

}  // namespace
}  // namespace marey
