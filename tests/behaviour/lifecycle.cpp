// lifecycle.cpp: programs that end, fork, execute and load libraries in every way; each capture is complete.
#include <dlfcn.h>
#include <signal.h>

#include <set>

#include "support/child_run.h"

namespace {

using namespace child_run;
using Counts = std::map<std::string, int>;

const std::string kPlugin = MAREY_TEST_BIN_DIR "/lifecycle_plugin.so";

class Lifecycle : public ChildRun {
  protected:
    void before_exec() override {
        if (preload_.empty()) return;
        setenv("LD_PRELOAD", preload_.c_str(), 1);
        setenv("MAREY_TEST_RANGE_AT_END", "1", 1);
    }
    int run_fork(const std::vector<std::string>& arguments, const std::string& marey) {
        return run(arguments, marey, MAREY_TEST_BIN_DIR "/fork_program");
    }
    std::string preload_;  ///< a library for the next program
};

// ---- ends
// ----------------------------------------------------------------------------------------------------

TEST_F(Lifecycle, ANormalEndFinishesTheCaptureAfterStaticDestructors) {
    ASSERT_EQ(run({"work", "100"}, environment()), 0) << error();
    const marey::Trace trace = marey::Trace::load(capture());
    EXPECT_TRUE(trace.window().finished);
    EXPECT_EQ(counts(trace), (Counts{{"work", 100}, {"static destructor", 1}}));
    EXPECT_EQ(problem_codes(trace), "");
    EXPECT_EQ(error(), "");
    EXPECT_TRUE(leftover_files().empty());
    EXPECT_EQ(trace.processes()[0].pid, pid_);
    EXPECT_TRUE(contains(std::string(trace.string(trace.processes()[0].command_line)), "work 100"));
}

TEST_F(Lifecycle, UnderscoreExitLosesNothing) {
    ASSERT_EQ(run({"end", "_exit"}, environment()), 3) << error();
    const marey::Trace trace = marey::Trace::load(capture());
    EXPECT_FALSE(trace.window().finished);
    EXPECT_EQ(counts(trace), (Counts{{"work", 100}, {"open at the end", 1}}));
    EXPECT_TRUE(has_flag(trace, "open at the end", marey::kUnfinished));
}

TEST_F(Lifecycle, QuickExitFinishesTheCaptureAfterItsHandlers) {
    ASSERT_EQ(run({"end", "quick_exit"}, environment()), 4) << error();
    const marey::Trace trace = marey::Trace::load(capture());
    EXPECT_TRUE(trace.window().finished);
    EXPECT_EQ(counts(trace), (Counts{{"work", 100}, {"open at the end", 1}, {"in quick_exit", 1}}));
}

TEST_F(Lifecycle, AbortAndSegmentationFaultLoseNothing) {
    for (const auto& [how, code] : {std::pair("abort", 100 + SIGABRT), std::pair("crash", 100 + SIGSEGV)}) {
        SCOPED_TRACE(how);
        std::filesystem::remove(capture());
        ASSERT_EQ(run({"end", how}, environment()), code) << error();
        const marey::Trace trace = marey::Trace::load(capture());
        EXPECT_FALSE(trace.window().finished);
        EXPECT_EQ(counts(trace), (Counts{{"work", 100}, {"open at the end", 1}}));
        EXPECT_TRUE(has_flag(trace, "open at the end", marey::kUnfinished));
    }
}

// K6
TEST_F(Lifecycle, AThreadMayEndTheProcessWhileOthersRecord) {
    for (int i = 0; i < 10; ++i) {
        std::filesystem::remove(capture());
        ASSERT_EQ(run({"exit_from_thread"}, environment() + ",max=16MB,policy=ring"), 7) << error();
        const marey::Trace trace = marey::Trace::load(capture());
        EXPECT_TRUE(trace.window().finished);
        EXPECT_EQ(counts(trace)["static destructor"], 1);
        EXPECT_GT(counts(trace)["busy"], 0);
    }
}

// As libfaketime is.
TEST_F(Lifecycle, ALibraryThatReplacesFunctionsMayBeTornDownFirst) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizer's library must come first";
#endif
    preload_ = MAREY_TEST_BIN_DIR "/interposer_plugin.so";
    ASSERT_EQ(run({"work", "100"}, environment()), 0) << error();
    const marey::Trace trace = marey::Trace::load(capture());
    EXPECT_TRUE(trace.window().finished);
    EXPECT_EQ(counts(trace), (Counts{{"work", 100}, {"static destructor", 1}, {"library destructor", 1}}));
    EXPECT_EQ(problem_codes(trace), "");
    EXPECT_EQ(error(), "");
    EXPECT_TRUE(leftover_files().empty());
}

