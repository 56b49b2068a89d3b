// results_test.cpp: every column of every result is described, and in JSON, CSV, Arrow,
// docs/reference/results.md and web/src/results.ts.
#include <marey/results.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <marey/error.h>

#include "analyze/trace_fixture.h"
#include "base/golden_fixture.h"
#include "json/strict_json_fixture.h"
#include "results/result_rows.h"

namespace marey {
namespace {

struct NamedResult {
    std::string name;
    Result result;
};
std::vector<NamedResult> all_results() {
    std::vector<NamedResult> results;
    for (const std::string_view name : result_names())
        results.push_back({std::string(name), make_result(Trace(), name)});
    return results;
}

Trace two_steps() {
    TraceFixture fixture;
    fixture.thread("main", {{"ProfilerStep#0", 0, 100, {{"load \xff", 0, 40}}},
                            {"ProfilerStep#1", 110, 300, {{"load \xff", 110, 240}}}});
    fixture.thread("worker", {{"busy", 90, 50}});
    return fixture.trace();
}

std::string unit_text(ResultUnit unit) {
    static constexpr const char* kUnits[] = {"", "ns", "ns", "bytes", "", "share", "share", "", "", ""};
    return kUnits[static_cast<int>(unit)];
}
std::string type_text(ResultType type) {
    static constexpr const char* kTypes[] = {"i64", "f64", "bool", "text", "list of i64", "list of text"};
    return kTypes[static_cast<int>(type)];
}

TEST(Results, AreDocumented) {
    constexpr std::string_view kMark =
        "<!-- From here on, analyze_test writes this page (MAREY_WRITE_GOLDENS=1). -->\n";
    const std::filesystem::path page =
        std::filesystem::path(MAREY_SOURCE_DIR) / "docs" / "reference" / "results.md";
    const std::string now = read_text(page);
    const std::size_t mark = now.find(kMark);
    ASSERT_NE(mark, now.npos);
    std::string text = now.substr(0, mark + kMark.size());
    for (const NamedResult& each : all_results()) {
        text += "\n## " + each.name + "\n";
        for (const ResultTable& table : each.result.tables) {
            text += (table.name.empty() ? "" : "\n### `" + table.name + "`\n") + "\n" + table.description +
                    (table.is_single ? "; one row" : "") +
                    "\n\n| column | type | unit | meaning |\n|---|---|---|---|\n";
            for (const ResultColumn& column : table.columns)
                text += "| `" + column.key + "`" + (column.is_nullable ? " ?" : "") + " | " +
                        type_text(column.type) + " | " + unit_text(column.unit) + " | " + column.description +
                        " |\n";
        }
    }
    expect_file(text, page);
}

std::string type_name(const std::string& name) {
    std::string text;
    bool is_start = true;
    for (const char c : name) {
        if (c != '_') text += is_start ? static_cast<char>(c - 'a' + 'A') : c;
        is_start = c == '_';
    }
    return text;
}

std::string quoted(const std::string& text) {
    std::string result = "'";
    for (const char c : text) result += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
    return result + "'";
}

/// Those that people see, for a grid.
std::string page_columns(const ResultTable& table) {
    static constexpr const char* kUnits[] = {"none",  "ns",     "time",  "bytes", "count",
                                             "share", "change", "ratio", "flops"};
    std::string lines;
    for (const ResultColumn& column : table.columns) {
        if (column.shown == ResultShown::No) continue;
        const bool is_number = column.type == ResultType::Integer || column.type == ResultType::Real ||
                               column.type == ResultType::Integers;
        const bool is_name = column.shown == ResultShown::Name || column.shown == ResultShown::Call;
        lines += "    { key: " + quoted(column.key) + ", title: " + quoted(column.heading) +
                 ", help: " + quoted(column.description) + ", unit: '" +
                 kUnits[static_cast<int>(column.unit)] + "', is_number: " + (is_number ? "true" : "false") +
                 ", is_name: " + (is_name ? "true" : "false") + " },\n";
    }
    if (lines.empty()) return "";
    std::string name = type_name(table.name);
    name[0] = static_cast<char>(name[0] - 'A' + 'a');
    return "export const " + name + "Columns: ResultColumn[] = [\n" + lines + "]\n";
}

TEST(Results, HaveTypesForThePage) {
    static constexpr const char* kTypes[] = {"number", "number", "boolean", "string", "number[]", "string[]"};
    std::string text =
        "// results.ts: what the server sends of results. analyze_test writes this file "
        "(MAREY_WRITE_GOLDENS=1).\n"
        "import type { ResultColumn } from './result_grid'\n\n";
    std::set<std::string> known;
    for (const std::string name : {"steps", "gpu", "memory", "explain", "diff"}) {
        std::string members;
        for (const ResultTable& table : make_result(Trace(), name).tables) {
            const std::string type = type_name(table.name) + "Row";
            members += "    " + table.name + ": " + type + (table.is_single ? "" : "[]") + "\n";
            if (!known.insert(type).second) continue;
            text += "export interface " + type + " {\n";
            for (const ResultColumn& column : table.columns)
                text += "    " + column.key + ": " + kTypes[static_cast<int>(column.type)] +
                        (column.is_nullable ? " | null" : "") + "\n";
            text += "}\n" + page_columns(table);
        }
        text += "export interface " + type_name(name) + "Result {\n" + members + "}\n";
    }
    expect_file(text, std::filesystem::path(MAREY_SOURCE_DIR) / "web" / "src" / "results.ts");
}

TEST(Results, DescribeEveryColumnOnceAndWriteItEverywhere) {
    for (const NamedResult& each : all_results()) {
        StrictJson::Value json;
        ASSERT_EQ(StrictJson::parse(result_json(make_result(two_steps(), "steps")), json), "");
        for (const ResultTable& table : each.result.tables) {
            EXPECT_FALSE(table.description.empty()) << table.name;
            const std::string csv = result_csv(table);
            const std::string head = "," + csv.substr(0, csv.find('\n')) + ",";
            ArrowSchema schema;
            ArrowArray array;
            export_arrow(table, &schema, &array);
            ASSERT_EQ(schema.n_children, static_cast<std::int64_t>(table.columns.size()));
            std::set<std::string> keys;
            for (std::size_t i = 0; i < table.columns.size(); ++i) {
                const ResultColumn& column = table.columns[i];
                EXPECT_TRUE(keys.insert(column.key).second) << table.name << " " << column.key;
                EXPECT_FALSE(column.heading.empty() || column.description.empty())
                    << table.name << column.key;
                EXPECT_NE(column.unit, ResultUnit::Auto);
                EXPECT_NE(head.find("," + column.key + ","), head.npos) << table.name << " " << column.key;
                EXPECT_EQ(schema.children[i]->name, column.key);
            }
            schema.release(&schema);
            array.release(&array);
        }
    }
}

TEST(Results, AreStrictJson) {
    const Trace trace = two_steps();
    const CallTree tree = call_tree(trace, {.by_thread = true});
    const std::string nodes = result_json(tree_result(trace, tree));
    const std::string hot = result_json(hot_path_result(trace, tree, 2));
    const std::string steps = result_json(step_result(trace, step_report(trace)));
    expect_golden(nodes, "export/tree.json");
    expect_golden(hot, "export/hot_paths.json");
    expect_golden(steps, "export/steps.json");
    for (const std::string& text : {nodes, hot, steps}) {
        StrictJson::Value value;
        EXPECT_EQ(StrictJson::parse(text, value), "");
    }
    StrictJson::Value value;
    ASSERT_EQ(StrictJson::parse(result_json(tree_result(trace, call_tree(trace, {.by_step = true}))), value),
              "");
    EXPECT_EQ(value["tree"].items.at(2)["step"].text, "1");
}

struct Number {
    std::optional<double> number;
    std::string name;
    std::vector<std::string> path;
    std::vector<std::int64_t> sizes;
    bool is_odd;
};

ResultTable small_table() {
    ResultRows<Number> table("numbers", "Some numbers");
    table.columns({
        {"number", [](auto& r) { return r.number; }, "a number"},
        {"name", [](auto& r) { return r.name; }, "its name", "title", ResultShown::Name},
        {"path", [](auto& r) { return r.path; }, "names"},
        {"sizes", [](auto& r) { return r.sizes; }, "sizes"},
        {"is_odd", [](auto& r) { return r.is_odd; }, "whether it is odd"},
    });
    table.add({2, "=two, \"2\"", {"a;b", "c"}, {2, 1}, false});
    table.add({std::nullopt, "", {}, {}, true});
    table.add({1.5, "one", {"x"}, {1}, true});
    return table.table;
}

TEST(ResultTables, AreWrittenAsCsv) {
    EXPECT_EQ(result_csv(small_table()),
              "number,name,path,sizes,is_odd\n2,\"'=two, "
              "\"\"2\"\"\",a;b;c,2x1,false\n,,,,true\n1.5,one,x,1,true\n");
}

TEST(ResultTables, AreSortedCutAndChosen) {
    const ResultTable table = small_table();
    EXPECT_EQ(result_csv(
                  table.sorted("number").limited(2).with_columns(std::vector<std::string>{"name", "number"})),
              "name,number\n\"'=two, \"\"2\"\"\",2\none,1.5\n");
    EXPECT_EQ(result_text(table.sorted("number", true).cell(0, 0)), "") << "null is the smallest";
    EXPECT_THROW(table.sorted("nothing"), Error);
    EXPECT_EQ(table.limited(0).rows, 3u);
}

TEST(ResultTables, KeepNullsAndListsInArrow) {
    ArrowSchema schema;
    ArrowArray array;
    export_arrow(small_table(), &schema, &array);
    EXPECT_EQ(array.length, 3);
    EXPECT_EQ(array.children[0]->null_count, 1);
    EXPECT_STREQ(schema.children[2]->format, "+L");
    const auto* const ends = static_cast<const std::int64_t*>(array.children[2]->buffers[1]);
    EXPECT_EQ((std::vector<std::int64_t>(ends, ends + 4)), (std::vector<std::int64_t>{0, 2, 2, 3}));
    EXPECT_EQ(array.children[2]->children[0]->length, 3);
    schema.release(&schema);
    array.release(&array);
}

}  // namespace
}  // namespace marey
