// trace_cache_test.cpp: what is kept comes back, and nothing else does.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <marey/analyze.h>
#include <marey/load.h>
#include <marey/merge.h>
#include <marey/selection.h>

#include "analyze/trace_fixture.h"
#include "trace/random_trace_fixture.h"
#include "trace/trace_difference_fixture.h"

namespace marey {
namespace {

namespace fs = std::filesystem;

/// A file to trace and an empty cache.
class TraceCacheTest : public ::testing::Test {
  protected:
    void SetUp() override {
        folder_ = fs::path(::testing::TempDir()) /
                  (std::string("cache_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
        fs::remove_all(folder_);
        fs::create_directories(folder_);
        ::setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
        std::ofstream(file()) << "a capture";
    }
    void TearDown() override {
        ::unsetenv("XDG_CACHE_HOME");
        fs::remove_all(folder_);
    }

    std::string file(const std::string& name = "app.marey") const { return folder_ / name; }
    /// The files of the cache.
    std::vector<fs::path> kept() const {
        std::vector<fs::path> files;
        if (!fs::exists(folder_ / "marey")) return files;
        for (const auto& entry : fs::directory_iterator(folder_ / "marey")) files.push_back(entry.path());
        return files;
    }
    void keep(const Trace& trace, const std::string& name = "app.marey") const {
        TraceCache cache(file(name), "", kSmall);
        EXPECT_FALSE(cache.find().has_value());
        cache.keep(trace);
        cache.wait();
    }
    std::optional<Trace> find(const std::string& name = "app.marey") const {
        return TraceCache(file(name), "", kSmall).find();
    }

    static constexpr CacheLimits kSmall{.least_ranges = 0, .most_bytes = 1 << 20};
    fs::path folder_;
};

Trace small_trace() {
    return TraceFixture()
        .thread("main", {{"a", 0, 100, {{"b", 10, 20}, {"b", 40, 50}}}})
        .thread("worker", {{"c", 5, 50}})
        .trace();
}

TEST_F(TraceCacheTest, GivesBackEveryTable) {
    for (unsigned seed = 0; seed < 60; ++seed) {
        const Trace trace = testing::RandomTrace(seed, {.is_arbitrary = true}).make();
        if (!trace.window().finished) continue;
        fs::remove_all(folder_ / "marey");
        keep(trace);
        const std::optional<Trace> found = find();
        ASSERT_TRUE(found.has_value()) << seed;
        // A copy that owns its ranges can be compared column by column.
        const auto owned = std::make_shared<TraceData>(found->data());
        owned->own_ranges();
        EXPECT_EQ(testing::find_difference(trace.data(), *owned), "") << seed;
    }
}

TEST_F(TraceCacheTest, AMappedTraceIsAnalysedLikeTheOriginal) {
    const Trace trace = small_trace();
    keep(trace);
    const std::optional<Trace> found = find();
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->range_name(1), "b");
    EXPECT_EQ(found->clipped_duration_ns(2), 50);
    EXPECT_EQ(key_averages(*found).rows.size(), 3u);
    const Selection part{20, 60, {}};
    EXPECT_EQ(testing::find_difference(select_ranges(trace, part).data(), select_ranges(*found, part).data()),
              "");
    EXPECT_EQ(Trace::changed(*found, {}).ranges().size(), 4u);
}

TEST_F(TraceCacheTest, AMappedTraceIsSavedAndJoinedLikeTheOriginal) {
    const Trace trace = small_trace();
    keep(trace);
    const std::optional<Trace> found = find();
    ASSERT_TRUE(found.has_value());
    found->save(file("saved.marey"));
    EXPECT_EQ(testing::find_difference(trace.data(), Trace::load(file("saved.marey")).data()), "");
    EXPECT_EQ(merge_traces({trace, *found}).ranges().size(), 8u);
}

TEST_F(TraceCacheTest, IsForTheUserOnly) {
    keep(small_trace());
    ASSERT_EQ(kept().size(), 1u);
    EXPECT_EQ(fs::status(kept()[0]).permissions(), fs::perms::owner_read | fs::perms::owner_write);
    EXPECT_EQ(fs::status(folder_ / "marey").permissions(), fs::perms::owner_all);
}

TEST_F(TraceCacheTest, HasNothingForAFileThatChanged) {
    keep(small_trace());
    ASSERT_TRUE(find().has_value());
    std::ofstream(file(), std::ios::app) << "more";
    EXPECT_FALSE(find().has_value());
    keep(small_trace());
    EXPECT_TRUE(find().has_value());
    EXPECT_EQ(kept().size(), 1u);
    fs::last_write_time(file(), fs::last_write_time(file()) + std::chrono::nanoseconds(1000));
    EXPECT_FALSE(find().has_value());
    EXPECT_FALSE(TraceCache(file(), "chrome", kSmall).find().has_value());
    fs::remove(file());
    EXPECT_FALSE(find().has_value());
}

TEST_F(TraceCacheTest, IgnoresADamagedFile) {
    keep(small_trace());
    const fs::path cached = kept().at(0);
    std::ifstream stream(cached, std::ios::binary);
    const std::string good((std::istreambuf_iterator<char>(stream)), {});
    const auto write = [&](const std::string& bytes) {
        std::ofstream(cached, std::ios::binary | std::ios::trunc) << bytes;
    };
    for (const std::size_t size : {std::size_t{0}, std::size_t{10}, std::size_t{4096}, good.size() - 1}) {
        write(good.substr(0, size));
        EXPECT_FALSE(find().has_value()) << size;
    }
    for (const std::size_t at : {std::size_t{0}, std::size_t{20}, std::size_t{4096}, good.size() - 20}) {
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ 0x40);
        write(bad);
        EXPECT_FALSE(find().has_value()) << at;
    }
    write(good);
    EXPECT_TRUE(find().has_value());
    write(good + "x");
    EXPECT_FALSE(find().has_value());
    keep(small_trace());
    EXPECT_TRUE(find().has_value());
}

TEST_F(TraceCacheTest, RemovesTheFilesThatWereNotUsedForLongest) {
    const CacheLimits limits{.least_ranges = 0, .most_bytes = 3 * 36 * 1024};  // a file has about 33 KiB
    for (const char* const name : {"one", "two", "three", "four"}) {
        std::ofstream(file(name)) << name;
        for (const fs::path& before : kept())  // each file is older than the next
            fs::last_write_time(before, fs::last_write_time(before) - std::chrono::hours(1));
        TraceCache cache(file(name), "", limits);
        EXPECT_FALSE(cache.find().has_value());
        cache.keep(small_trace());
        cache.wait();
        if (std::string(name) == "three") {
            EXPECT_EQ(kept().size(), 3u);
            EXPECT_TRUE(find("one").has_value());  // now the newest
        }
    }
    EXPECT_EQ(kept().size(), 3u);
    EXPECT_TRUE(find("one").has_value());
    EXPECT_FALSE(find("two").has_value());
    EXPECT_TRUE(find("three").has_value());
    EXPECT_TRUE(find("four").has_value());
}

TEST_F(TraceCacheTest, KeepsNeitherSmallNorUnfinishedTracesNorThoseOfPipes) {
    TraceCache usual(file());
    EXPECT_FALSE(usual.find().has_value());
    usual.keep(small_trace());
    usual.wait();
    EXPECT_TRUE(kept().empty());
    TraceFixture growing;
    growing.thread("main", {{"a", 0, 10}});
    growing.data().window.finished = false;
    keep(growing.trace());
    EXPECT_TRUE(kept().empty());
    TraceCache pipe("/dev/null", "", kSmall);
    EXPECT_FALSE(pipe.find().has_value());
    pipe.keep(small_trace());
    pipe.wait();
    EXPECT_TRUE(kept().empty());
}

TEST_F(TraceCacheTest, WorksWithoutAPlaceToWriteTo) {
    ::setenv("XDG_CACHE_HOME", "/dev/null", 1);
    keep(small_trace());
    EXPECT_FALSE(find().has_value());
}

}  // namespace
}  // namespace marey