TEST_F(Lifecycle, AProgramWhoseMainThreadHasEndedEndsWithItsLastThread) {
#if defined(__SANITIZE_ADDRESS__) && __GNUC__ >= 13
    GTEST_SKIP() << "AddressSanitizer of GCC 13 fails when the main thread calls pthread_exit";
#elif defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer's own thread keeps every such program alive";
#endif
    for (const char* const how : {"alone", "with a thread"}) {
        SCOPED_TRACE(how);
        std::filesystem::remove(capture());
        ASSERT_EQ(run({"main_thread_ends", how}, environment()), 0) << error();
        EXPECT_EQ(out(), "no handler ran on another thread\natexit\n");
        const marey::Trace trace = marey::Trace::load(capture());
        EXPECT_TRUE(trace.window().finished);
        EXPECT_EQ(counts(trace)["work"], 10);
        EXPECT_EQ(counts(trace)["in atexit"], 1);
        EXPECT_EQ(counts(trace)["static destructor"], 1);
    }
    ASSERT_EQ(run({"main_thread_ends", "after its session"}, ""), 0) << error();
}

TEST_F(Lifecycle, ASignalEndsAProgramWhoseMainThreadHasEnded) {
#if defined(__SANITIZE_ADDRESS__) && __GNUC__ >= 13
    GTEST_SKIP() << "AddressSanitizer of GCC 13 fails when the main thread calls pthread_exit";
#endif
    for (const auto& [how, number] : {std::pair("SIGTERM", SIGTERM), std::pair("SIGINT", SIGINT)}) {
        SCOPED_TRACE(how);
        std::filesystem::remove(capture());
        ASSERT_EQ(run({"main_thread_ends", how}, ""), 100 + number) << error();
        EXPECT_FALSE(std::filesystem::exists(capture()));
        ASSERT_EQ(run({"main_thread_ends", how}, environment()), 100 + number) << error();
        const marey::Trace trace = marey::Trace::load(capture());
        EXPECT_FALSE(trace.window().finished);
        EXPECT_EQ(counts(trace), (Counts{{"work", 10}}));
    }
}

// ---- forks
// ---------------------------------------------------------------------------------------------------

TEST_F(Lifecycle, AForkedChildHasItsOwnCapture) {
    ASSERT_EQ(run_fork({"fork"}, environment()), 0) << error();
    const marey::Trace parent = marey::Trace::load(capture());
    EXPECT_EQ(counts(parent), (Counts{{"work", 20}, {"open at fork", 1}}));
    EXPECT_FALSE(has_flag(parent, "open at fork", marey::kBeganBefore | marey::kUnfinished));
    EXPECT_EQ(problem_codes(parent), "");

    ASSERT_EQ(other_captures().size(), 1u);
    const marey::Trace child = marey::Trace::load(other_captures()[0]);
    EXPECT_EQ(counts(child), (Counts{{"child work", 20}, {"open at fork", 1}}));
    EXPECT_TRUE(has_flag(child, "open at fork", marey::kBeganBefore));
    EXPECT_FALSE(has_flag(child, "open at fork", marey::kUnfinished));
    EXPECT_EQ(child.range_name(child.ranges().parent[find(child, "child work")]), "open at fork");
    EXPECT_TRUE(child.window().finished);
    EXPECT_EQ(problem_codes(child), "");
    const std::int64_t pid = child.processes()[0].pid;
    EXPECT_NE(pid, parent.processes()[0].pid);
    EXPECT_EQ(other_captures()[0], folder_ + "/app." + std::to_string(pid) + ".marey");
    EXPECT_EQ(child.threads()[0].os_tid, pid);
    EXPECT_TRUE(leftover_files().empty());
    EXPECT_EQ(error(), "");
}

