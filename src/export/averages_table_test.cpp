// averages_table_test.cpp: features that upstream's table lacks: chosen columns, ascending order, errors,
// CSV, JSON, Markdown.
#include <gtest/gtest.h>

#include <marey/error.h>
#include <marey/results.h>

#include "analyze/trace_fixture.h"
#include "json/strict_json_fixture.h"

namespace marey {
namespace {

Trace small_trace() {
    return TraceFixture()
        .thread("main", {{"a", 0, 4000, {{"b|c", 1000, 1000}}}, {"b|c", 5000, 3000}})
        .thread("worker", {{"a", 0, 500}})
        .trace();
}

std::string error_of(const TableOptions& options) {
    try {
        averages_table({}, options);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

TEST(AveragesTable, ShowsTheRequestedColumns) {
    const Averages averages =
        key_averages(small_trace(), {.by_thread = true, .percentiles = true, .nesting = true});
    EXPECT_EQ(averages_table(averages, {.sort_by = "max",
                                        .ascending = true,
                                        .columns = {"key", "thread", "max", "p50", "overhead", "calls"}}),
              "-------  ----------  ------------  ------------  ------------  ------------  \n"
              "   Name      Thread           Max           p50      Overhead    # of Calls  \n"
              "-------  ----------  ------------  ------------  ------------  ------------  \n"
              "      a      worker       0.500us       0.500us            --             1  \n"
              "    b|c        main       3.000us       1.000us            --             2  \n"
              "      a        main       4.000us       4.000us            --             1  \n"
              "-------  ----------  ------------  ------------  ------------  ------------  \n"
              "Self CPU time total: 7.500us\n");
}

TEST(AveragesTable, AnUnknownColumnOrSortKeyIsAnErrorThatListsTheKnownOnes) {
    EXPECT_TRUE(error_of({.sort_by = "zzz"}).starts_with("unknown sort key 'zzz'; known: name, "));
    EXPECT_TRUE(error_of({.columns = {"name", "q"}}).starts_with("unknown column 'q'; known: name, "));
    EXPECT_NE(error_of({.sort_by = "zzz"}).find("self_cpu_time_total"), std::string::npos);
    EXPECT_EQ(error_of({.sort_by = "self_cuda_time_total"}), "");
}

// Q18
TEST(AveragesTable, EveryColumnIsASortKeyForEveryDeviceName) {
    const Averages averages = key_averages(small_trace());
    for (const TableColumn& column : table_columns()) {
        EXPECT_FALSE(column.description.empty());
        EXPECT_NE(averages_table(averages, {.sort_by = column.key}), "") << column.key;
        EXPECT_NE(averages_table(averages, {.columns = {column.key}}), "") << column.key;
    }
    for (const char* device : {"cuda", "xpu", "privateuse1", "hpu", "mtia", "hip", "mps"})
        EXPECT_EQ(error_of({.sort_by = std::string("self_") + device + "_memory_usage"}), "") << device;
}

TEST(AveragesTable, UnknownFlopsAreNeitherZeroNorSortedAboveKnownOnes) {
    Averages averages;
    for (const char* name : {"unknown", "zero", "some"}) averages.rows.emplace_back().name = name;
    averages.rows[1].flops = 0;
    averages.rows[2].flops = 5;
    const std::string text = averages_csv(averages, {.sort_by = "flops", .columns = {"name", "flops"}});
    EXPECT_EQ(text, "name,flops\nsome,5\nzero,0\nunknown,\n");
}

TEST(AveragesData, CsvQuotesFieldsIfNecessary) {
    const Trace trace = TraceFixture().thread("main", {{"a,\"b\"", 0, 10}, {"c", 20, 5}}).trace();
    EXPECT_EQ(averages_csv(key_averages(trace)),
              "name,scope,device_type,count,unfinished,async_count,threads,self_cpu_time_total_ns,"
              "cpu_time_total_ns,cpu_time_ns,min_ns,max_ns\n"
              "\"a,\"\"b\"\"\",user,cpu,1,0,0,1,10,10,10,10,10\n"
              "c,user,cpu,1,0,0,1,5,5,5,5,5\n");
}

TEST(AveragesData, JsonIsStrictForAnyNames) {
    TraceFixture fixture;
    fixture.thread("m\xFF", {{std::string("\0\x1b\"", 3), 0, 10}}).problem("c", "\n");
    fixture.data().costs = {{"range", 13.5}};
    const Trace trace = fixture.trace();
    StrictJson::Value value;
    const Averages averages = key_averages(trace, {.by_thread = true, .percentiles = true, .nesting = true});
    EXPECT_EQ(StrictJson::parse(averages_json(trace, averages), value), "");
    EXPECT_EQ(value["rows"].items.at(0)["count"].text, "1");
    EXPECT_EQ(value["rows"].items.at(0)["overhead_ns"].text, "0");
    EXPECT_EQ(value["rows"].items.at(0)["p90_ns"].text, "10");
    EXPECT_EQ(value["problems"].items.at(0)["code"].text, "c");
    EXPECT_EQ(StrictJson::parse(result_json(info_result(trace)), value), "");
    EXPECT_EQ(value["threads"].items.at(0)["ranges"].text, "1");
    EXPECT_EQ(value["overhead"]["total_ns"].text, "13.5");
}

TEST(AveragesData, MarkdownEscapesSpecialCharacters) {
    EXPECT_EQ(averages_markdown(
                  key_averages(small_trace()),
                  {.sort_by = "name", .row_limit = 1, .columns = {"name", "count", "self_cpu_percent"}}),
              "| Name | # of Calls | Self CPU % |\n"
              "|:---|---:|---:|\n"
              "| b\\|c | 2 | 53.33% |\n");
}

}  // namespace
}  // namespace marey
