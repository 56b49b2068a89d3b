// tree_tables_test.cpp: trees, hot paths and steps as JSON.
#include <gtest/gtest.h>

#include <marey/export.h>

#include "analyze/trace_fixture.h"
#include "base/golden_fixture.h"
#include "json/strict_json_fixture.h"

namespace marey {
namespace {

TEST(TreeTablesTest, AreStrictJson) {
    TraceFixture fixture;
    fixture.thread("main", {{"ProfilerStep#0", 0, 100, {{"load \xff", 0, 40}}},
                            {"ProfilerStep#1", 110, 300, {{"load \xff", 110, 240}}}});
    fixture.thread("worker", {{"busy", 90, 50}});
    const Trace trace = fixture.trace();
    const CallTree tree = call_tree(trace, {.by_thread = true});
    expect_golden(call_tree_json(trace, tree), "export/tree.json");
    expect_golden(hot_paths_json(trace, tree, 2), "export/hot_paths.json");
    expect_golden(step_report_json(trace, step_report(trace)), "export/steps.json");
    StrictJson::Value value;
    EXPECT_EQ(StrictJson::parse(call_tree_json(trace, tree), value), "");
    EXPECT_EQ(value["nodes"].items.at(1)["step"].text, "");
    EXPECT_EQ(StrictJson::parse(call_tree_json(trace, call_tree(trace, {.by_step = true})), value), "");
    EXPECT_EQ(value["nodes"].items.at(2)["step"].text, "1");
    EXPECT_EQ(StrictJson::parse(hot_paths_json(trace, tree, 2), value), "");
    EXPECT_EQ(StrictJson::parse(step_report_json(trace, step_report(trace)), value), "");
}

}  // namespace
}  // namespace marey