TEST_F(Lifecycle, AMovableRangeOpenAtForkEndsInBoth) {
    ASSERT_EQ(run_fork({"fork_movable"}, environment()), 0) << error();
    EXPECT_EQ(counts(marey::Trace::load(capture())), (Counts{{"movable at fork", 1}}));
    ASSERT_EQ(other_captures().size(), 1u);
    const marey::Trace child = marey::Trace::load(other_captures()[0]);
    EXPECT_EQ(counts(child), (Counts{{"child work", 1}, {"movable at fork", 1}}));
    EXPECT_TRUE(has_flag(child, "movable at fork", marey::kBeganBefore));
}

TEST_F(Lifecycle, AForkLeavesOnlyTheThreadsOfTheProgramAndRecordingContinues) {
    ASSERT_EQ(run_fork({"fork_alone"}, environment()), 0) << error();
    EXPECT_EQ(counts(marey::Trace::load(capture())), (Counts{{"work", 100010}}));
}

// The thread's state lies in the parent's file, which the child has too.
TEST_F(Lifecycle, EachChildContinuesFromItsForkHoweverFarItsParentIsByThen) {
    // The last: deeper than one block can hold, with more values than it can hold.
    ASSERT_EQ(run_fork({"fork_while_recording", "5", "2", "3", "0", "1500", "900"}, environment()), 0)
        << error();
    const marey::Trace parent = marey::Trace::load(capture());
    EXPECT_EQ(counts(parent), (Counts{{"level", 1508}, {"parent's level", 4 + 4 + 601}}));
    std::set<int> depths;
    for (const std::string& capture : other_captures()) {
        const marey::Trace child = marey::Trace::load(capture);
        int level = counts(child)["level"];
        SCOPED_TRACE(level);
        depths.insert(level);
        EXPECT_EQ(counts(child), (Counts{{"level", level}, {"child work", 1}}));
        EXPECT_EQ(problem_codes(child), "");
        for (marey::Row row = child.ranges().parent[find(child, "child work")]; row != marey::kNoRow;
             row = child.ranges().parent[row]) {
            const auto values = child.range_arguments(row);
            ASSERT_EQ(values.size(), 1u) << level;
            ASSERT_EQ(child.string(values[0].string), std::to_string(--level) + std::string(100, '.'));
        }
        EXPECT_EQ(level, 0);
        const std::string_view command_line = child.string(child.processes()[0].command_line);
        EXPECT_EQ(command_line,
                  "T" + std::string(parent.string(parent.processes()[0].command_line).substr(1)));
    }
    EXPECT_EQ(depths, (std::set<int>{3, 5, 1500}));
}

TEST_F(Lifecycle, AChildContinuesFromTheForkAlsoWhenItsParentsThreadIsGoneByThen) {
    ASSERT_EQ(run_fork({"fork_and_leave"}, environment()), 0) << error();
    EXPECT_EQ(counts(marey::Trace::load(capture())), (Counts{{"open at fork", 1}}));
    ASSERT_EQ(other_captures().size(), 1u);
    const marey::Trace child = marey::Trace::load(other_captures()[0]);
    EXPECT_EQ(counts(child), (Counts{{"open at fork", 1}, {"child work", 1}}));
    EXPECT_TRUE(has_flag(child, "open at fork", marey::kBeganBefore));
}

