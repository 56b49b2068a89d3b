// write_test.cpp: Chrome JSON is strict, exact and nested on every row.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <sstream>

#include <marey/error.h>
#include <marey/export.h>

#include "analyze/gpu/gpu_fixture.h"
#include "analyze/trace_fixture.h"
#include "formats/decimal.h"
#include "json/strict_json_fixture.h"

namespace marey {
namespace {

namespace fs = std::filesystem;
using Value = StrictJson::Value;

/// Parses a text like "12.345" to nanoseconds.
std::int64_t nanoseconds(const Value& micros) {
    const std::size_t point = micros.text.find('.');
    EXPECT_EQ(micros.text.size() - point, 4u) << micros.text;
    return std::stoll(micros.text.substr(0, point)) * 1000 + std::stoll(micros.text.substr(point + 1));
}

class ChromeJsonTest : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string name = (fs::temp_directory_path() / "marey_chrome_XXXXXX").string();
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    void TearDown() override { fs::remove_all(folder_); }

    Value exported(const Trace& trace) {
        const std::string path = (folder_ / "t.json").string();
        export_trace(trace, path);
        std::ifstream file(path, std::ios::binary);
        std::ostringstream text;
        text << file.rdbuf();
        Value value;
        EXPECT_EQ(StrictJson::parse(text.str(), value), "") << text.str().substr(0, 2000);
        check_nesting(value);
        return value;
    }

    /// All events of that kind except the span of the whole trace.
    static std::vector<Value> events(const Value& document, const std::string& kind) {
        std::vector<Value> result;
        for (const Value& event : document["traceEvents"].items) {
            if (event["ph"].text == kind && event["cat"].text != "Trace") result.push_back(event);
        }
        return result;
    }

    /// Every row nests: a range that starts inside another ends inside it.
    static void check_nesting(const Value& document) {
        std::map<std::pair<std::string, std::string>, std::vector<std::int64_t>> open;  // ends of open ranges
        for (const Value& event : events(document, "X")) {
            const std::int64_t start = nanoseconds(event["ts"]), end = start + nanoseconds(event["dur"]);
            ASSERT_GE(start, 0);
            std::vector<std::int64_t>& row = open[{event["pid"].text, event["tid"].text}];
            while (!row.empty() && row.back() <= start && row.back() < end) row.pop_back();
            if (!row.empty()) {
                ASSERT_LE(end, row.back()) << event["name"].text;
            }
            row.push_back(end);
        }
    }

    static std::string metadata(const Value& document, const std::string& what, const std::string& tid) {
        for (const Value& event : events(document, "M")) {
            if (event["name"].text == what && event["tid"].text == tid) {
                const Value& args = event["args"];
                return args.members.empty() ? "" : args.members[0].second.text;
            }
        }
        return "(none)";
    }

