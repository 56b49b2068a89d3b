// range_filter_test.cpp: ranges can be left out, imports folded; everything that refers to the others still
// does.
#include <marey/range_filter.h>

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include <marey/averages.h>

#include "analyze/trace_fixture.h"
#include "trace/random_trace_fixture.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

/// The ranges as lines: indentation for the depth, name, self time.
std::vector<std::string> tree_of(const Trace& trace) {
    std::vector<std::string> lines;
    const RangeColumns ranges = trace.ranges();
    for (Row row = 0; row < ranges.size(); ++row)
        lines.push_back(std::string(2 * ranges.depth[row], ' ') + std::string(trace.range_name(row)) + " " +
                        std::to_string(ranges.self_ns[row]));
    return lines;
}

using Lines = std::vector<std::string>;

TEST(RangeFilter, GivesChildrenAndSelfTimeToTheRangeAround) {
    const Trace trace = TraceFixture()
                            .thread("main", {{"a", 0, 100, {{"b", 10, 50, {{"c", 20, 10}}}}},
                                             {"b", 200, 30, {{"d", 210, 5}}}})
                            .thread("other", {{"b", 0, 10, {{"b", 2, 6, {{"e", 3, 1}}}}}})
                            .trace();
    const Trace filtered = filter_ranges(trace, {.exclude = {"b"}});
    EXPECT_EQ(tree_of(filtered), (Lines{"a 90", "  c 10", "d 5", "e 1"}));
    EXPECT_EQ(find_damage(filtered.data()), "");
    EXPECT_EQ(filtered.tracks()[1].first_range, 3u);
    EXPECT_EQ(trace.ranges().size(), 8u) << "another reference to the trace sees no change";
}

TEST(RangeFilter, MatchesNamesFunctionsAndFiles) {
    TraceFixture fixture;
    fixture.site("a/b.py(3): Class.load", Scope::PythonFunction, "/home/me/a/b.py", 3);
    fixture.thread("main", {{"run", 0, 100, {{"a/b.py(3): Class.load", 10, 20}}}});
    const Trace trace = fixture.trace();
    for (const char* const pattern : {"a/b.py(3): Class.load", "Class.*", "?lass.load", "*/a/b.py", "a/*"})
        EXPECT_EQ(tree_of(filter_ranges(trace, {.exclude = {"nothing", pattern}})), Lines{"run 100"})
            << pattern;
    for (const char* const pattern : {"load", "class.load", "b.py", ""})
        EXPECT_EQ(filter_ranges(trace, {.exclude = {pattern}}).ranges().size(), 2u) << pattern;
}

TEST(RangeFilter, LeavesOutTheCallsThatWereRunningAtTheStart) {
    TraceFixture fixture;
    fixture.site("a.py(1): main", Scope::PythonFunction, "/a.py", 1);
    RangeSpec running{"a.py(1): main", 0, 100, {{"mark", 10, 50, {{"a.py(1): main", 20, 10}}}}};
    running.flags = kBeganBefore;
    RangeSpec marked{"marked", 200, 30, {}};
    marked.flags = kBeganBefore;
    const Trace trace = fixture.thread("main", {running, marked}).trace();
    const Trace filtered = filter_ranges(trace, {.exclude_running = true});
    EXPECT_EQ(tree_of(filtered), (Lines{"mark 40", "  a.py(1): main 10", "marked 30"}));
    EXPECT_EQ(find_damage(filtered.data()), "");
    EXPECT_EQ(filter_ranges(filtered, {.exclude_running = true}).ranges().size(), 3u);
}

/// The nearest range around `row` that stays, itself included.
Row kept_around(const Trace& trace, const std::string& removed, Row row) {
    while (row != kNoRow && trace.range_name(row) == removed) row = trace.ranges().parent[row];
    return row;
}

