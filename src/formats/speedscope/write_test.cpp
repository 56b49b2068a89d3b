// write_test.cpp: Speedscope JSON is strict, ordered and nested for every trace.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <marey/error.h>
#include <marey/export.h>

#include "analyze/trace_fixture.h"
#include "base/golden_fixture.h"
#include "json/strict_json_fixture.h"
#include "trace/random_trace_fixture.h"

namespace marey {
namespace {

namespace fs = std::filesystem;
using Value = StrictJson::Value;

class SpeedscopeTest : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string name = (fs::temp_directory_path() / "marey_speedscope_XXXXXX").string();
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    void TearDown() override { fs::remove_all(folder_); }

    std::string written(const Trace& trace, const std::string& name) {
        const std::string path = (folder_ / name).string();
        export_trace(trace, path);
        std::ifstream file(path, std::ios::binary);
        std::ostringstream text;
        text << file.rdbuf();
        return text.str();
    }
    Value exported(const Trace& trace) {
        const std::string text = written(trace, "t.speedscope.json");
        Value value;
        EXPECT_EQ(StrictJson::parse(text, value), "") << text.substr(0, 2000);
        return value;
    }

    fs::path folder_;
};

/// Fails unless times never decrease, every end matches the innermost open range, and all events lie within
/// the profile. Returns the number of ranges.
std::size_t check_profile(const Value& document, const Value& profile) {
    EXPECT_EQ(profile["type"].text, "evented");
    EXPECT_EQ(profile["unit"].text, "nanoseconds");
    const std::size_t frames = document["shared"]["frames"].items.size();
    std::int64_t last = std::stoll(profile["startValue"].text);
    std::vector<std::string> open;
    std::size_t count = 0;
    for (const Value& event : profile["events"].items) {
        const std::int64_t at = std::stoll(event["at"].text);
        EXPECT_GE(at, last);
        last = at;
        EXPECT_LT(std::stoull(event["frame"].text), frames);
        if (event["type"].text == "O") {
            open.push_back(event["frame"].text);
            ++count;
            continue;
        }
        EXPECT_EQ(event["type"].text, "C");
        if (open.empty()) {
            ADD_FAILURE() << "an end without a start";
            return count;
        }
        EXPECT_EQ(open.back(), event["frame"].text);
        open.pop_back();
    }
    EXPECT_TRUE(open.empty());
    EXPECT_LE(last, std::stoll(profile["endValue"].text));
    return count;
}

TEST_F(SpeedscopeTest, HasOneProfilePerTrackWithRanges) {
    TraceFixture fixture;
    fixture.window(1000, 2000);
    fixture.site("load", Scope::User, "app.cpp", 12);
    fixture.thread("main", {{"load", 1000, 500, {{"read", 1100, 200}, {"parse \"x\"\n", 1300, 200}}},
                            {"load", 1900, 300}});
    fixture.thread("idle", {});
    fixture.thread("worker", {{"read", 900, 200}});
    fixture.async("worker (async)", {{"request", 1000, 1000, {}, kAsync}});
    std::string text = written(fixture.trace(), "t.speedscope.json");
    const std::size_t version = text.find("marey@") + 6;
    text.erase(version, text.find('"', version) - version);
    expect_golden(text, "export/small.speedscope.json");
}

TEST_F(SpeedscopeTest, IsStrictOrderedAndNestedForEveryTrace) {
    for (unsigned seed = 0; seed < 30; ++seed) {
        const Trace trace = testing::random_training_trace(seed);
        const Value document = exported(trace);
        std::size_t profiles = 0, count = 0;
        for (const TrackInfo& track : trace.tracks()) profiles += track.range_count > 0;
        ASSERT_EQ(document["profiles"].items.size(), profiles);
        for (const Value& profile : document["profiles"].items) count += check_profile(document, profile);
        EXPECT_EQ(count, trace.ranges().size());
    }
}

TEST_F(SpeedscopeTest, AcceptsAnyBytesInNames) {
    const std::string name("\x00\xff\"\\\n\xe2\x82", 7);
    const Value document = exported(TraceFixture().thread(name, {{name, 0, 10, {{"\x1f", 1, 2}}}}).trace());
    EXPECT_EQ(document["shared"]["frames"].items.size(), 2u);
    EXPECT_EQ(check_profile(document, document["profiles"].items.at(0)), 2u);
}

TEST_F(SpeedscopeTest, ATraceWithoutRangesHasNoProfiles) {
    EXPECT_TRUE(exported(Trace())["profiles"].items.empty());
}

TEST_F(SpeedscopeTest, RangesWithTheSameLocationAreOneFrame) {
    TraceFixture fixture;
    fixture.thread("t", {{"a", 0, 1}, {"b", 2, 1}});
    fixture.data().sites.push_back(fixture.data().sites[0]);
    fixture.data().sites.back().scope = Scope::Function;
    fixture.data().range_site[1] = 2;
    const Value document = exported(fixture.trace());
    EXPECT_EQ(document["shared"]["frames"].items.size(), 1u);
}

TEST_F(SpeedscopeTest, FormatsAreChosenByTheLongestSuffix) {
    EXPECT_EQ(export_format("", "a.speedscope.json").name, "speedscope");
    EXPECT_EQ(export_format("", "a.speedscope.json.gz").name, "speedscope");
    EXPECT_EQ(export_format("", "speedscope.json").name, "chrome");
    EXPECT_EQ(export_format("", "a.json.gz").name, "chrome");
    EXPECT_EQ(export_format("", "a.stacks.txt").name, "folded");
    EXPECT_EQ(export_format("", "a.folded").name, "folded");
    EXPECT_THROW(export_format("", "a.txt"), Error);
}

TEST_F(SpeedscopeTest, StacksAreWrittenFolded) {
    TraceFixture fixture;
    fixture.site("train (a.py:1)", Scope::PythonFunction);
    fixture.site("op", Scope::Function);
    const Trace trace = fixture.thread("t", {{"train (a.py:1)", 0, 9000, {{"op", 0, 2500}}}}).trace();
    EXPECT_EQ(written(trace, "t.folded"), "train_(a.py:1) 6500\ntrain_(a.py:1);op 2500\n");
    const fs::path path = folder_ / "torch.txt";
    const StackOptions python{.frames = StackFrames::Python, .microseconds = true};
    write_stacks(trace, path.string(), python);
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    EXPECT_EQ(line, "train_(a.py:1) 2");
    EXPECT_THROW(write_stacks(trace, path.string(), {.metric = "time"}), Error);
}

}  // namespace
}  // namespace marey
