// nvtx_listener.cpp: programs that use NVTX, recorded by libmarey as their NVTX listener.
#include <marey/nvtx.h>

#include <set>

#include <marey/all.h>
#include <marey/emit.h>

#include "support/child_run.h"

namespace {

using child_run::counts;
using Counts = std::map<std::string, int>;

/// A range or an instant as "category:name key=value ...".
std::string described(const marey::Trace& trace, const marey::SiteInfo& site,
                      std::span<const marey::Argument> values) {
    std::string text = std::string(trace.string(site.category)) + ":" + std::string(trace.string(site.name));
    for (const marey::Argument& value : values) {
        text += " " + std::string(trace.string(value.key)) + "=";
        text += value.kind == marey::ValueKind::String ? std::string(trace.string(value.string))
                                                       : std::to_string(value.integer);
    }
    return text;
}

class NvtxPrograms : public child_run::ChildRun {
  protected:
    void SetUp() override {
        ChildRun::SetUp();
        if (!marey::nvtx::is_available()) GTEST_SKIP() << "built without NVTX's header";
    }
    void before_exec() override { setenv("NVTX_INJECTION64_PATH", listener_.c_str(), 1); }
    marey::Trace record(const std::string& mode) {
        EXPECT_EQ(run({mode}, environment() + ",nvtx=on", MAREY_TEST_BIN_DIR "/nvtx_program"), 0) << error();
        EXPECT_EQ(error(), "");
        return marey::Trace::load(capture());
    }

    std::string listener_ = marey::nvtx::library_path();
};

TEST_F(NvtxPrograms, AreRecordedWithoutUsingMarey) {
    const marey::Trace trace = record("every_function");
    EXPECT_EQ(out(), "0 1 2 2 1 0 -1\n0 0 0 0\n");
    std::multiset<std::string> ranges;
    std::multiset<std::string> async;
    for (marey::Row row = 0; row < trace.ranges().size(); ++row) {
        const marey::SiteInfo& site = trace.sites()[trace.ranges().site[row]];
        const bool is_async = trace.tracks()[trace.track_of(row)].kind == marey::TrackKind::Async;
        (is_async ? async : ranges).insert(described(trace, site, trace.range_arguments(row)));
    }
    EXPECT_EQ(ranges, (std::multiset<std::string>{"nvtx:push a", "nvtx:push w \u00e4",
                                                  "nvtx:push ex category=first color=#ff336699 payload=-3",
                                                  "library:registered a category=of the library",
                                                  "library w:registered w category=of w"}));
    EXPECT_EQ(async,
              (std::multiset<std::string>{"nvtx:start a", "nvtx:start w",
                                          "nvtx:push ex category=zw\u00f6lf color=#ff336699 payload=-3",
                                          "library:registered a category=of the library"}));
    std::multiset<std::string> marks;
    for (marey::Row row = 0; row < trace.instants().size(); ++row) {
        const marey::SiteInfo& site = trace.sites()[trace.instants().site[row]];
        marks.insert(described(trace, site, trace.instant_arguments(row)));
    }
    EXPECT_EQ(marks,
              (std::multiset<std::string>{"nvtx:mark a", "nvtx:mark w",
                                          "nvtx:push ex category=zw\u00f6lf color=#ff336699 payload=-3",
                                          "library:registered a category=of the library"}));
    EXPECT_EQ(trace.string(trace.threads()[0].name), "the main one");
    EXPECT_EQ(child_run::problem_codes(trace), "");
}

TEST_F(NvtxPrograms, HaveEveryRangeOfEveryThread) {
    const marey::Trace trace = record("threads");
    Counts expected{{"inner", 8 * 5000}};
    for (int i = 0; i < 8; ++i) expected["thread " + std::to_string(i)] = 5000;
    EXPECT_EQ(counts(trace), expected);
    for (marey::Row row = 0; row < trace.ranges().size(); ++row) {
        if (trace.range_name(row) == "inner") {
            ASSERT_EQ(trace.ranges().parent[row], row - 1);
        }
    }
}

TEST_F(NvtxPrograms, ContinueInForkedChildren) {
    const marey::Trace trace = record("forks");
    EXPECT_EQ(counts(trace), (Counts{{"of both", 1}, {"of the parent", 1}}));
    ASSERT_EQ(other_captures().size(), 1u);
    const marey::Trace child = marey::Trace::load(other_captures()[0]);
    EXPECT_EQ(counts(child), (Counts{{"of both", 1}, {"of the child", 1}}));
    EXPECT_TRUE(child_run::has_flag(child, "of both", marey::kBeganBefore));
}

TEST_F(NvtxPrograms, WorkUnchangedWhereNothingRecords) {
    EXPECT_EQ(run({"every_function"}, "", MAREY_TEST_BIN_DIR "/nvtx_program"), 0);
    EXPECT_EQ(out(), "0 1 2 2 1 0 -1\n0 0 0 0\n");
    EXPECT_EQ(error(), "");
    EXPECT_FALSE(std::filesystem::exists(capture()));
}

// The emitter reaches the listener of the same library.
TEST_F(NvtxPrograms, ThatEmitTheirRecordedRangesHaveThemOnce) {
    EXPECT_EQ(run({"nvtx", "by_hand"}, environment(), MAREY_TEST_BIN_DIR "/emitters_program"), 0) << error();
    const marey::Trace by_hand = marey::Trace::load(capture());
    EXPECT_EQ(counts(by_hand), (Counts{{"ours", 1}, {"by hand", 1}, {"inner", 1}, {"started", 1}}));
    EXPECT_EQ(by_hand.instants().size(), 1u);
    EXPECT_EQ(out(), "0 0\n");
    std::filesystem::remove(capture());
    EXPECT_EQ(run({"nvtx", "forward_and_backward"}, environment(), MAREY_TEST_BIN_DIR "/emitters_program"), 0)
        << error();
    EXPECT_EQ(counts(marey::Trace::load(capture())), (Counts{{"mul", 1}, {"MulBackward", 1}, {"inner", 1}}));
}

// The command and the program may each have their own copy.
TEST_F(NvtxPrograms, ThatHaveTheirOwnMareyAreRecordedThroughAnyCopy) {
    const std::string copy = folder_ + "/libmarey.so.0";
    std::filesystem::copy_file(marey::nvtx::library_path(), copy);
    listener_ = copy;
    setenv("ASAN_OPTIONS", "detect_odr_violation=0", 1);  // this test does that deliberately
    EXPECT_EQ(run({"nvtx", "by_hand"}, environment() + ",nvtx=on", MAREY_TEST_BIN_DIR "/emitters_program"),
              0);
    const marey::Trace trace = marey::Trace::load(capture());
    EXPECT_EQ(counts(trace)["by hand"], 1) << error();
    EXPECT_FALSE(child_run::has_problem(trace, "nvtx_not_listening"));
}

TEST_F(NvtxPrograms, ReportWhenAnotherToolListens) {
    listener_ = MAREY_TEST_BIN_DIR "/nvtx_collector.so";
    EXPECT_EQ(run({"nvtx", "by_hand"}, environment() + ",nvtx=on", MAREY_TEST_BIN_DIR "/emitters_program"),
              0);
    EXPECT_TRUE(child_run::contains(error(), "is set to another tool's library"));
    EXPECT_TRUE(child_run::has_problem(marey::Trace::load(capture()), "nvtx_not_listening"));
}

}  // namespace
