// api_test.cpp: the answers to the page, from hand-made traces.
#include "serve/api.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>

#include <marey/analyze.h>
#include <marey/error.h>
#include <marey/export.h>
#include <marey/results.h>
#include <marey/table.h>

#include "analyze/trace_fixture.h"
#include "json/strict_json_fixture.h"

namespace marey::serve {
namespace {

Trace small_trace() {
    return TraceFixture()
        .thread("main",
                {{"main", 1000, 1000, {{"read", 1100, 200}, {"parse", 1400, 500, {{"read", 1500, 100}}}}}})
        .instant("tick", 1450)
        .instant("tick", 1460)
        .counter("size", 1200, 5)
        .counter("size", 1900, -2)
        .thread("worker", {{"job", 1000, 400}, {"job", 1600, 400}})
        .trace();
}

bool is_strict_json(const std::string& text) {
    StrictJson::Value value;
    return StrictJson::parse(text, value).empty();
}

class ApiFixture {
  public:
    explicit ApiFixture(Trace trace, std::vector<std::string> source_dirs = {})
        : api_({{"app.marey", [trace = std::move(trace)] { return trace; }}}, std::move(source_dirs),
               "secret") {}

    std::string body(const std::string& target) const { return api_.handle_own(target).body; }
    /// The status, and the text of the error.
    std::pair<int, std::string> error(const std::string& target) const {
        try {
            return {api_.handle_own(target).status, ""};
        } catch (const RequestError& error) {
            return {error.status(), error.what()};
        }
    }
    int status(const std::string& target) const { return error(target).first; }

    explicit ApiFixture(std::vector<ViewSource> sources, RunComparison* comparison = nullptr)
        : api_(std::move(sources), {}, "secret", comparison) {}

