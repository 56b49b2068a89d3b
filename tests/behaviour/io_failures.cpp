// io_failures.cpp: no space, no permission, an existing name, a removed file: the program continues, and one
// line reports the problem.
#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <barrier>
#include <functional>
#include <thread>

#include "support/child_run.h"

namespace {

using namespace child_run;
using Counts = std::map<std::string, int>;

constexpr int kManyRanges = 500'000;  // 8 MB of log

std::uint64_t dropped(const marey::Trace& trace) {
    std::uint64_t records = 0;
    for (const marey::ThreadInfo& thread : trace.threads()) records += thread.dropped;
    return records;
}

marey::SessionOptions into(const std::string& path) {
    marey::SessionOptions options;
    options.output = path;
    return options;
}

/// Marey's output on standard error while `body` runs.
std::string stderr_of(const std::function<void()>& body) {
    testing::internal::CaptureStderr();
    body();
    return testing::internal::GetCapturedStderr();
}

std::string error_of(const std::function<void()>& body) {
    try {
        body();
    } catch (const marey::Error& error) {
        return error.what();
    }
    return "";
}

class Trouble : public ChildRun {
  protected:
    /// The program runs and ends as if nothing were wrong, and one line reports the problem.
    void expect_undisturbed(const std::string& marey, const std::string& line) {
        SCOPED_TRACE(marey);
        EXPECT_EQ(run({"work", "10", "5"}, marey), 5);
        EXPECT_EQ(out(), "done\n");
        EXPECT_EQ(error().substr(0, line.size()), line);
        EXPECT_EQ(lines(error()), 1) << error();
        EXPECT_TRUE(leftover_files().empty());
    }
};

// ---- starting
// ------------------------------------------------------------------------------------------------

TEST_F(Trouble, InvalidOptionsInTheEnvironmentAreReportedAndTheProgramRuns) {
    for (const std::string text :
         {"max=64MB", "garbage", "out=", "=", "out=x.marey,max=lots", "out=x.marey,max=-1",
          "out=x.marey,max=0", "out=x.marey,policy=often", "out=x.marey,scopes=users",
          "out=x.marey,values=maybe", "out=x.marey,colour=red"}) {
        expect_undisturbed(text, "marey: not recording: MAREY=" + text + ": ");
    }
    EXPECT_TRUE(other_captures().empty());
}

TEST_F(Trouble, AnEmptyVariableIsIgnored) {
    setenv("MAREY", "", 1);
    EXPECT_EQ(run({"work", "10", "5"}, ""), 5);
    EXPECT_EQ(error(), "");
}

TEST_F(Trouble, AFolderThatCannotBeWrittenIsReportedAndTheProgramRuns) {
    std::ofstream(folder_ + "/file") << "no folder";
    for (const std::string& path : {folder_ + "/file/app.marey", folder_ + "/missing/app.marey", folder_,
                                    folder_ + "/", std::string("/proc/app.marey")}) {
        expect_undisturbed("out=" + path,
                           "marey: not recording: MAREY=out=" + path + ": " + path + ": cannot create");
    }
    EXPECT_TRUE(other_captures().empty());
}

TEST_F(Trouble, ASessionThatCannotHaveItsFileThrows) {
    const std::string missing = folder_ + "/missing/app.marey";
    marey::Session session;
    EXPECT_EQ(error_of([&] { session.start(into(missing)); }),
              missing + ": cannot create the capture: No such file or directory");
    EXPECT_FALSE(session.is_running());
    EXPECT_FALSE(marey::is_recording());
    session.start(into(capture()));  // nothing remains of the failure
    { MAREY_RANGE("recorded"); }
    EXPECT_EQ(session.stop().ranges().size(), 1u);
}

TEST_F(Trouble, ASecondSessionThatCannotHaveItsFileThrowsAndLeavesTheFirstAlone) {
    marey::Session first(into(capture()));
    { MAREY_RANGE("before"); }
    marey::Session second;
    EXPECT_TRUE(
        contains(error_of([&] { second.start(into(folder_ + "/missing/b.marey")); }), "cannot create"));
    { MAREY_RANGE("after"); }
    first.stop();
    EXPECT_EQ(counts(marey::Trace::load(capture())), (Counts{{"before", 1}, {"after", 1}}));
}

TEST_F(Trouble, AnExistingNameGivesTheNextOne) {
    std::ofstream(capture()) << "precious";
    const std::string stem = folder_ + "/app." + std::to_string(getpid());
    for (const std::string& expected : {stem + ".marey", stem + ".2.marey", stem + ".3.marey"}) {
        marey::Session session(into(capture()));
        { MAREY_RANGE("recorded"); }
        EXPECT_EQ(session.output_path(), expected);
        session.stop();
        EXPECT_EQ(session.output_path(), expected);
        EXPECT_EQ(marey::Trace::load(expected).ranges().size(), 1u);
    }
    EXPECT_EQ(text_of(capture()), "precious");
}

// ---- a full disk
// ---------------------------------------------------------------------------------------------

/// A folder on a separate disk, of `bytes`.
class SmallDisk : public Trouble {
  protected:
    bool mount_disk(const char* size) {
        disk_ = folder_ + "/disk";
        std::filesystem::create_directory(disk_);
        const std::string options = std::string("size=") + size;
        mounted_ = mount("marey-test", disk_.c_str(), "tmpfs", 0, options.c_str()) == 0;
        return mounted_;
    }
    void TearDown() override {
        if (mounted_) umount2(disk_.c_str(), MNT_DETACH);
        Trouble::TearDown();
    }
    // The program writes more than the disk can hold; returns the resulting trace.
    marey::Trace fill_disk(const std::string& policy) {
        const std::string path = disk_ + "/app.marey";
        EXPECT_EQ(run({"work", std::to_string(kManyRanges), "5"}, "out=" + path + ",policy=" + policy), 5);
        EXPECT_EQ(out(), "done\n");
        EXPECT_TRUE(contains(error(), "marey: " + path + ": No space left on device; ")) << error();
        EXPECT_LE(lines(error()), 2) << error();
        marey::Trace trace = marey::Trace::load(path);
        EXPECT_TRUE(trace.window().finished);
        EXPECT_TRUE(trace.window().size_limit_reached);
        EXPECT_TRUE(has_problem(trace, "no_space")) << problem_codes(trace);
        EXPECT_FALSE(has_problem(trace, "size_limit_reached"));  // its size limit is not the reason
        EXPECT_GT(counts(trace)["work"], 10'000);
        EXPECT_LT(counts(trace)["work"], kManyRanges);
        return trace;
    }
    std::string disk_;
    bool mounted_ = false;
};

#define NEED_DISK(size) \
    if (!mount_disk(size)) GTEST_SKIP() << "cannot mount a small disk here (tmpfs): " << strerror(errno)

TEST_F(SmallDisk, FullWithStopKeepsTheBeginning) {
    NEED_DISK("3m");
    const marey::Trace trace = fill_disk("stop");
    EXPECT_TRUE(contains(error(), "recording stops"));
    EXPECT_EQ(counts(trace)["static destructor"], 0);
    EXPECT_EQ(dropped(trace), 0u);
}

TEST_F(SmallDisk, FullWithDropCountsTheLostRecords) {
    NEED_DISK("3m");
    const marey::Trace trace = fill_disk("drop");
    EXPECT_TRUE(contains(error(), "new records are dropped"));
    EXPECT_EQ(trace.ranges().size() + dropped(trace), kManyRanges + 1u);
}

TEST_F(SmallDisk, FullWithRingKeepsTheEnd) {
    NEED_DISK("3m");
    const marey::Trace trace = fill_disk("ring");
    EXPECT_TRUE(contains(error(), "the oldest records are overwritten"));
    EXPECT_EQ(counts(trace)["static destructor"], 1);
    EXPECT_EQ(dropped(trace), 0u);
    EXPECT_GT(trace.threads()[0].overwritten_chunks, 0u);
}

TEST_F(SmallDisk, FullFromTheStartIsReportedAndLeavesNothing) {
    NEED_DISK("512k");
    expect_undisturbed("out=" + disk_ + "/app.marey", "marey: not recording: MAREY=out=" + disk_ +
                                                          "/app.marey: " + disk_ +
                                                          "/app.marey: cannot create the capture: No space");
    EXPECT_TRUE(std::filesystem::is_empty(disk_));
}

TEST_F(SmallDisk, FullWhileACaptureIsCutOutKeepsTheWhole) {
    NEED_DISK("8m");
    const std::string path = disk_ + "/first.marey";
    marey::Session first(into(path));
    for (int i = 0; i < 300'000; ++i) {
        MAREY_RANGE("first's");
    }
    marey::Session second(marey::SessionOptions{});
    const std::string line = stderr_of([&] { EXPECT_EQ(first.stop().ranges().size(), 300'000u); });
    EXPECT_TRUE(contains(line, path + ": cannot write the capture: No space left on device")) << line;
    { MAREY_RANGE("second's"); }
    EXPECT_EQ(counts(second.stop()), (Counts{{"second's", 1}}));
    EXPECT_EQ(counts(marey::Trace::load(path)), (Counts{{"first's", 300'000}}));
    EXPECT_FALSE(std::filesystem::exists(path + ".spool"));
}

// ---- a limit on file sizes
// -----------------------------------------------------------------------------------

class FileLimit : public Trouble {
  protected:
    void before_exec() override {
        const rlimit limit{3 << 20, 3 << 20};
        setrlimit(RLIMIT_FSIZE, &limit);
    }
};

TEST_F(FileLimit, ReachedDoesNotEndTheProgram) {
    for (const char* const policy : {"stop", "drop", "ring"}) {
        SCOPED_TRACE(policy);
        std::filesystem::remove(capture());
        const std::string many = std::to_string(kManyRanges);
        EXPECT_EQ(run({"work", many, "5"}, environment() + ",policy=" + policy), 5);
        EXPECT_TRUE(contains(error(), "marey: " + capture() + ": File too large; ")) << error();
        const marey::Trace trace = marey::Trace::load(capture());
        EXPECT_TRUE(has_problem(trace, "no_space")) << problem_codes(trace);
        EXPECT_GT(counts(trace)["work"], 10'000);
        EXPECT_EQ(counts(trace)["static destructor"], std::string(policy) == "ring" ? 1 : 0);
    }
}

TEST_F(Trouble, AFileLimitReachedWhileACaptureIsCutOutKeepsTheWhole) {
    EXPECT_EQ(run({"file_limit", capture(), folder_ + "/second.marey"}, ""), 6) << error();
    EXPECT_TRUE(contains(error(), "marey: " + capture() + ": cannot write the capture: File too large\n"))
        << error();
    EXPECT_EQ(counts(marey::Trace::load(capture())), (Counts{{"work", 100'000}}));
    EXPECT_TRUE(leftover_files().empty());
}

// ---- files that go away
// --------------------------------------------------------------------------------------

TEST_F(Trouble, ACaptureThatIsDeletedWhileRecordingIsWrittenAgain) {
    marey::Session session(into(capture()));
    for (int i = 0; i < 50'000; ++i) {
        MAREY_RANGE("recorded");
    }
    std::filesystem::remove(capture());
    { MAREY_RANGE("after"); }
    const std::string line = stderr_of([&] { session.stop(); });
    EXPECT_EQ(line, "marey: " + capture() + ": removed while it was being recorded; writing it again\n");
    const marey::Trace trace = marey::Trace::load(capture());
    EXPECT_EQ(counts(trace), (Counts{{"recorded", 50'000}, {"after", 1}}));
    EXPECT_TRUE(trace.window().finished);
}

TEST_F(Trouble, ACaptureThatWasReplacedWhileRecordingIsNotOverwritten) {
    marey::Session session(into(capture()));
    { MAREY_RANGE("recorded"); }
    std::filesystem::remove(capture());
    std::ofstream(capture()) << "precious";
    const std::string line = stderr_of([&] { session.stop(); });
    ASSERT_EQ(other_captures().size(), 1u);
    EXPECT_TRUE(contains(line, "the capture is " + other_captures()[0])) << line;
    EXPECT_EQ(marey::Trace::load(other_captures()[0]).ranges().size(), 1u);
    EXPECT_EQ(text_of(capture()), "precious");
}

TEST_F(Trouble, AFolderThatIsRemovedWhileRecordingIsReportedAndTheTraceIsKept) {
    std::filesystem::create_directory(folder_ + "/inner");
    const std::string path = folder_ + "/inner/app.marey";
    marey::Session session(into(path));
    { MAREY_RANGE("recorded"); }
    std::filesystem::remove_all(folder_ + "/inner");
    marey::Trace trace;
    const std::string line = stderr_of([&] { trace = session.stop(); });
    EXPECT_TRUE(contains(line, "marey: " + path + ": cannot create the capture: No such file or directory\n"))
        << line;
    EXPECT_EQ(trace.ranges().size(), 1u);
}

// ---- several sessions, one file each
// -------------------------------------------------------------------------

class TwoFiles : public Trouble {
  protected:
    void TearDown() override {
        EXPECT_TRUE(leftover_files().empty()) << leftover_files()[0];
        Trouble::TearDown();
    }
    std::string second_capture() const { return folder_ + "/second.marey"; }
};

std::vector<std::string> session_names(const std::string& path) {
    std::vector<std::string> names;
    for (const marey::SessionInfo& session : marey::list_sessions(path)) names.push_back(session.name);
    return names;
}

TEST_F(TwoFiles, EachHoldsItsOwnWindowWhenTheSecondStopsFirst) {
    marey::Session first(into(capture()));
    { MAREY_RANGE("one"); }
    marey::Session second(into(second_capture()));
    { MAREY_RANGE("two"); }
    second.stop();
    { MAREY_RANGE("three"); }
    first.stop();
    EXPECT_EQ(counts(marey::Trace::load(capture())), (Counts{{"one", 1}, {"two", 1}, {"three", 1}}));
    EXPECT_EQ(counts(marey::Trace::load(second_capture())), (Counts{{"two", 1}}));
    EXPECT_EQ(second.output_path(), second_capture());
}

TEST_F(TwoFiles, EachHoldsItsOwnWindowWhenTheFirstStopsFirst) {
    marey::SessionOptions options = into(capture());
    options.name = "first";
    marey::Session first(options);
    options = into(second_capture());
    options.name = "second";
    { MAREY_RANGE("one"); }
    std::barrier step(2);
    std::thread other([&] {  // stays in the spool until the very end
        { MAREY_RANGE("on another thread"); }
        step.arrive_and_wait();
        step.arrive_and_wait();
    });
    step.arrive_and_wait();
    {
        MAREY_RANGE("across");
        marey::Session second(options);
        { MAREY_RANGE("two"); }
        first.stop();
        const marey::Trace trace = marey::Trace::load(capture());
        EXPECT_EQ(counts(trace), (Counts{{"one", 1}, {"two", 1}, {"on another thread", 1}, {"across", 1}}));
        EXPECT_TRUE(has_flag(trace, "across", marey::kUnfinished));
        EXPECT_EQ(session_names(capture()), std::vector<std::string>{"first"});
        { MAREY_RANGE("three"); }
        first = std::move(second);
    }
    first.stop();
    const marey::Trace trace = marey::Trace::load(second_capture());
    EXPECT_EQ(counts(trace), (Counts{{"two", 1}, {"three", 1}, {"across", 1}}));
    EXPECT_TRUE(has_flag(trace, "across", marey::kBeganBefore));
    EXPECT_EQ(session_names(second_capture()), std::vector<std::string>{"second"});
    EXPECT_TRUE(leftover_files().empty()) << "the spool is still there: " << leftover_files()[0];
    step.arrive_and_wait();
    other.join();
}

TEST_F(TwoFiles, TheSameNameTwiceGivesTwoFiles) {
    marey::Session first(into(capture()));
    marey::Session second(into(capture()));
    marey::Session third(into(capture()));
    EXPECT_EQ(first.output_path(), capture());
    EXPECT_NE(second.output_path(), first.output_path());
    EXPECT_NE(third.output_path(), second.output_path());
    { MAREY_RANGE("of all"); }
    first.stop();
    { MAREY_RANGE("of two"); }
    second.stop();
    third.stop();
    EXPECT_EQ(counts(marey::Trace::load(first.output_path())), (Counts{{"of all", 1}}));
    EXPECT_EQ(counts(marey::Trace::load(second.output_path())), (Counts{{"of all", 1}, {"of two", 1}}));
    EXPECT_EQ(counts(marey::Trace::load(third.output_path())), (Counts{{"of all", 1}, {"of two", 1}}));
}

TEST_F(TwoFiles, AfterACrashTheFirstHoldsBoth) {
    ASSERT_EQ(run({"two_sessions", capture(), second_capture()}, ""), 100 + SIGSEGV);
    const std::vector<marey::SessionInfo> sessions = marey::list_sessions(capture());
    ASSERT_EQ(sessions.size(), 2u);
    EXPECT_EQ(sessions[1].name, "second");
    EXPECT_FALSE(sessions[1].finished);
    EXPECT_EQ(counts(marey::Trace::load(capture())), (Counts{{"work", 10}, {"child work", 20}}));
    EXPECT_EQ(counts(marey::Trace::load(capture(), sessions[1].id)), (Counts{{"child work", 20}}));
}

TEST_F(TwoFiles, AFileSessionInsideAMemorySessionIsTheFilesFirst) {
    marey::Session memory(marey::SessionOptions{.name = "memory"});
    std::thread([] { MAREY_RANGE("one"); }).join();
    {
        MAREY_RANGE("across");
        marey::Session file(into(capture()));
        { MAREY_RANGE("two"); }
        file.stop();
    }
    { MAREY_RANGE("three"); }
    EXPECT_EQ(counts(memory.stop()), (Counts{{"one", 1}, {"two", 1}, {"three", 1}, {"across", 1}}));
    EXPECT_EQ(counts(marey::Trace::load(capture())), (Counts{{"two", 1}, {"across", 1}}));
}

TEST_F(TwoFiles, AFileSessionThatOutlivesAMemorySessionIsTheFilesFirst) {
    marey::Session memory(marey::SessionOptions{.name = "memory"});
    { MAREY_RANGE("one"); }
    marey::SessionOptions options = into(capture());
    options.name = "file";
    marey::Session file(options);
    { MAREY_RANGE("two"); }
    EXPECT_EQ(counts(memory.stop()), (Counts{{"one", 1}, {"two", 1}}));
    { MAREY_RANGE("three"); }
    file.stop();
    const marey::Trace trace = marey::Trace::load(capture());
    EXPECT_EQ(trace.window().session_name, "file");
    EXPECT_EQ(counts(trace), (Counts{{"two", 1}, {"three", 1}}));
}

// K3
TEST_F(TwoFiles, AMemorySessionThatOutlivesAFileSessionLosesNothing) {
    marey::Session file(into(capture()));
    { MAREY_RANGE("one"); }
    marey::Session memory(marey::SessionOptions{});
    { MAREY_RANGE("two"); }
    file.stop();
    for (int i = 0; i < 50'000; ++i) {
        MAREY_RANGE("three");
    }
    EXPECT_EQ(counts(memory.stop()), (Counts{{"two", 1}, {"three", 50'000}}));
    EXPECT_EQ(counts(marey::Trace::load(capture())), (Counts{{"one", 1}, {"two", 1}}));
}

std::size_t open_descriptors() {
    const std::filesystem::directory_iterator folder("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(folder), end(folder)));
}

TEST_F(TwoFiles, FiftyOneAfterAnotherLeaveNothingButTheirCaptures) {
    std::size_t descriptors = 0;
    for (int i = 0; i < 50; ++i) {
        const std::string path = folder_ + "/" + std::to_string(i) + ".marey";
        marey::Session session(into(path));
        { MAREY_RANGE_DYNAMIC("round " + std::to_string(i)); }
        std::thread([] { MAREY_RANGE("on a thread"); }).join();
        session.stop();
        ASSERT_EQ(counts(marey::Trace::load(path)),
                  (Counts{{"round " + std::to_string(i), 1}, {"on a thread", 1}}));
        if (i == 10) descriptors = open_descriptors();
    }
    EXPECT_EQ(open_descriptors(), descriptors);
}

// Limits from where the program cannot be loaded to where it is recorded.
class SmallMemory : public Trouble {
  protected:
    void before_exec() override {
        const rlimit limit{bytes_, bytes_};
        setrlimit(RLIMIT_AS, &limit);
    }
    rlim_t bytes_ = 0;
};

TEST_F(SmallMemory, AProgramThatRunsWithoutMareyRunsWithItToo) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizers reserve more address space than any limit";
#endif
    int without_recording = 0;
    for (bytes_ = 8 << 20; !std::filesystem::exists(capture()) && bytes_ < (64 << 20); bytes_ += 64 << 10) {
        if (run({"work", "10"}, "") != 0) continue;
        ASSERT_EQ(run({"work", "10"}, environment()), 0) << bytes_ << ": " << error();
        ASSERT_EQ(out(), "done\n");
        if (contains(error(), "marey: not recording: ")) ++without_recording;
    }
    EXPECT_GT(without_recording, 0);
    EXPECT_TRUE(std::filesystem::exists(capture()));
}

// ---- size limits
// ------------------------------------------------------------------------------------------------

class SizeLimit : public Trouble {
  protected:
    marey::Trace reach(marey::Policy policy) {
        marey::SessionOptions options = into(capture());
        options.max_bytes = 1 << 20;
        options.policy = policy;
        marey::Session session(options);
        { MAREY_RANGE("first"); }
        for (int i = 0; i < 200'000; ++i) {
            MAREY_RANGE("more");
        }
        { MAREY_RANGE("last"); }
        const marey::Trace direct = session.stop();
        marey::Trace loaded = marey::Trace::load(capture());
        EXPECT_EQ(counts(loaded), counts(direct));
        EXPECT_EQ(dropped(loaded), dropped(direct));
        EXPECT_TRUE(has_problem(loaded, "size_limit_reached")) << problem_codes(loaded);
        EXPECT_TRUE(loaded.window().finished);
        EXPECT_LT(std::filesystem::file_size(capture()), std::size_t{3} << 20);
        return loaded;
    }
};

TEST_F(SizeLimit, WithStopTheFileHoldsTheBeginning) {
    Counts found = counts(reach(marey::Policy::Stop));
    EXPECT_EQ(found["first"], 1);
    EXPECT_EQ(found["last"], 0);
    EXPECT_GT(found["more"], 50'000);
}

TEST_F(SizeLimit, WithDropTheFileCountsTheLostRecords) {
    const marey::Trace trace = reach(marey::Policy::Drop);
    EXPECT_EQ(counts(trace)["first"], 1);
    EXPECT_EQ(trace.ranges().size() + dropped(trace), 200'002u);
}

TEST_F(SizeLimit, WithRingTheFileHoldsTheEnd) {
    Counts found = counts(reach(marey::Policy::Ring));
    EXPECT_EQ(found["first"], 0);
    EXPECT_EQ(found["last"], 1);
    EXPECT_GT(found["more"], 50'000);
}

// The session with `ring` in a file, examined as after a kill: without stopping it.
class RingFile : public SizeLimit {
  protected:
    void SetUp() override {
        SizeLimit::SetUp();
        marey::SessionOptions options = into(capture());
        options.max_bytes = 1 << 20;
        options.policy = marey::Policy::Ring;
        session_ = std::make_unique<marey::Session>(options);
    }
    void TearDown() override {
        session_.reset();
        SizeLimit::TearDown();
    }

    std::unique_ptr<marey::Session> session_;
};

// Records consecutive numbers from `first` on, so that a hole is visible.
void count_up(int first, int count) {
    for (int i = first; i < first + count; ++i) {
        MAREY_RANGE_DYNAMIC("number " + std::to_string(i % 1000));
    }
}

TEST_F(RingFile, HasNoHolesWhereAnotherSessionStillHoldsChunks) {
    // The second session reaches its size limit: it claims nothing more, and keeps its chunks.
    marey::Session other(marey::SessionOptions{.max_bytes = 1 << 18, .policy = marey::Policy::Stop});
    count_up(0, 300'000);
    const marey::Trace trace = marey::Trace::load(capture());
    ASSERT_GT(trace.ranges().size(), 50'000u);
    int last = -1;
    for (marey::Row row = 0; row < trace.ranges().size(); ++row) {
        const int number = std::stoi(std::string(trace.range_name(row).substr(7)));
        ASSERT_TRUE(last < 0 || number == (last + 1) % 1000) << "a hole at " << row;
        last = number;
    }
    EXPECT_EQ(last, 299'999 % 1000);
    // The other one has everything it claimed.
    EXPECT_EQ(other.stop().range_name(0), "number 0");
}

TEST_F(RingFile, KeepsTheLastRecordsOfAThreadThatRests) {
    std::barrier step(2);
    std::thread resting([&] {
        // It has just begun its second chunk (32 KiB, 16 bytes a record) when it goes to sleep.
        for (int i = 0; i < 2100; ++i) {
            MAREY_RANGE("before the rest");
        }
        step.arrive_and_wait();
        step.arrive_and_wait();
    });
    step.arrive_and_wait();
    count_up(0, 300'000);
    EXPECT_EQ(counts(marey::Trace::load(capture()))["before the rest"], 2100);
    EXPECT_EQ(counts(session_->snapshot())["before the rest"], 2100);
    step.arrive_and_wait();
    resting.join();
    count_up(0, 300'000);
    EXPECT_EQ(counts(session_->stop())["before the rest"], 0) << "a dead thread's records make room";
}

}  // namespace