TEST_F(Lifecycle, AChildThatRecordsNothingLeavesNoFile) {
    ASSERT_EQ(run_fork({"fork_silent"}, environment()), 0) << error();
    EXPECT_TRUE(other_captures().empty());
    EXPECT_EQ(counts(marey::Trace::load(capture())), (Counts{{"work", 10}, {"open at fork", 1}}));
}

TEST_F(Lifecycle, AChildThatExecutesAnotherProgramAtOnceLeavesNoFile) {
    ASSERT_EQ(run_fork({"fork_exec"}, environment()), 0) << error();
    EXPECT_TRUE(other_captures().empty());
    EXPECT_TRUE(leftover_files().empty());
}

TEST_F(Lifecycle, AnyThreadMayFork) {
    ASSERT_EQ(run_fork({"fork_from_thread"}, environment()), 0) << error();
    ASSERT_EQ(other_captures().size(), 1u);
    const marey::Trace child = marey::Trace::load(other_captures()[0]);
    EXPECT_EQ(counts(child), (Counts{{"child work", 10}, {"open on forker", 1}}));
    EXPECT_TRUE(has_flag(child, "open on forker", marey::kBeganBefore));
    const marey::Row track = child.track_of(find(child, "open on forker"));
    EXPECT_EQ(child.string(child.threads()[child.tracks()[track].thread].name), "forker");
    EXPECT_EQ(counts(marey::Trace::load(capture())), (Counts{{"open on main", 1}, {"open on forker", 1}}));
}

TEST_F(Lifecycle, AProgramThatNeverRecordedMayFork) {
    ASSERT_EQ(run_fork({"fork_without_records"}, environment()), 0) << error();
    ASSERT_EQ(other_captures().size(), 1u);
    EXPECT_EQ(counts(marey::Trace::load(other_captures()[0])), (Counts{{"child work", 5}}));
    EXPECT_EQ(marey::Trace::load(capture()).ranges().size(), 0u);
}

TEST_F(Lifecycle, AChildMayBeginOnManyThreadsAtOnce) {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP()
        << "a lock of AddressSanitizer's allocator may be held by a thread that the child does not have";
#endif
    for (int i = 0; i < 5; ++i) {
        ASSERT_EQ(run_fork({"fork_threads"}, environment()), 0) << error();
        ASSERT_EQ(other_captures().size(), 1u);
        ASSERT_EQ(counts(marey::Trace::load(other_captures()[0])), (Counts{{"child work", 8}}));
        std::filesystem::remove(other_captures()[0]);
        std::filesystem::remove(capture());
    }
}

TEST_F(Lifecycle, GrandchildrenRecordToo) {
    ASSERT_EQ(run_fork({"fork_grandchildren"}, environment()), 0) << error();
    std::map<int, int> sizes;  // captures by their number of ranges
    for (const std::string& path : other_captures()) ++sizes[counts(marey::Trace::load(path))["child work"]];
    EXPECT_EQ(sizes, (std::map<int, int>{{1, 1}, {7, 1}, {9, 1}}));
    EXPECT_EQ(counts(marey::Trace::load(capture())), (Counts{{"work", 1}}));
}

TEST_F(Lifecycle, FiftyForksWhileThreeThreadsRecordAtFullSpeed) {
    ASSERT_EQ(run_fork({"fork_storm", "50"}, environment() + ",max=16MB,policy=ring"), 0) << error();
    EXPECT_EQ(other_captures().size(), 50u);
    int finished = 0;
    for (const std::string& path : other_captures()) {
        const marey::Trace child = marey::Trace::load(path);
        EXPECT_EQ(counts(child), (Counts{{"child work", 1000}, {"open at fork", 1}})) << path;
        EXPECT_TRUE(has_flag(child, "open at fork", marey::kBeganBefore));
        finished += child.window().finished ? 1 : 0;
    }
    EXPECT_EQ(finished, 25);
    Counts parent = counts(marey::Trace::load(capture()));
    EXPECT_EQ(parent.count("child work"), 0u);
    EXPECT_GT(parent["busy inner"], 0);
    EXPECT_EQ(parent["open at fork"], 1);
    EXPECT_TRUE(leftover_files().empty());
}