  private:
    Api api_;
};

template <class T>
std::vector<T> column(const std::string& bytes, std::size_t& at, std::size_t count) {
    std::vector<T> values(count);
    EXPECT_LE(at + count * sizeof(T), bytes.size());
    if (count > 0) std::memcpy(values.data(), bytes.data() + at, count * sizeof(T));
    at += count * sizeof(T);
    return values;
}

struct Box {
    std::uint32_t level, begin, width, site;
    bool is_merged;
    friend bool operator==(const Box&, const Box&) = default;
};

/// A picture as the page unpacks it.
std::vector<Box> unpacked(const std::string& bytes) {
    std::size_t at = 0;
    const auto head = column<std::uint32_t>(bytes, at, 6);
    EXPECT_EQ(head[0], 0x31434950u);
    EXPECT_EQ(head[4], 8u);
    const std::size_t count = head[2];
    const auto first = column<std::uint32_t>(bytes, at, head[1] + 1);
    const auto ids = column<std::uint32_t>(bytes, at, head[3]);
    std::vector<std::uint32_t> wide;
    if (head[5] == 4) wide = column<std::uint32_t>(bytes, at, count);
    const auto begin = column<std::uint16_t>(bytes, at, count);
    const auto width = column<std::uint16_t>(bytes, at, count);
    std::vector<std::uint16_t> narrow;
    if (head[5] == 2) narrow = column<std::uint16_t>(bytes, at, count);
    EXPECT_EQ(at, bytes.size());
    std::vector<Box> boxes;
    for (std::uint32_t level = 0; level < head[1]; ++level) {
        for (std::uint32_t i = first[level]; i < first[level + 1]; ++i) {
            const std::uint32_t site = head[5] == 4 ? wide[i] : narrow[i];
            const std::uint32_t flag = head[5] == 4 ? 1u << 31 : 1u << 15;
            boxes.push_back({level, begin[i], width[i], ids[site & ~flag], (site & flag) != 0});
        }
    }
    return boxes;
}

TEST(Api, DrawsATrackByPixels) {
    const ApiFixture api(small_trace());
    const std::vector<Box> boxes =
        unpacked(api.body("/api/picture?track=0&begin=0&end=1000&pixels=100&levels=40"));
    // Sites are numbered as they first occur: main, read, parse.
    EXPECT_EQ(
        boxes,
        (std::vector<Box>{
            {0, 0, 800, 0, false}, {1, 80, 160, 1, false}, {1, 320, 400, 2, false}, {2, 400, 80, 1, false}}));
    EXPECT_EQ(unpacked(api.body("/api/picture?track=0&begin=0&end=1000&pixels=100&levels=1")).size(), 1u);
}

TEST(Api, JoinsMergedBoxesOfOneNameThatTouch) {
    TraceFixture fixture;
    std::vector<RangeSpec> ranges;
    for (int i = 0; i < 1000; ++i) ranges.push_back({"tiny", i * 10, 5});
    fixture.thread("main", ranges);
    const ApiFixture api(fixture.trace());
    const std::vector<Box> boxes = unpacked(api.body("/api/picture?track=0&pixels=50"));
    ASSERT_EQ(boxes.size(), 1u);
    EXPECT_EQ(boxes[0].begin, 0u);
    EXPECT_EQ(boxes[0].width, 400u);
    EXPECT_TRUE(boxes[0].is_merged);
}

TEST(Api, OutlinesTheTrace) {
    const ApiFixture api(small_trace());
    const std::string outline = api.body("/api/outline");
    EXPECT_TRUE(is_strict_json(outline)) << outline;
    for (
        const char* const part :
        {R"("file":"app.marey")", R"("state":"ready")", R"("duration_ns":1000)", R"("range_count":6)",
         R"("name":"main","process":0,"thread":0,"device":"","stream":-1,"rows":4,"levels":3,"first_ns":0,"last_ns":1000)",
         R"("name":"size","process":0,"device":"","unit":"","kind":"counter","samples":2,"min":-2,"max":5)",
         R"("instants":2)"})
        EXPECT_NE(outline.find(part), outline.npos) << part << "\n" << outline;
}

TEST(Api, ShowsOnlyThePageAndTheNameUntilATraceIsLoaded) {
    const Api api({{"slow", []() -> Trace { throw Error("not a trace"); }}}, {}, "secret");
    EXPECT_NE(api.handle_own("/api/outline").body.find(R"("state":"failed","error":"not a trace")"),
              std::string::npos);
    EXPECT_THROW(api.handle_own("/api/picture?track=0&pixels=10"), RequestError);
    EXPECT_FALSE(api.handle_own("/").body.empty());
}

TEST(Api, OutlinesATraceWhileItIsBeingRead) {
    const auto progress = std::make_shared<LoadProgress>();
    std::promise<void> outlined, finish;
    const auto load = [&] {
        const Trace trace = small_trace();
        progress->done = 1;
        progress->total = 4;
        progress->on_outline(TraceFixture().thread("main", {}).window(1000, 2000).trace());
        outlined.set_value();
        finish.get_future().wait();
        return trace;
    };
    const Api api({{"slow.marey", load, progress}}, {}, "secret");
    outlined.get_future().wait();
    const auto ask = [&](const std::string& path) {
        return api.handle(
            parse_request("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nMarey-Token: secret\r\n\r\n"));
    };
    const std::string outline = ask("/api/outline").body;
    EXPECT_TRUE(is_strict_json(outline)) << outline;
    for (const char* const part : {R"("state":"loading")", R"("progress":0.25)", R"("duration_ns":1000)",
                                   R"("name":"app")", R"("name":"main","instants":0)", R"("tracks":[])"})
        EXPECT_NE(outline.find(part), outline.npos) << part << "\n" << outline;
    EXPECT_THROW(ask("/api/picture?track=0&pixels=10"), RequestError);
    finish.set_value();
    const std::string ready = api.handle_own("/api/outline").body;
    EXPECT_NE(ready.find(R"("state":"ready")"), ready.npos);
    EXPECT_EQ(ready.find(R"("progress")"), ready.npos);
}

TEST(Api, NamesSites) {
    const ApiFixture api(small_trace());
    const std::string names = api.body("/api/names?sites=0,2");
    EXPECT_NE(names.find(R"({"site":0,"name":"main",)"), names.npos) << names;
    EXPECT_NE(names.find(R"({"site":2,"name":"parse",)"), names.npos) << names;
    EXPECT_EQ(api.status("/api/names?sites=999"), 400);
}

TEST(Api, ReportsWhatTheCommandReports) {
    const Trace trace = small_trace();
    const ApiFixture api(trace);
    AverageOptions options;
    options.merge_repeated = false;
    options.flops = options.covered = options.percentiles = options.nesting = true;
    TableOptions table;
    table.sort_by = "self";
    table.row_limit = -1;
    EXPECT_EQ(api.body("/api/table"), averages_json(trace, key_averages(trace, options), table));
    const Trace part = select_ranges(trace, {1100, 1450, {0}});
    EXPECT_EQ(api.body("/api/table?begin=100&end=450&tracks=0"),
              averages_json(part, key_averages(part, options), table));
    EXPECT_EQ(api.body("/api/steps"), result_json(step_result(trace, step_report(trace))));
    EXPECT_EQ(api.body("/api/gpu"), result_json(gpu_result(trace, gpu_use(trace))));
    EXPECT_EQ(api.body("/api/memory"), result_json(memory_result(trace, memory_use(trace))));
    EXPECT_EQ(api.body("/api/table?text=REA").find("parse"), std::string::npos);
    EXPECT_EQ(api.status("/api/table?sort=nothing"), 400);
}

TEST(Api, MakesAQuickTableWithoutTheExpensiveColumns) {
    const ApiFixture api(small_trace());
    const std::string quick = api.body("/api/table?quick=1");
    EXPECT_NE(quick.find(R"("self_cpu_time_total_ns": 800)"), quick.npos) << quick;
    EXPECT_EQ(quick.find("p99_ns"), quick.npos) << quick;
    EXPECT_EQ(api.body("/api/table?quick=1"), quick) << "kept";
    EXPECT_NE(api.body("/api/table").find("p99_ns"), std::string::npos);
}

TEST(Api, MakesFlameGraphs) {
    const ApiFixture api(small_trace());
    EXPECT_EQ(api.body("/api/flame?value=total"),
              R"({"value":"total","unit":"ns","total":1800,"nodes":[[-1,0,1000,300,1],[0,1,500,400,1],)"
              R"([1,2,100,100,1],[0,2,200,200,1],[-1,3,800,800,2]],"names":["main","parse","read","job"]})");
    EXPECT_NE(api.body("/api/flame?value=calls").find(R"("total":6)"), std::string::npos);
    EXPECT_NE(api.body("/api/flame?value=self").find(R"("nodes":[[-1,0,800,800,2])"), std::string::npos)
        << api.body("/api/flame?value=self");
    EXPECT_NE(api.body("/api/flame?value=bytes").find(R"("total":0,"nodes":[])"), std::string::npos);
    EXPECT_EQ(api.status("/api/flame?value=colour"), 400);
}

TEST(Api, MergesStepsInFlameGraphsAndSandwiches) {
    const ApiFixture api(TraceFixture()
                             .thread("main", {{"ProfilerStep#1", 0, 300, {{"load", 0, 100}}},
                                              {"ProfilerStep#2", 300, 300, {{"load", 300, 50}}}})
                             .trace());
    EXPECT_NE(api.body("/api/flame").find(R"("nodes":[[-1,0,600,450,2],[0,1,150,150,2]])"), std::string::npos)
        << api.body("/api/flame");
    for (const char* name : {"ProfilerStep*", "ProfilerStep%232"}) {
        const std::string sandwich = api.body("/api/sandwich?name=" + std::string(name));
        EXPECT_NE(sandwich.find(R"("count":2,"total_ns":600,"self_ns":450)"), sandwich.npos) << sandwich;
    }
}

TEST(Api, MakesFlameGraphsOfAllocationsWithTheNamesAsRecorded) {
    TraceFixture fixture;
    fixture.thread("main", {{"load; parse", 0, 100}});
    TraceData& data = fixture.data();
    data.memory_time_ns = {50};
    data.memory_thread = {0};
    data.memory_address = {1};
    data.memory_bytes = {4096};
    data.memory_total_allocated = {0};
    data.memory_total_reserved = {0};
    data.memory_device = {Device{}};
    data.memory_out_of_memory = {0};
    const ApiFixture api(fixture.trace());
    EXPECT_EQ(
        api.body("/api/flame?value=bytes"),
        R"({"value":"bytes","unit":"bytes","total":4096,"nodes":[[-1,0,4096,4096,0]],"names":["load; parse"]})");
}

TEST(Api, MergesNodesThatAreTooNarrowToSee) {
    std::vector<RangeSpec> ranges{{"wide", 0, 100'000}};
    for (int i = 0; i < 20; ++i) ranges.push_back({"n" + std::to_string(i), 100'000 + i, 1});
    const ApiFixture api(TraceFixture().thread("main", ranges).trace());
    EXPECT_EQ(
        api.body("/api/flame?pixels=1000"),
        R"({"value":"total","unit":"ns","total":100020,"nodes":[[-1,0,100000,100000,1],[-1,-1,20,20,20]],)"
        R"("names":["wide"]})");
}

TEST(Api, ShowsTheCallersAndCalleesOfAName) {
    const ApiFixture api(small_trace());
    const std::string sandwich = api.body("/api/sandwich?name=read");
    EXPECT_NE(sandwich.find(R"("name":"read","count":2,"total_ns":300,"self_ns":300,)"), sandwich.npos)
        << sandwich;
    EXPECT_NE(sandwich.find(R"("names":["read","main","parse"])"), sandwich.npos) << sandwich;
    EXPECT_EQ(api.body("/api/sandwich?site=1"), sandwich);
    EXPECT_EQ(api.status("/api/sandwich"), 400);
    EXPECT_NE(api.body("/api/sandwich?name=unknown").find(R"("count":0)"), std::string::npos);
}

TEST(Api, FindsNames) {
    const ApiFixture api(small_trace());
    const std::string found = api.body("/api/search?text=READ&pixels=10");
    EXPECT_NE(found.find(R"("count":2,"exact":true,"sites":[1],"names":1,"marks":[1,1,5,1])"), found.npos)
        << found;
    EXPECT_NE(api.body("/api/search?text=^(job|main)$&regex=1").find(R"("count":3)"), std::string::npos);
    EXPECT_NE(api.body("/api/search?text=read&begin=250&end=450").find(R"("count":1)"), std::string::npos)
        << "it is open when the selection begins";
    EXPECT_NE(api.body("/api/search?text=a&limit=1&quick=1").find(R"("exact":false)"), std::string::npos);
    EXPECT_NE(api.body("/api/search?name=rea").find(R"("count":0)"), std::string::npos);
    EXPECT_EQ(api.error("/api/search?text=%28&regex=1").first, 400);
    // Repetitions that would take gigabytes are refused before they are compiled.
    for (const char* const large : {"x{1,20000}", "(x{200}){200}", "((ab|c){99}[^]]{99}){30,}", "x{90}{90}"})
        EXPECT_NE(api.error("/api/search?regex=1&text=" + std::string(large)).second.find("repeats too much"),
                  std::string::npos)
            << large;
    for (const char* const small : {"x{1,900}", "[{1,20000}]", "(x{30}){30}", "[[:alpha:]{9999}]"})
        EXPECT_NE(api.body("/api/search?regex=1&text=" + std::string(small)).find("count"), std::string::npos)
            << small;
    EXPECT_EQ(api.status("/api/search?text="), 400);
}

TEST(Api, StepsFromOneRangeToTheNextOfItsName) {
    const ApiFixture api(small_trace());
    EXPECT_TRUE(api.body("/api/next?row=1&direction=1").starts_with(R"({"row":3,)"));
    EXPECT_TRUE(api.body("/api/next?row=3&direction=-1").starts_with(R"({"row":1,)"));
    EXPECT_EQ(api.body("/api/next?row=3&direction=1"), R"({"row":null})");
    EXPECT_TRUE(api.body("/api/next?time=0&text=job").starts_with(R"({"row":4,)"));
    EXPECT_TRUE(api.body("/api/next?row=4&within=all&text=e").starts_with(R"({"row":1,)"));
    EXPECT_TRUE(api.body("/api/next?time=700&text=job&direction=-1").starts_with(R"({"row":5,)"));
}

TEST(Api, DescribesARange) {
    TraceFixture fixture;
    Argument count;
    count.kind = ValueKind::Int;
    count.integer = 42;
    fixture.thread("main", {{"main", 0, 100, {{"read", 10, 20}}}}).value("count", count);
    fixture.data().links = {{0, 1, LinkKind::Flow, 0}, {1, 77, LinkKind::Flow, 0}};
    const ApiFixture api(fixture.trace());
    const std::string range = api.body("/api/range?row=1");
    EXPECT_TRUE(is_strict_json(range)) << range;
    for (const char* const part :
         {R"("row":1,"site":1,"name":"read","track":0,"depth":1,"start_ns":10,"duration_ns":20)",
          R"("values":[{"key":"count","role":"keyword","kind":"int","value":"42"}])",
          R"("parents":[{"row":0,)", R"("links":[{"row":0,)", R"("direction":"from")"})
        EXPECT_NE(range.find(part), range.npos) << part << "\n" << range;
    const std::string links = api.body("/api/links?row=1");
    EXPECT_NE(links.find(R"("cut":false)"), links.npos);
    EXPECT_EQ(links.find("77"), links.npos) << "the row does not exist";
    EXPECT_EQ(api.status("/api/range?row=2"), 400);
}

TEST(Api, DrawsTasksOnTracksOfTheirOwnButDoesNotCountThem) {
    TraceFixture fixture;
    fixture.thread("main", {{"work", 0, 10}, {"work", 20, 10}});
    fixture.data().range_details = {{0, -1, 0, 0, 1, kFirstPart}, {1, -1, 0, 0, 1, kLastPart}};
    fixture.data().tasks = {{0, 1, fixture.string("Task-1")}};
    const ApiFixture api(fixture.trace());
    const std::string outline = api.body("/api/outline");
    EXPECT_NE(outline.find(R"("kind":"task","name":"Task-1")"), outline.npos) << outline;
    EXPECT_NE(outline.find(R"("range_count":2)"), outline.npos) << outline;
    EXPECT_FALSE(unpacked(api.body("/api/picture?track=1&pixels=10")).empty());
    EXPECT_NE(api.body("/api/search?text=work").find(R"("count":2)"), std::string::npos);
    EXPECT_NE(api.body("/api/table?tracks=1").find(R"("rows": [])"), std::string::npos)
        << api.body("/api/table?tracks=1");
    const std::string links = api.body("/api/links?row=0");
    EXPECT_NE(links.find(R"("arrows":[{"kind":"part","name":"","from":{"row":0,)"), links.npos) << links;
}

TEST(Api, SaysWhatIsUnderABox) {
    const ApiFixture api(small_trace());
    const std::string one = api.body("/api/at?track=0&level=1&begin=400&end=900");
    EXPECT_NE(one.find(R"("count":1,)"), one.npos) << one;
    EXPECT_NE(one.find(R"("row":2,"range":{"row":2,)"), one.npos) << one;
    const std::string several = api.body("/api/at?track=1&level=0&begin=0&end=1000");
    EXPECT_NE(several.find(R"("names":[{"site":5,"name":"job","count":2,"total_ns":800}])"), several.npos)
        << several;
    const std::string none = api.body("/api/at?track=1&level=7&begin=0&end=1000");
    EXPECT_NE(none.find(R"("row":null)"), none.npos) << none;
}

TEST(Api, DrawsCountersByPixels) {
    const ApiFixture api(small_trace());
    const std::string bytes = api.body("/api/counter?counter=0&begin=0&end=1000&pixels=4");
    std::size_t at = 8;
    const auto least = column<double>(bytes, at, 4);
    const auto greatest = column<double>(bytes, at, 4);
    const auto last = column<double>(bytes, at, 4);
    EXPECT_EQ(at, bytes.size());
    EXPECT_EQ(least, (std::vector<double>{5, 5, 5, -2}));
    EXPECT_EQ(greatest, (std::vector<double>{5, 5, 5, -2}));
    EXPECT_EQ(last, (std::vector<double>{5, 5, 5, -2}));
    EXPECT_EQ(api.status("/api/counter?counter=1&pixels=4"), 400);
}

TEST(Api, DrawsInstantsAndTheOverview) {
    const ApiFixture api(small_trace());
    const std::string marks = api.body("/api/instants?thread=0&begin=0&end=1000&pixels=10");
    std::size_t at = 4;
    EXPECT_EQ(column<std::uint32_t>(marks, at, 5), (std::vector<std::uint32_t>{1, 4, 3, 0, 2}));
    const std::string overview = api.body("/api/overview?pixels=10");
    at = 8;
    const auto host = column<float>(overview, at, 10);
    EXPECT_EQ(host[0], 2.0f);
    EXPECT_EQ(host[5], 1.0f);
    EXPECT_EQ(overview.size(), 8u + 80u);
}

TEST(Api, AnswersAboutAnEmptyTrace) {
    const ApiFixture api{Trace()};
    for (const char* const target :
         {"/api/outline", "/api/table", "/api/flame", "/api/flame?value=gpu", "/api/steps", "/api/gpu",
          "/api/memory", "/api/search?text=x", "/api/names?sites=", "/api/overview?pixels=10",
          "/api/sandwich?name=x", "/api/next?time=0&text=x"})
        EXPECT_EQ(api.status(target), 200) << target << ": " << api.error(target).second;
    EXPECT_EQ(api.status("/api/picture?track=0&pixels=10"), 404);
    EXPECT_EQ(api.status("/api/range?row=0"), 404);
}

TEST(Api, AnswersAboutAHundredThousandLevelsAndTwentyThousandTracks) {
    constexpr Row kLevels = 100'000;
    TraceFixture fixture;
    fixture.thread("deep", {});
    TraceData& data = fixture.data();
    const std::uint32_t site = fixture.site("recurse");
    for (Row row = 0; row < kLevels; ++row) {
        data.range_start_ns.push_back(row);
        data.range_duration_ns.push_back(std::int64_t{2} * kLevels - 2 * row);
        data.range_self_ns.push_back(0);
        data.range_site.push_back(site);
        data.range_parent.push_back(row == 0 ? kNoRow : row - 1);
        data.range_depth.push_back(row);
        data.range_flags.push_back(0);
    }
    data.tracks[0].range_count = kLevels;
    TrackInfo empty = data.tracks[0];
    empty.first_range = kLevels;
    empty.range_count = 0;
    data.tracks.resize(20'000, empty);
    const ApiFixture api(fixture.window(0, std::int64_t{2} * kLevels).trace());
    for (const char* const target :
         {"/api/outline", "/api/picture?track=0&pixels=1500&levels=256", "/api/table?begin=70000&end=80000",
          "/api/flame", "/api/range?row=99999", "/api/search?text=recurse&begin=90000",
          "/api/overview?pixels=1500", "/api/at?track=0&level=99999&begin=99999&end=100001",
          "/api/links?row=0"})
        EXPECT_EQ(api.status(target), 200) << target << ": " << api.error(target).second;
    EXPECT_NE(api.body("/api/outline").find(R"("levels":100000)"), std::string::npos);
    EXPECT_LT(api.body("/api/picture?track=0&pixels=1500&levels=256").size(), 1'000'000u);
}

TEST(Api, RejectsParametersOutOfTheirLimits) {
    const ApiFixture api(small_trace());
    for (const char* const target :
         {"/api/picture?track=2&pixels=10", "/api/picture?track=0&pixels=0",
          "/api/picture?track=0&pixels=99999", "/api/picture?track=0&pixels=10&begin=5&end=5",
          "/api/picture?track=0&pixels=10&begin=5&end=1", "/api/picture?track=0&pixels=10&levels=100000",
          "/api/picture?pixels=10", "/api/table?by=colour", "/api/table?tracks=7",
          "/api/overview?trace=1&pixels=10", "/api/at?track=0"})
        EXPECT_EQ(api.status(target), 400) << target;
    EXPECT_EQ(api.status("/api/nothing"), 404);
    EXPECT_EQ(api.status("/nothing"), 404);
    EXPECT_EQ(api.status("/api/names?sites=0&generation=7"), 409);
    EXPECT_EQ(
        api.status("/api/picture?track=0&pixels=4096&begin=-4611686018427387904&end=4611686018427387904"),
        200);
}

TEST(Api, KeepsHostileNamesInsideTheirStrings) {
    const std::string evil = "</script>\xff\"\\\n\x01\u202e" + std::string(1 << 20, 'x');
    const ApiFixture api(
        TraceFixture().thread(evil, {{evil, 0, 10}}).instant(evil, 5).counter(evil, 5, 1).trace());
    for (const char* const target :
         {"/api/outline", "/api/names?sites=0", "/api/range?row=0", "/api/search?text=x", "/api/flame",
          "/api/sandwich?site=0", "/api/instant?row=0"}) {
        const std::string body = api.body(target);
        EXPECT_TRUE(is_strict_json(body)) << target;
        EXPECT_LT(body.size(), 200'000u) << target;
    }
}

TEST(Api, ShowsSourceFilesOnlyFromTheAllowedFolders) {
    namespace fs = std::filesystem;
    const fs::path folder = fs::path(::testing::TempDir()) / "marey_view_sources";
    fs::remove_all(folder);
    fs::create_directories(folder / "inside");
    std::ofstream(folder / "inside" / "good.py") << "print(1)\n";
    std::ofstream(folder / "secret.py") << "secret\n";
    fs::create_symlink(folder / "secret.py", folder / "inside" / "link.py");
    fs::create_directory(folder / "inside" / "folder.py");
    std::ofstream(folder / "inside" / "large.py") << std::string(4 << 20, 'x');
    TraceFixture fixture;
    const std::string inside = folder / "inside";
    const std::vector<std::string> files{inside + "/good.py",  "good.py",           inside + "/../secret.py",
                                         inside + "/link.py",  "/etc/passwd",       inside + "/folder.py",
                                         inside + "/large.py", inside + "/gone.py", inside + "x/good.py"};
    for (std::size_t i = 0; i < files.size(); ++i)
        fixture.site("f" + std::to_string(i), Scope::User, files[i], 3);
    const ApiFixture api(fixture.trace(), {inside});
    EXPECT_NE(api.body("/api/source?site=0").find(R"("line":3,"first":1,"text":"print(1)\n")"),
              std::string::npos);
    EXPECT_EQ(api.status("/api/source?site=1"), 200) << "relative to the folder";
    for (std::size_t i = 2; i < files.size(); ++i)
        EXPECT_EQ(api.status("/api/source?site=" + std::to_string(i)), 404) << files[i];
    fs::remove_all(folder);
}

TEST(Api, ReloadsATrace) {
    int loads = 0;
    const Api api({{"growing",
                    [&loads] {
                        ++loads;
                        return TraceFixture().thread("main", {{"r" + std::to_string(loads), 0, 10}}).trace();
                    }}},
                  {}, "secret");
    EXPECT_NE(api.handle_own("/api/names?sites=0").body.find("r1"), std::string::npos);
    EXPECT_EQ(api.handle_own("/api/reload").body, R"({"generation":2})");
    const Response second = api.handle_own("/api/names?sites=0");
    EXPECT_NE(second.body.find("r2"), std::string::npos);
    EXPECT_EQ(second.generation, 2u);
}

TEST(Api, FollowsATraceWhoseProgramRuns) {
    const auto trace = [](const std::string& name, bool is_running) {
        TraceFixture fixture;
        if (is_running) fixture.problem("running", "the program is still running");
        return fixture.thread("main", {{name, 0, 10}}).trace();
    };
    bool is_running = true;
    const Api api(
        {{.name = "live",
          .load = [&] { return trace("all", is_running); },
          .load_last =
              [&](std::int64_t last_ns) { return trace("last " + std::to_string(last_ns), is_running); }},
         {.name = "other", .load = [&] { return trace("all", true); }}},
        {}, "secret");
    const std::string outline = api.handle_own("/api/outline").body;
    EXPECT_NE(outline.find(R"("live":true)"), std::string::npos);
    EXPECT_NE(outline.find(R"("live":false)"), std::string::npos) << "it has no newest part";
    EXPECT_EQ(api.handle_own("/api/reload?last=500").body, R"({"generation":2})");
    EXPECT_NE(api.handle_own("/api/names?sites=0").body.find("last 500"), std::string::npos);
    is_running = false;
    api.handle_own("/api/reload");
    EXPECT_NE(api.handle_own("/api/names?sites=0").body.find("all"), std::string::npos);
    EXPECT_EQ(api.handle_own("/api/outline").body.find(R"("live":true)"), std::string::npos);
}

std::vector<ViewSource> two_traces() {
    const Trace slower =
        TraceFixture()
            .thread("main", {{"main", 1000, 1500, {{"parse", 1100, 900}, {"check", 2100, 100}}}})
            .trace();
    return {{"old.marey", [] { return small_trace(); }}, {"new.marey", [slower] { return slower; }}};
}

TEST(Api, ComparesTwoTraces) {
    const ApiFixture api(two_traces());
    const Comparison expected = [] {
        RunComparison runs({});
        const std::vector<ViewSource> sources = two_traces();
        runs.add(sources[0].load(), CompareSide::Old, "old.marey");
        runs.add(sources[1].load(), CompareSide::New, "new.marey");
        return runs.compare();
    }();
    EXPECT_EQ(api.body("/api/diff"), result_json(diff_result(expected)));
    const std::string flame = api.body("/api/difference?pixels=1000");
    EXPECT_TRUE(is_strict_json(flame)) << flame;
    // main: 300 ns of its own before, 500 now; with "read", "parse" and "job", which is gone.
    EXPECT_NE(flame.find("[1000,1500,300,500,1,1,\"same\",-1]"), flame.npos) << flame;
    EXPECT_NE(flame.find("[800,0,800,0,2,0,\"gone\",-1]"), flame.npos) << flame;
    EXPECT_NE(api.body("/api/difference?value=calls").find("\"unit\":\"calls\""), std::string::npos);
    EXPECT_EQ(api.status("/api/diff?value=total"), 400);
    EXPECT_EQ(ApiFixture(small_trace()).status("/api/diff"), 404);
}

TEST(Api, ComparesTheSelectedPartOfAlignedTraces) {
    const ApiFixture api(two_traces());
    // 100 ns of the page's time: where the old trace has "read", and the new one, which begins 400 ns later
    // on the page, has "main" only, before "parse".
    const std::string part = api.body("/api/diff?begin=450&end=500&shift0=300&shift1=400");
    EXPECT_NE(part.find("\"old_window_ns\": 50"), part.npos) << part;
    EXPECT_NE(part.find("read"), part.npos);
    EXPECT_EQ(part.find("parse"), part.npos);
}

TEST(Api, ShowsTheRunsOfAComparisonThatItIsGiven) {
    RunComparison runs({});
    for (int i = 0; i < 3; ++i) {
        runs.add(small_trace(), CompareSide::Old, "old");
        runs.add(small_trace(), CompareSide::New, "new");
    }
    const ApiFixture api(two_traces(), &runs);
    EXPECT_NE(api.body("/api/diff").find("\"old_runs\": 3"), std::string::npos);
    EXPECT_NE(api.body("/api/diff?value=calls").find("\"metric\": \"calls\""), std::string::npos);
}

TEST(Api, ListsFindingsWithTimesOfThePage) {
    constexpr std::int64_t kMs = 1'000'000;
    const Trace trace =
        TraceFixture().thread("main", {{"main", kMs, 100 * kMs, {{"slow", 11 * kMs, 60 * kMs}}}}).trace();
    const std::string findings = ApiFixture(trace).body("/api/explain");
    EXPECT_NE(findings.find("function.self"), findings.npos) << findings;
    EXPECT_NE(findings.find("\"start_ns\": " + std::to_string(10 * kMs)), findings.npos) << findings;
}

}  // namespace
}  // namespace marey::serve