    fs::path folder_;
};

TEST_F(ChromeJsonTest, AnEmptyTraceIsValid) {
    EXPECT_TRUE(events(exported(Trace()), "X").empty());
}

TEST_F(ChromeJsonTest, TimesAreRelativeToTheWindowAndExact) {
    const Value document = exported(
        TraceFixture().window(5'000'000, 9'000'000'000'000).thread("main", {{"a", 5'001'234, 7}}).trace());
    const Value event = events(document, "X").at(0);
    EXPECT_EQ(event["ts"].text, "1.234");
    EXPECT_EQ(event["dur"].text, "0.007");
    EXPECT_EQ(document["baseTimeNanoseconds"].text, "1005000000");
    EXPECT_EQ(event["pid"].text, "100");
    EXPECT_EQ(event["tid"].text, "1001");
    EXPECT_EQ(event["cat"].text, "user_annotation");
}

TEST_F(ChromeJsonTest, RangesAreClippedToTheWindowAndFlagged) {
    const Value document =
        exported(TraceFixture()
                     .window(1000, 2000)
                     .thread("main",
                             {
                                 {"a", 0, 5000, {{"b", 500, 4000}}, kBeganBefore | kUnfinished},
                             })
                     .trace());
    for (const Value& event : events(document, "X")) {
        EXPECT_EQ(event["ts"].text, "0.000");
        EXPECT_EQ(event["dur"].text, "1.000");
    }
    EXPECT_EQ(events(document, "X")[0]["args"]["finished"].kind, StrictJson::Kind::Bool);
    EXPECT_FALSE(events(document, "X")[0]["args"]["finished"].truth);
    EXPECT_TRUE(events(document, "X")[0]["args"]["began_before"].truth);
}

TEST_F(ChromeJsonTest, ThreadsAndProcessesHaveNames) {
    const Value document =
        exported(TraceFixture().thread("main", {{"a", 0, 1}}).thread("", {{"a", 0, 1}}).trace());
    EXPECT_EQ(metadata(document, "thread_name", "1001"), "main");
    EXPECT_EQ(metadata(document, "thread_name", "1002"), "thread 2");
    EXPECT_EQ(metadata(document, "process_name", "0"), "app");
}

TEST_F(ChromeJsonTest, OnlyTracesWithoutPyTorchOperatorsAreWrittenForViewers) {
    const std::string path = (folder_ / "t.json").string();
    for (const std::string name : {"work", "aten::mm"}) {
        write_chrome_json(TraceFixture().thread("main", {{name, 1000, 500}}).trace(), path,
                          ChromeStyle::Viewer);
        std::ostringstream text;
        text << std::ifstream(path, std::ios::binary).rdbuf();
        const bool is_torch = name == "aten::mm";
        EXPECT_EQ(text.str().find("Spans") != std::string::npos, is_torch) << text.str();
        EXPECT_EQ(text.str().find("Record Window End") != std::string::npos, is_torch) << text.str();
        EXPECT_EQ(text.str().find("marey_window") != std::string::npos, !is_torch) << text.str();
        Value document;
        EXPECT_EQ(StrictJson::parse(text.str(), document), "") << text.str();
    }
}

TEST_F(ChromeJsonTest, AReusedSystemThreadIdGetsASeparateRow) {
    const Value document =
        exported(TraceFixture().thread("one", {{"a", 0, 5}}, 77).thread("two", {{"b", 3, 5}}, 77).trace());
    EXPECT_EQ(events(document, "X").at(0)["tid"].text, "77");
    EXPECT_EQ(events(document, "X").at(1)["tid"].text, "2");
}

// K14
TEST_F(ChromeJsonTest, AsyncTracksAreSeparateNamedRows) {
    const Value document =
        exported(TraceFixture().thread("main", {{"a", 0, 10}}).async("requests", {{"r", 5, 10}}).trace());
    const std::string tid = events(document, "X").at(1)["tid"].text;
    EXPECT_NE(tid, "1001");
    EXPECT_EQ(metadata(document, "thread_name", tid), "requests");
}

TEST_F(ChromeJsonTest, ValuesPlacesInstantsAndCountersAreWritten) {
    TraceFixture fixture;
    fixture.site("a", Scope::Function, "src/\"a\".cpp", 12);
    fixture.thread("main", {{"a", 0, 10}});
    Argument number, text, list, real, twice;
    number.kind = ValueKind::Int;
    number.integer = -5;
    text.kind = ValueKind::String;
    text.string = fixture.string("line\n");
    text.truncated = true;
    real.kind = ValueKind::Double;
    real.real = std::nan("");
    list.kind = ValueKind::List;
    list.list = {0, 2};
    fixture.data().list_items = {number, real};
    twice.kind = ValueKind::Bool;
    twice.boolean = true;
    fixture.value("n", number).value("text", text).value("list", list).value("n", twice);
    fixture.instant("mark", 3).counter("bytes", 4, 2.5).counter("bytes", 5, HUGE_VAL);
    const Value document = exported(fixture.trace());
    const Value event = events(document, "X").at(0);
    EXPECT_EQ(event["cat"].text, "cpu_op");
    EXPECT_EQ(event["args"]["at"].text, "src/\"a\".cpp:12");
    EXPECT_EQ(event["args"]["n"].text, "-5");
    EXPECT_TRUE(event["args"]["n (4)"].truth);
    EXPECT_EQ(event["args"]["text"].text, "line\n...");
    EXPECT_EQ(event["args"]["list"].items.at(1).text, "NaN");
    EXPECT_EQ(events(document, "i").at(0)["name"].text, "mark");
    EXPECT_EQ(events(document, "C").at(0)["args"]["value"].text, "2.5");
    EXPECT_EQ(events(document, "C").at(1)["args"]["value"].text, "Infinity");
}

// C31 K13
TEST_F(ChromeJsonTest, LinksAreFlowsBetweenTheStartsOfTheirRanges) {
    TraceFixture fixture;
    fixture.window(1000, 90'000);
    fixture.thread("main", {{"forward", 2000, 500}})
        .thread("engine", {{"backward", 5000, 700}, {"call", 7000, 1}});
    fixture.data().links = {{0, 1, LinkKind::ForwardBackward}, {2, 0, LinkKind::Remote}};
    const Value document = exported(fixture.trace());
    std::vector<Value> starts = events(document, "s"), finishes = events(document, "f");
    const auto by_id = [](const Value& a, const Value& b) { return a["id"].number() < b["id"].number(); };
    std::sort(starts.begin(), starts.end(), by_id);
    std::sort(finishes.begin(), finishes.end(), by_id);
    ASSERT_EQ(starts.size(), 2u);
    ASSERT_EQ(finishes.size(), 2u);
    EXPECT_EQ(starts[0]["cat"].text, "fwdbwd");
    EXPECT_EQ(starts[0]["name"].text, "fwdbwd");
    EXPECT_EQ(starts[0]["ts"].text, "1.000");
    EXPECT_EQ(starts[0]["tid"].text, "1001");
    EXPECT_EQ(finishes[0]["cat"].text, "fwdbwd");
    EXPECT_EQ(finishes[0]["ts"].text, "4.000");
    EXPECT_EQ(finishes[0]["tid"].text, "1002");
    EXPECT_EQ(finishes[0]["bp"].text, "e");
    EXPECT_EQ(starts[0]["id"].text, finishes[0]["id"].text);
    EXPECT_EQ(starts[1]["cat"].text, "remote");
    EXPECT_EQ(starts[1]["id"].text, finishes[1]["id"].text);
    EXPECT_NE(starts[0]["id"].text, starts[1]["id"].text);
}

TEST_F(ChromeJsonTest, UserRangesAreOnTheQueuesOfTheWorkThatTheyLaunch) {
    testing::GpuFixture gpu;
    gpu.range(0, 100'000, "outer", Scope::User);
    gpu.range(10'000, 50'000, "inner", Scope::User);
    gpu.range(11'000, 9'000, "aten::add");
    gpu.kernel(200'000, 50'000, "a", gpu.call(5'000, 2'000));
    gpu.kernel(260'000, 20'000, "b", gpu.call(12'000, 2'000));
    gpu.device(0, 9).kernel(210'000, 5'000, "c", gpu.call(15'000, 2'000));
    gpu.device(0, 7).kernel(300'000, 30'000, "d", gpu.call(70'000, 2'000));
    gpu.kernel(400'000, 1'000, "e", gpu.call(120'000, 2'000));
    std::map<std::string, std::string> found;
    for (const Value& event : events(exported(gpu.window(0, 500'000).trace()), "X")) {
        if (event["cat"].text == "gpu_user_annotation")
            found[event["name"].text + " on " + event["tid"].text] =
                event["ts"].text + " " + event["dur"].text + " " + event["args"]["External id"].text;
    }
    EXPECT_EQ(found.size(), 3u);
    EXPECT_EQ(found["outer on 7"], "200.000 130.000 1");
    EXPECT_EQ(found["inner on 7"], "260.000 20.000 3");
    EXPECT_EQ(found["inner on 9"], "210.000 5.000 3");
}

TEST_F(ChromeJsonTest, KernelsHaveTheOccupancyThatFollowsFromTheirShape) {
    testing::GpuFixture gpu;
    gpu.properties().shape(gpu.kernel(100, 50, "a", gpu.call(5, 2)), {216, 1, 1}, {128, 1, 1});
    gpu.kernel(200, 50, "without a shape");
    std::map<std::string, Value> found;
    for (const Value& event : events(exported(gpu.window(0, 500).trace()), "X"))
        found[event["name"].text] = event["args"];
    EXPECT_EQ(found["a"]["queued"].text, "0");
    EXPECT_EQ(found["a"]["blocks per SM"].text, "2");
    EXPECT_EQ(found["a"]["warps per SM"].text, "8");
    EXPECT_EQ(found["a"]["est. achieved occupancy %"].text, "13");
    EXPECT_EQ(found["without a shape"]["blocks per SM"].text, "");
}

TEST_F(ChromeJsonTest, AllocationReportsAreInstantsWithPyTorchsKeys) {
    TraceFixture fixture;
    fixture.thread("main", {{"a", 1000, 500}});
    TraceData& data = fixture.data();
    data.memory_time_ns = {1100, 1200};
    data.memory_thread = {0, 0};
    data.memory_address = {~0ull, 7};
    data.memory_bytes = {-64, 1ll << 40};
    data.memory_total_allocated = {0, 5};
    data.memory_total_reserved = {4096, 4096};
    data.memory_device = {{DeviceType::Cpu, -1}, {DeviceType::Cuda, 2}};
    data.memory_out_of_memory = {0, 1};
    const std::vector<Value> instants = events(exported(fixture.trace()), "i");
    ASSERT_EQ(instants.size(), 4u);
    EXPECT_EQ(instants[0]["name"].text, "[memory]");
    EXPECT_EQ(instants[0]["cat"].text, "cpu_instant_event");
    EXPECT_EQ(instants[0]["s"].text, "t");
    EXPECT_EQ(instants[0]["tid"].text, "1001");
    EXPECT_EQ(instants[0]["ts"].text, "0.100");
    EXPECT_EQ(instants[0]["args"]["Bytes"].text, "-64");
    EXPECT_EQ(instants[0]["args"]["Addr"].text, "18446744073709551615");
    EXPECT_EQ(instants[0]["args"]["Total Reserved"].text, "4096");
    EXPECT_EQ(instants[0]["args"]["Total Allocated"].text, "0");
    EXPECT_EQ(instants[0]["args"]["Device Id"].text, "-1");
    EXPECT_EQ(instants[0]["args"]["Device Type"].text, "0");
    EXPECT_EQ(instants[1]["name"].text, "[OutOfMemory]");
    EXPECT_EQ(instants[1]["args"]["Device Type"].text, "1");
    EXPECT_EQ(instants[2]["name"].text, "Iteration Start: Marey");
    EXPECT_EQ(instants[3]["name"].text, "Record Window End");
}

TEST_F(ChromeJsonTest, ValuesAndDetailsBelongToTheirRanges) {
    TraceFixture fixture;
    Argument number;
    number.kind = ValueKind::Int;
    number.integer = 5;
    fixture.thread("main", {{"plain", 0, 1}, {"detail", 2, 1}, {"both", 4, 1}});
    fixture.value("n", number);
    fixture.thread("second", {{"value", 0, 1}}).value("n", number).thread("third", {{"last", 0, 1}});
    fixture.data().range_details = {{1, 8, 0, 0}, {2, -1, 0, 9}, {4, 10, 3, 11}};
    const std::vector<Value> ranges = events(exported(fixture.trace()), "X");
    EXPECT_TRUE(ranges.at(0)["args"].members.empty());
    EXPECT_EQ(ranges.at(1)["args"]["Sequence number"].text, "8");
    EXPECT_EQ(ranges.at(1)["args"].members.size(), 2u);
    EXPECT_EQ(ranges.at(2)["args"]["n"].text, "5");
    EXPECT_EQ(ranges.at(2)["args"]["Record function id"].text, "9");
    EXPECT_EQ(ranges.at(2)["args"].members.size(), 2u);
    EXPECT_EQ(ranges.at(3)["args"]["n"].text, "5");
    EXPECT_EQ(ranges.at(4)["args"]["Fwd thread id"].text, "3");
}

// K12
TEST_F(ChromeJsonTest, AnyBytesInNamesAndAnyNestingGiveStrictNestedJson) {
    std::mt19937 random(11);
    for (int round = 0; round < 40; ++round) {
        auto name = [&] {
            std::string bytes(random() % 100, '\0');
            for (char& c : bytes) c = static_cast<char>(random());
            return bytes;
        };
        std::size_t count = 0;
        std::function<std::vector<RangeSpec>(std::int64_t, std::int64_t, int)> fill =
            [&](std::int64_t start, std::int64_t end, int depth) {
                std::vector<RangeSpec> ranges;
                while (start < end && ranges.size() < 6) {
                    const std::int64_t from = start + static_cast<std::int64_t>(random() % 3);
                    if (from > end) break;
                    const std::int64_t to =
                        from + static_cast<std::int64_t>(random() % static_cast<unsigned>(end - from + 1));
                    ++count;
                    ranges.push_back({name(), from, to - from,
                                      depth > 0 ? fill(from, to, depth - 1) : std::vector<RangeSpec>()});
                    start = to;
                }
                return ranges;
            };
        TraceFixture fixture;
        fixture.window(300, 4000).thread(name(), fill(0, 5000, 4)).thread(name(), fill(0, 3000, 3), 0);
        fixture.async(name(), fill(100, 2000, 2)).problem(name(), name());
        const Value document = exported(fixture.trace());
        EXPECT_EQ(events(document, "X").size(), count);
    }
}

TEST_F(ChromeJsonTest, UnknownFormatsAreErrorsThatListTheKnownOnes) {
    try {
        export_trace(Trace(), (folder_ / "x.foo").string());
        FAIL() << "no error";
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("chrome (.json .json.gz)"), std::string::npos)
            << error.what();
    }
    EXPECT_THROW(export_trace(Trace(), (folder_ / "x.json").string(), "nonsense"), Error);
    EXPECT_TRUE(fs::is_empty(folder_));
}

TEST(Decimal, AgreesWithTheStandardLibrary) {
    std::mt19937_64 random(5);
    std::vector<std::uint64_t> values = {0, 1, 9, 10, 99, 100, 999, 1000, 999'999, 1'000'000, 999'999'999};
    for (std::uint64_t power = 1'000'000'000; power < 10'000'000'000'000'000'000u / 10; power *= 10)
        values.insert(values.end(), {power - 1, power, power + 1});
    values.push_back(~std::uint64_t{0});
    for (int i = 0; i < 20000; ++i) values.push_back(random() >> random() % 64);
    for (const std::uint64_t value : values) {
        char text[32];
        EXPECT_EQ(std::string(text, put_decimal(text, value)), std::to_string(value));
        std::string micros = std::to_string(value);
        if (micros.size() < 4) micros.insert(0, 4 - micros.size(), '0');
        micros.insert(micros.size() - 3, ".");
        EXPECT_EQ(std::string(text, put_micros(text, value)), micros);
    }
}

}  // namespace
}  // namespace marey