TEST(RangeFilter, LeavesEverythingElseAsItWas) {
    for (std::uint32_t seed = 1; seed <= 60; ++seed) {
        SCOPED_TRACE(seed);
        Trace trace(testing::random_data(seed));
        if (trace.ranges().size() == 0) continue;
        const std::string removed(trace.range_name(static_cast<Row>(seed % trace.ranges().size())));
        // Plain text as a pattern.
        if (removed.find_first_of("*?[\\") != removed.npos || removed.find("): ") != removed.npos) continue;
        const Trace filtered = filter_ranges(trace, {.exclude = {removed}});
        ASSERT_EQ(find_damage(filtered.data()), "");
        std::map<Row, Row> new_row{{kNoRow, kNoRow}};
        Row next = 0;
        const RangeColumns before = trace.ranges();
        const RangeColumns after = filtered.ranges();
        for (Row row = 0; row < before.size(); ++row) {
            if (trace.range_name(row) == removed) continue;
            ASSERT_LT(next, after.size());
            EXPECT_EQ(filtered.range_name(next), trace.range_name(row));
            EXPECT_EQ(after.start_ns[next], before.start_ns[row]);
            EXPECT_EQ(after.duration_ns[next], before.duration_ns[row]);
            EXPECT_EQ(after.flags[next], before.flags[row]);
            EXPECT_EQ(after.parent[next], new_row.at(kept_around(trace, removed, before.parent[row])));
            EXPECT_EQ(filtered.range_arguments(next).size(), trace.range_arguments(row).size());
            const RangeDetail* const detail = trace.range_detail(row);
            ASSERT_EQ(filtered.range_detail(next) != nullptr, detail != nullptr);
            if (detail != nullptr) {
                EXPECT_EQ(filtered.range_detail(next)->call, detail->call);
            }
            new_row[row] = next++;
        }
        EXPECT_EQ(next, after.size());
        std::multiset<std::pair<Row, Row>> links;
        for (const LinkInfo& link : trace.links()) {
            const Row from = kept_around(trace, removed, link.from);
            const Row to = kept_around(trace, removed, link.to);
            if (from != kNoRow && to != kNoRow) links.emplace(new_row.at(from), new_row.at(to));
        }
        std::multiset<std::pair<Row, Row>> links_after;
        for (const LinkInfo& link : filtered.links()) links_after.emplace(link.from, link.to);
        EXPECT_EQ(links_after, links);
        const std::vector<std::int64_t> self = self_times(trace.data());
        if (std::equal(self.begin(), self.end(), before.self_ns.begin(), before.self_ns.end())) {
            EXPECT_EQ(self_times(filtered.data()),
                      std::vector<std::int64_t>(after.self_ns.begin(), after.self_ns.end()));
        }
        // In place, the result is the same.
        EXPECT_EQ(tree_of(filter_ranges(std::move(trace), {.exclude = {removed}})), tree_of(filtered));
    }
}

// ---- imports

const std::string kBootstrap = "<frozen importlib._bootstrap>(9): ";
const std::string kExternal = "<frozen importlib._bootstrap_external>(9): ";
const std::string kProgram = "app.py(1): <module>";

/// The frames of importlib for one import, as far as the tests need them.
RangeSpec import_of(std::int64_t start, std::int64_t duration, const std::vector<RangeSpec>& inside) {
    return {kBootstrap + "_find_and_load",
            start,
            duration,
            {{kBootstrap + "_load_unlocked",
              start,
              duration,
              {{kExternal + "_LoaderBasics.exec_module", start, duration, inside}}}}};
}

Trace python_trace(const std::vector<RangeSpec>& ranges, const std::vector<RangeSpec>& other_thread = {}) {
    TraceFixture fixture;
    fixture.thread("main", ranges);
    if (!other_thread.empty()) fixture.thread("other", other_thread);
    for (SiteInfo& site : fixture.data().sites) {
        const std::string& name = fixture.data().strings[site.name];
        site.scope = name.find("): ") != name.npos ? Scope::PythonFunction : Scope::CFunction;
        site.line = 1;
        const std::string path = name.substr(0, name.find('('));
        site.file =
            fixture.string(path.starts_with('<') || path.starts_with('/') ? path : "/home/me/" + path);
    }
    return fixture.trace();
}

Lines folded(const std::vector<RangeSpec>& ranges) {
    return tree_of(filter_ranges(python_trace(ranges), {.fold_imports = true}));
}

TEST(RangeFilter, ShowsAnImportAsOneRangeNamedAfterTheModule) {
    const std::vector<RangeSpec> code{
        {"shop/__init__.py(1): <module>",
         30,
         60,
         {import_of(40, 30, {{"builtins.exec", 45, 20, {{"shop/load.py(1): <module>", 46, 10}}}}),
          {"shop/load.py(3): load", 80, 5, {{"math.sqrt", 81, 1}}}}}};
    EXPECT_EQ(folded({{kProgram, 0, 100, {import_of(10, 85, code)}}}),
              (Lines{kProgram + " 15", "  import shop 50", "    import shop.load 30",
                     "    shop/load.py(3): load 4", "      math.sqrt 1"}));
}

TEST(RangeFilter, NamesImportsOfEveryKindOfModule) {
    const auto name = [](const std::string& code) {
        return folded({import_of(0, 10, {{code, 0, 10}})}).at(0);
    };
    EXPECT_EQ(name("<frozen abc>(1): <module>"), "import abc 10");
    EXPECT_EQ(name("six.py(1): <module>"), "import six 10");
    EXPECT_EQ(name("/v/lib/python3.12/site-packages/django/urls/__init__.py(1): <module>"),
              "import django.urls 10");
    EXPECT_EQ(name("/usr/lib/python3.12/json/decoder.py(1): <module>"), "import json.decoder 10");
    EXPECT_EQ(name("/opt/plugins/one.py(1): <module>"), "import one 10");
    EXPECT_EQ(name(kExternal + "ExtensionFileLoader.create_module"), "import (C module) 10");
    EXPECT_EQ(name(kBootstrap + "BuiltinImporter.create_module"), "import (C module) 10");
    EXPECT_EQ(name(kBootstrap + "_find_spec"), "import (unknown module) 10");
}