TEST_F(Lifecycle, AChildMayRecordForLong) {
    ASSERT_EQ(run_fork({"fork_repeatedly"}, environment()), 0) << error();
    ASSERT_EQ(other_captures().size(), 1u);
    EXPECT_EQ(counts(marey::Trace::load(other_captures()[0])), (Counts{{"child work", 1'000'000}}));
    EXPECT_EQ(counts(marey::Trace::load(capture())), (Counts{{"work", 300'000}}));
}

TEST_F(Lifecycle, LogsThatAreNotThreadsContinueInTheChild) {
    ASSERT_EQ(run_fork({"fork_log"}, environment()), 0) << error();
    ASSERT_EQ(other_captures().size(), 1u);
    EXPECT_EQ(counts(marey::Trace::load(other_captures()[0])), (Counts{{"child work", 1}, {"streamed", 3}}));
    EXPECT_EQ(counts(marey::Trace::load(capture())), (Counts{{"streamed", 20}}));
}

TEST_F(Lifecycle, ASessionOfTheProgramItselfIsOverInTheChildAndContinuesInTheParent) {
    EXPECT_EQ(run_fork({"session_across_fork"}, ""), 0) << error();
    EXPECT_EQ(run_fork({"session_across_fork", capture()}, ""), 0) << error();
    EXPECT_EQ(counts(marey::Trace::load(capture())), (Counts{{"work", 20}, {"open at fork", 1}}));
    EXPECT_TRUE(other_captures().empty());
}

// ---- other programs
// ------------------------------------------------------------------------------------------

TEST_F(Lifecycle, AnExecutedProgramTakesAnotherName) {
    ASSERT_EQ(run({"exec"}, environment()), 0) << error();
    const marey::Trace before = marey::Trace::load(capture());
    EXPECT_FALSE(before.window().finished);
    EXPECT_EQ(counts(before), (Counts{{"work", 10}, {"open at exec", 1}}));
    const std::string own = folder_ + "/app." + std::to_string(pid_) + ".marey";
    ASSERT_EQ(other_captures(), std::vector<std::string>{own});
    EXPECT_EQ(counts(marey::Trace::load(own)), (Counts{{"work", 20}, {"static destructor", 1}}));
}

TEST_F(Lifecycle, SpawnedProgramsHaveTheirOwnCaptures) {
    ASSERT_EQ(run({"spawn"}, environment()), 0) << error();
    EXPECT_EQ(counts(marey::Trace::load(capture())), (Counts{{"work", 10}}));
    ASSERT_EQ(other_captures().size(), 2u);
    std::map<int, int> sizes;
    for (const std::string& path : other_captures()) ++sizes[counts(marey::Trace::load(path))["work"]];
    EXPECT_EQ(sizes, (std::map<int, int>{{20, 1}, {30, 1}}));
}

// ---- libraries
// -----------------------------------------------------------------------------------------------

TEST_F(Lifecycle, SitesOfAnUnloadedLibraryStayReadable) {
    ASSERT_EQ(run({"plugin", kPlugin}, environment()), 0) << error();
    const marey::Trace trace = marey::Trace::load(capture());
    EXPECT_EQ(counts(trace), (Counts{{"plug-in range", 20}, {"plug-in inner", 20}, {"work", 1}}));
    // Loaded twice, and still the same place.
    int sites = 0;
    for (const marey::SiteInfo& site : trace.sites()) {
        if (trace.string(site.name) != "plug-in range") continue;
        ++sites;
        EXPECT_TRUE(contains(std::string(trace.string(site.file)), "lifecycle_plugin.cpp"));
        EXPECT_GT(site.line, 0u);
    }
    EXPECT_EQ(sites, 1);
    EXPECT_EQ(trace.range_arguments(find(trace, "plug-in range")).size(), 1u);
}

TEST_F(Lifecycle, APlugInMayLoadMarey) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the host would have to be built with the same sanitizer";
#endif
    // Every program here is linked with Marey, so the host is built now.
    std::ofstream(folder_ + "/host.c") << R"(
        #include <dlfcn.h>
        int main(int count, char** values) {
            for (int i = 0; i < 2; ++i) {
                void* handle = dlopen(values[1], RTLD_NOW | RTLD_LOCAL);
                if (count != 2 || handle == 0) return 2;
                void (*work)(int) = (void (*)(int))dlsym(handle, "plugin_work");
                if (work == 0) return 3;
                work(10);
                dlclose(handle);
            }
            return 0;
        })";
    const std::string host = folder_ + "/host";
    if (std::system(("cc -o " + host + " " + host + ".c -ldl 2>/dev/null").c_str()) != 0) {
        GTEST_SKIP() << "there is no C compiler here";
    }
    ASSERT_EQ(run({kPlugin}, environment(), host), 0) << error();
    const marey::Trace trace = marey::Trace::load(capture());
    EXPECT_TRUE(trace.window().finished);
    EXPECT_EQ(counts(trace), (Counts{{"plug-in range", 20}, {"plug-in inner", 20}}));
}

// The folder of this test's libmarey.so.
std::string library_path() {
    Dl_info info{};
    dladdr(reinterpret_cast<void*>(&marey::scope_name), &info);
    return std::filesystem::canonical(info.dli_fname).string();
}

TEST_F(Lifecycle, ASecondCopyOfTheLibraryIsReportedAndDoesNotRecord) {
    setenv("ASAN_OPTIONS", "detect_odr_violation=0", 1);  // this test does that deliberately
    const std::string copy = folder_ + "/libmarey-copy.so";
    std::filesystem::copy_file(library_path(), copy);
    ASSERT_EQ(run({"second_copy", copy}, environment()), 0) << error();
    EXPECT_EQ(error(),
              "marey: a second copy of Marey was loaded into this process; only the first one records\n");
    EXPECT_EQ(counts(marey::Trace::load(capture())), (Counts{{"work", 20}}));
    EXPECT_TRUE(other_captures().empty());
}

TEST_F(Lifecycle, ASiteOfAnotherLayoutStaysOffAndTheTraceStatesWhy) {
    ASSERT_EQ(run({"wrong_layout"}, environment()), 0) << error();
    const marey::Trace trace = marey::Trace::load(capture());
    EXPECT_EQ(counts(trace), (Counts{{"work", 1}}));
    ASSERT_TRUE(has_problem(trace, "layout_mismatch")) << problem_codes(trace);
    EXPECT_TRUE(contains(error(), "marey: a library was built with a different version")) << error();
    EXPECT_TRUE(contains(error(), "layout 999999"));
    EXPECT_EQ(lines(error()), 1);
}

TEST(Layout, EverySessionReportsTheSitesThatStayOff) {
    static constinit marey::detail::Site foreign{
        "foreign", __FILE__, __LINE__, marey::Scope::User, marey::detail::SiteName::Plain, 999'999, 0};
    for (int i = 0; i < 2; ++i) {
        SCOPED_TRACE(i);
        marey::Session session(marey::SessionOptions{});
        { marey::detail::ScopedRange range(foreign, marey::Scope::User); }
        const marey::Trace trace = session.stop();
        EXPECT_EQ(trace.ranges().size(), 0u);
        EXPECT_TRUE(has_problem(trace, "layout_mismatch"));
    }
}

}  // namespace
