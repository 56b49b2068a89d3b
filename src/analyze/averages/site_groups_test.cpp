// site_groups_test.cpp: averages by function, line, file, module and package.
#include <gtest/gtest.h>

#include <map>

#include <marey/analyze.h>

#include "analyze/trace_fixture.h"

namespace marey {
namespace {

constexpr const char* kMain = "app.py(1): <module>";
constexpr const char* kLoad = "shop/load.py(3): load";
constexpr const char* kAgain = "shop/load.py(30): load";
constexpr const char* kParse = "shop/load.py(12): Parser.parse";
constexpr const char* kDecode = "json/decoder.py(332): JSONDecoder.decode";
constexpr const char* kPackage = "flask/__init__.py(7): make";
constexpr const char* kOther = "flask/app.py(9): Flask.run";
constexpr const char* kFrozen = "<frozen importlib._bootstrap>(100): _find";

TraceFixture program() {
    TraceFixture fixture;
    const std::string library = "/env/lib/python3.11/site-packages/";
    const auto python = [&](const std::string& name, const std::string& file, std::uint32_t line) {
        fixture.site(name, Scope::PythonFunction, file, line);
    };
    python(kMain, "/home/me/app.py", 1);
    python(kLoad, "/home/me/shop/load.py", 3);
    python(kAgain, "/home/me/shop/load.py", 30);
    python(kParse, "/home/me/shop/load.py", 12);
    python(kDecode, "/usr/lib/python3.11/json/decoder.py", 332);
    python(kPackage, library + "flask/__init__.py", 7);
    python(kOther, library + "flask/app.py", 9);
    python(kFrozen, "<frozen importlib._bootstrap>", 100);
    fixture.site("_json.scanstring", Scope::CFunction, "_json");
    fixture.site("numpy.linalg._umath.solve", Scope::CFunction, "numpy.linalg._umath");
    fixture.site("mark", Scope::User, "/src/mark.cpp", 5);
    fixture.thread(
        "main",
        {{kMain,
          0,
          1000,
          {{kLoad,
            0,
            400,
            {{kParse, 0, 300, {{kAgain, 0, 200, {{kDecode, 0, 100, {{"_json.scanstring", 0, 40}}}}}}}}},
           {kPackage, 400, 200, {{kOther, 400, 150}}},
           {kFrozen, 600, 50},
           {"numpy.linalg._umath.solve", 700, 70},
           {"mark", 800, 30},
           {"plain", 900, 10}}}});
    return fixture;
}

/// Self time and covered time by row name.
std::map<std::string, std::pair<std::int64_t, std::int64_t>> times(GroupBy by) {
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> result;
    for (const AverageRow& row : key_averages(program().trace(), {.group_by = by, .covered = true}).rows)
        result[row.name] = {row.self_cpu_time_total_ns, row.covered_ns};
    return result;
}

using Times = std::map<std::string, std::pair<std::int64_t, std::int64_t>>;

TEST(SiteGroups, AFileIsOneGroupWhateverItsScopesAndHoweverItIsSpelled) {
    TraceFixture fixture;
    fixture.site("A::get", Scope::Function, "/src/a.cpp", 3);
    fixture.site("mark", Scope::User, "/src/a.cpp", 4);
    fixture.site("inline", Scope::Function, "/src/lib/../a.cpp", 5);
    fixture.thread("main", {{"A::get", 0, 100, {{"mark", 0, 10}, {"inline", 50, 20}}}});
    const auto rows = key_averages(fixture.trace(), {.group_by = GroupBy::File}).rows;
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].name, "/src/a.cpp");
    EXPECT_EQ(rows[0].count, 3);
    EXPECT_EQ(rows[0].self_cpu_time_total_ns, 100);
}

TEST(SiteGroups, AFunctionIsOneGroupOnAnyLine) {
    const Times rows = times(GroupBy::Function);
    EXPECT_EQ(rows.at("shop/load.py: load"), (std::pair<std::int64_t, std::int64_t>{200, 400}));
    EXPECT_EQ(rows.at("json/decoder.py: JSONDecoder.decode").first, 60);
    EXPECT_EQ(rows.at("_json.scanstring").first, 40);
    EXPECT_EQ(rows.at("mark").first, 30);
    EXPECT_EQ(rows.size(), 11u);
}

TEST(SiteGroups, ALineIsThatOfTheDefinition) {
    const Times rows = times(GroupBy::Line);
    EXPECT_EQ(rows.at("shop/load.py:3").first, 100);
    EXPECT_EQ(rows.at("shop/load.py:30").first, 100);
    EXPECT_EQ(rows.at("/src/mark.cpp:5").first, 30);
    EXPECT_EQ(rows.at("plain").first, 10);
}

TEST(SiteGroups, AFileHoldsItsFunctionsAndCountsNothingTwice) {
    const Times rows = times(GroupBy::File);
    EXPECT_EQ(rows.at("shop/load.py"), (std::pair<std::int64_t, std::int64_t>{300, 400}));
    EXPECT_EQ(rows.at("app.py"), (std::pair<std::int64_t, std::int64_t>{240, 1000}));
    EXPECT_EQ(rows.at("_json (C)").first, 40);
}

TEST(SiteGroups, AModuleShowsItsOrigin) {
    const Times rows = times(GroupBy::Module);
    EXPECT_EQ(rows.at("app").first, 240);
    EXPECT_EQ(rows.at("shop.load").first, 300);
    EXPECT_EQ(rows.at("json.decoder (standard library)").first, 60);
    EXPECT_EQ(rows.at("flask (library)"), (std::pair<std::int64_t, std::int64_t>{50, 200}));
    EXPECT_EQ(rows.at("flask.app (library)").first, 150);
    EXPECT_EQ(rows.at("importlib._bootstrap (standard library)").first, 50);
    EXPECT_EQ(rows.at("numpy.linalg._umath (C)").first, 70);
}

TEST(SiteGroups, PackagesDistinguishTheProgramFromItsLibraries) {
    const Times rows = times(GroupBy::Package);
    EXPECT_EQ(rows.at("(program)"), (std::pair<std::int64_t, std::int64_t>{540, 1000}));
    EXPECT_EQ(rows.at("(standard library)").first, 110);
    EXPECT_EQ(rows.at("flask"), (std::pair<std::int64_t, std::int64_t>{200, 200}));
    EXPECT_EQ(rows.at("numpy (C)").first, 70);
    EXPECT_EQ(rows.at("_json (C)").first, 40);
}

TEST(SiteGroups, SelfTimesAddUpToTheSameForAnyGrouping) {
    for (const GroupBy by : {GroupBy::Name, GroupBy::Function, GroupBy::Line, GroupBy::File, GroupBy::Module,
                             GroupBy::Package}) {
        EXPECT_EQ(key_averages(program().trace(), {.group_by = by}).recorded_ns, 1000);
    }
}

}  // namespace
}  // namespace marey