TEST(RangeFilter, KeepsTheNamesOfImportsWhoseCodeWasNotRecorded) {
    Trace trace = python_trace({{kProgram, 0, 100, {import_of(10, 20, {}), import_of(40, 30, {})}}});
    std::vector<std::string> modules{"_json", "shop.load"};
    const std::shared_ptr<TraceData> data = changeable_data(std::move(trace));
    for (Row row = 0; row < data->range_site.size(); ++row) {
        if (data->range_depth[row] != 1) continue;
        SiteInfo site = data->sites[data->range_site[row]];
        site.overload = static_cast<StringId>(data->strings.size());
        site.file = 0;
        data->strings.push_back(modules.back());
        modules.pop_back();
        data->range_site[row] = static_cast<std::uint32_t>(data->sites.size());
        data->sites.push_back(site);
    }
    const Trace found = filter_ranges(Trace(data), {.fold_imports = true});
    EXPECT_EQ(tree_of(found), (Lines{kProgram + " 50", "  import shop.load 20", "  import _json 30"}));
}

TEST(RangeFilter, KeepsCodeThatALoaderOfTheProgramRuns) {
    EXPECT_EQ(
        folded({import_of(0, 50,
                          {{"pytest/rewrite.py(7): Hook.exec_module",
                            10,
                            30,
                            {{"<string>(1): <module>", 12, 2}, {"tests/x.py(1): <module>", 20, 10}}}})}),
        (Lines{"import tests.x 20", "  pytest/rewrite.py(7): Hook.exec_module 18",
               "    <string>(1): <module> 2", "    tests/x.py(1): <module> 10"}));
}

TEST(RangeFilter, RemovesFramesOfImportlibOutsideOfImports) {
    EXPECT_EQ(folded({{kProgram,
                       0,
                       100,
                       {{kBootstrap + "_handle_fromlist", 10, 20, {{"builtins.hasattr", 12, 2}}},
                        {"math.sqrt", 50, 10}}}}),
              (Lines{kProgram + " 90", "  math.sqrt 10"}));
}

TEST(RangeFilter, ExcludesFoldedImportsByNameAndFile) {
    const Trace trace =
        python_trace({{kProgram, 0, 100, {import_of(10, 85, {{"shop.py(1): <module>", 30, 60}})}}});
    for (const char* const pattern : {"import *", "*/shop.py"})
        EXPECT_EQ(tree_of(filter_ranges(trace, {.exclude = {pattern}, .fold_imports = true})),
                  Lines{kProgram + " 100"})
            << pattern;
}

TEST(RangeFilter, AddsUpTheTimeOfOuterImports) {
    const std::vector<RangeSpec> code{
        {"a.py(1): <module>", 10, 80, {import_of(20, 30, {{"b.py(1): <module>", 20, 30}})}}};
    const Trace trace =
        python_trace({import_of(0, 100, code), {kProgram, 200, 100, {import_of(250, 7, {})}}});
    EXPECT_EQ(import_time_ns(filter_ranges(trace, {.fold_imports = true})), 107);
    EXPECT_EQ(import_time_ns(trace), 0);
}

TEST(RangeFilter, CountsTheTimeInWhichTwoThreadsImportOnce) {
    const Trace trace =
        python_trace({import_of(0, 100, {}), import_of(300, 10, {})}, {import_of(50, 150, {})});
    EXPECT_EQ(import_time_ns(filter_ranges(trace, {.fold_imports = true})), 200 + 10);
}

TEST(RangeFilter, GroupsImportsByTheirModule) {
    const Trace trace = filter_ranges(
        python_trace(
            {import_of(0, 100, {{"shop/load.py(1): <module>", 0, 90, {{"shop/load.py(5): f", 3, 10}}}}),
             import_of(100, 10, {{kExternal + "ExtensionFileLoader.create_module", 100, 10}})}),
        {.fold_imports = true});
    const auto names = [&](GroupBy by) {
        Lines lines;
        for (const AverageRow& row : key_averages(trace, {.group_by = by}).rows) lines.push_back(row.name);
        return lines;
    };
    EXPECT_EQ(names(GroupBy::Module), (Lines{"shop.load", "importlib._bootstrap (standard library)"}));
    EXPECT_EQ(names(GroupBy::File), (Lines{"shop/load.py", "<frozen importlib._bootstrap>"}));
    EXPECT_EQ(names(GroupBy::Line)[0], "shop/load.py:1");
    EXPECT_EQ(names(GroupBy::Function)[0], "shop/load.py: import shop.load");
}

}  // namespace
}  // namespace marey
