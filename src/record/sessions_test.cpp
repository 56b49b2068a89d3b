// sessions_test.cpp: sessions over one recorder, from inside: sources, and exact times with an injected
// clock.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <marey/all.h>
#include <marey/c.h>

#include "record/clocks/clock.h"
#include "record/recorder.h"
#include "record/recorder_mutex.h"

#if defined(__SANITIZE_THREAD__)
// The child of a fork starts a thread here (the recorder's), which works.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
    return "die_after_fork=0";
}
#endif

namespace marey {
namespace {

// ---- sources ----

/// Logs the calls it receives.
class FakeSource : public Source {
  public:
    const char* name() const noexcept override { return "fake"; }
    void needs_changed(const RecordingNeeds& needs) noexcept override {
        calls.push_back(needs.is_recording() ? "needs" : "nothing");
        last = needs;
    }
    void flush(std::uint64_t timeout_ns, bool) noexcept override {
        calls.push_back("flush");
        timeout = timeout_ns;
        if (records_when_flushed) {
            MAREY_RANGE("flushed");
        }
    }
    void forked() noexcept override { calls.push_back("forked"); }

    std::vector<std::string> take_calls() { return std::exchange(calls, {}); }

    std::vector<std::string> calls;
    RecordingNeeds last;
    std::uint64_t timeout = 0;
    bool records_when_flushed = false;
};

// A source is registered for the life of the process; all tests share one.
FakeSource& source() {
    static const std::shared_ptr<FakeSource> fake = [] {
        auto made = std::make_shared<FakeSource>();
        Recorder::get().add_source(made);
        return made;
    }();
    fake->calls.clear();
    return *fake;
}

using Calls = std::vector<std::string>;

TEST(Sources, AreCalledOnceWhenTheyAreAdded) {
    auto late = std::make_shared<FakeSource>();
    Session session(SessionOptions{.scopes = {Scope::Step}});
    Recorder::get().add_source(late);
    EXPECT_EQ(late->take_calls(), Calls{"needs"});
    EXPECT_EQ(late->last.scopes, ScopeSet{Scope::Step}.bits());
}

TEST(SessionSnapshot, IsACaptureWithTheOpenRangesAndTheReason) {
    char name[] = "/tmp/marey-snapshot-XXXXXX";
    const std::string folder = mkdtemp(name);
    Session session(SessionOptions{.output = folder + "/all.marey"});
    { MAREY_RANGE("before"); }
    MAREY_RANGE("open");
    session.snapshot_to(folder + "/part.marey", "half way");
    { MAREY_RANGE("after"); }
    const Trace part = Trace::load(folder + "/part.marey");
    ASSERT_EQ(part.ranges().size(), 2u);
    EXPECT_EQ(part.range_name(0), "before");
    EXPECT_EQ(part.range_name(1), "open");
    EXPECT_EQ(part.ranges().flags[1], kUnfinished);
    EXPECT_FALSE(part.has_problem("running"));
    EXPECT_EQ(snapshot_reason(part)->text, "half way");
    EXPECT_EQ(session.stop().ranges().size(), 3u);
    EXPECT_THROW(session.snapshot_to(folder + "/late.marey"), Error);
    EXPECT_FALSE(std::filesystem::exists(folder + "/late.marey"));
    std::filesystem::remove_all(folder);
}

TEST(Sources, AreNotifiedOfStartAndStopAndFlushedBefore) {
    FakeSource& fake = source();
    Session session(SessionOptions{});
    EXPECT_EQ(fake.take_calls(), Calls{"needs"});
    session.snapshot();
    EXPECT_EQ(fake.take_calls(), Calls{"flush"});
    EXPECT_GT(fake.timeout, 0u);
    session.stop();
    EXPECT_EQ(fake.take_calls(), (Calls{"flush", "nothing"}));
    EXPECT_FALSE(fake.last.is_recording());
    session.start();
    session.discard();  // nobody reads it
    EXPECT_EQ(fake.take_calls(), (Calls{"needs", "nothing"}));
}

TEST(Sources, ReceiveTheUnionOfNestedSessionsNeeds) {
    FakeSource& fake = source();
    Session outer(SessionOptions{.scopes = {Scope::User}, .record_values = false, .with_stack = true});
    EXPECT_EQ(fake.last.scopes, ScopeSet{Scope::User}.bits());
    EXPECT_EQ(fake.last.option_bits, detail::kOptionStacks);
    Session inner(SessionOptions{.scopes = {Scope::Device}, .record_shapes = true, .profile_memory = true});
    EXPECT_EQ(fake.last.scopes, (ScopeSet{Scope::User, Scope::Device}.bits()));
    EXPECT_EQ(fake.last.option_bits,
              detail::kOptionStacks | detail::kOptionValues | detail::kOptionShapes | detail::kOptionMemory);
    outer.stop();
    EXPECT_EQ(fake.last.scopes, ScopeSet{Scope::Device}.bits());
    EXPECT_EQ(fake.last.option_bits, detail::kOptionValues | detail::kOptionShapes | detail::kOptionMemory);
    EXPECT_EQ(fake.take_calls(), (Calls{"needs", "needs", "flush", "needs"}));
    inner.stop();
    EXPECT_EQ(fake.take_calls(), (Calls{"flush", "nothing"}));
}

TEST(Sources, ReceiveTheCallsThatEachSessionNeeds) {
    FakeSource& fake = source();
    SessionOptions options{.with_stack = true};
    options.calls.exclude = {"json"};
    options.calls.max_depth = 3;
    Session outer(options);
    ASSERT_EQ(fake.last.calls.size(), 1u);
    EXPECT_EQ(fake.last.calls[0], (SessionCalls{outer.id(), options.calls}));
    Session plain(SessionOptions{});
    EXPECT_EQ(fake.last.calls.size(), 1u);
    Session inner(SessionOptions{.with_stack = true});
    ASSERT_EQ(fake.last.calls.size(), 2u);
    EXPECT_EQ(fake.last.calls[1], (SessionCalls{inner.id(), CallOptions{}}));
    outer.stop();
    ASSERT_EQ(fake.last.calls.size(), 1u);
    EXPECT_EQ(fake.last.calls[0].session, inner.id());
    plain.stop();
    inner.stop();
    EXPECT_TRUE(fake.last.calls.empty());
}

TEST(Sources, MayRecordWhileTheyAreFlushed) {
    FakeSource& fake = source();
    fake.records_when_flushed = true;
    Session session(SessionOptions{});
    const Trace trace = session.stop();
    fake.records_when_flushed = false;
    ASSERT_EQ(trace.ranges().size(), 1u);
    EXPECT_EQ(trace.range_name(0), "flushed");
}

TEST(Sources, AreNotifiedInTheChildOfAFork) {
    FakeSource& fake = source();
    Session session(SessionOptions{});
    fake.calls.clear();
    const pid_t child = fork();
    if (child == 0) {
        const bool first = fake.take_calls() == Calls{"forked"};
        Session own(SessionOptions{});
        const bool then = fake.take_calls() == Calls{"needs"};
        _exit(first && then ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(fake.take_calls().empty());
}

TEST(Sources, AreNotifiedWhenASizeLimitEndsASession) {
    FakeSource& fake = source();
    Session session(SessionOptions{.max_bytes = 1 << 20});
    for (int i = 0; i < 100'000; ++i) {
        MAREY_RANGE("more");
    }
    EXPECT_FALSE(is_recording());
    Session other(SessionOptions{.scopes = {Scope::Step}});  // at the next change at the latest
    EXPECT_EQ(fake.last.scopes, ScopeSet{Scope::Step}.bits());
    EXPECT_TRUE(session.is_running());  // it waits to be collected
    EXPECT_GT(session.stop().ranges().size(), 50'000u);
}

// ---- exact times ----

std::atomic<std::uint64_t> session_ticks{0};
std::uint64_t session_now() noexcept {
    return session_ticks.load();
}

/// Time stands still unless the test moves it. Ticks are nanoseconds.
class ExactTimes : public ::testing::Test {
  protected:
    void SetUp() override {
        session_ticks = 1000;
        Clock::inject(session_now);
    }
    void TearDown() override { Clock::inject(nullptr); }
    static void at(std::uint64_t ticks) { session_ticks = ticks; }
};

struct Shown {
    std::int64_t start, duration, self;
    std::uint32_t depth;
    int flags;
    friend bool operator==(const Shown&, const Shown&) = default;
    friend std::ostream& operator<<(std::ostream& out, const Shown& shown) {
        return out << "{" << shown.start << ", " << shown.duration << ", " << shown.self << ", depth "
                   << shown.depth << ", flags " << shown.flags << "}";
    }
};

std::map<std::string, Shown> shown(const Trace& trace) {
    std::map<std::string, Shown> found;
    const RangeColumns ranges = trace.ranges();
    for (Row row = 0; row < ranges.size(); ++row) {
        found[std::string(trace.range_name(row))] = {ranges.start_ns[row], ranges.duration_ns[row],
                                                     ranges.self_ns[row], ranges.depth[row],
                                                     ranges.flags[row]};
    }
    return found;
}

TEST_F(ExactTimes, OfNestedRanges) {
    Session session(SessionOptions{});
    {
        at(1100);
        MAREY_RANGE("outer");
        {
            at(1150);
            MAREY_RANGE("inner", "n", 1);
            at(1170);
        }
        at(1180);
        marey::instant("point");
        marey::counter("level", 3);
        { MAREY_RANGE("nothing at all"); }
        at(1200);
    }
    at(1300);
    const Trace trace = session.stop();
    EXPECT_EQ(shown(trace), (std::map<std::string, Shown>{{"outer", {1100, 100, 80, 0, 0}},
                                                          {"inner", {1150, 20, 20, 1, 0}},
                                                          {"nothing at all", {1180, 0, 0, 1, 0}}}));
    EXPECT_EQ(trace.window().start_ns, 1000);
    EXPECT_EQ(trace.window().end_ns, 1300);
    EXPECT_EQ(trace.instants().time_ns[0], 1180);
    EXPECT_EQ(trace.counters().time_ns[0], 1180);
    EXPECT_EQ(trace.clock().source, "injected");
    EXPECT_EQ(trace.clock().max_error_ns, 0);
}

TEST_F(ExactTimes, OfARangeAcrossTwoSessions) {
    Session first(SessionOptions{});
    Trace before;
    Trace after;
    {
        at(1100);
        MAREY_RANGE("across");
        at(1200);
        before = first.stop();
        at(1300);
        first.start();
        at(1350);
        { MAREY_RANGE("child"); }
        at(1400);
    }
    at(1500);
    after = first.stop();
    EXPECT_EQ(shown(before), (std::map<std::string, Shown>{{"across", {1100, 100, 100, 0, kUnfinished}}}));
    EXPECT_EQ(shown(after), (std::map<std::string, Shown>{{"across", {1100, 300, 100, 0, kBeganBefore}},
                                                          {"child", {1350, 0, 0, 1, 0}}}));
    EXPECT_EQ(after.clipped_duration_ns(0), 100);
}

TEST_F(ExactTimes, OfMovableRangesAndTheWriterTable) {
    Session session(SessionOptions{});
    at(1100);
    Range early("early");
    at(1110);
    Range late("late");
    at(1120);
    early.end();
    at(1130);
    late.end();
    at(2000);
    const auto found = shown(session.stop());
    EXPECT_EQ(found.at("early").start, 1100);
    EXPECT_EQ(found.at("early").duration, 20);
    EXPECT_EQ(found.at("late").start, 1110);
    EXPECT_EQ(found.at("late").duration, 20);
}

TEST_F(ExactTimes, OfCallsAndRangesThatCrossAtRandom) {
    struct Open {
        std::string name;
        std::int64_t start;
        std::unique_ptr<Operation> operation;
    };
    struct Closed {
        std::string name;
        std::int64_t start, end;
    };
    std::int64_t now = 1100;
    for (std::uint32_t seed = 1; seed <= 40; ++seed) {
        std::mt19937 random(seed);
        Session session(SessionOptions{});
        // Two stacks, [0] of ranges and [1] of calls: each ends in order, but regardless of the other.
        std::vector<Open> open[2];
        std::vector<Closed> closed[2];
        for (int i = 0; i < 300; ++i) {
            now += 1 + random() % 20;
            at(static_cast<std::uint64_t>(now));
            const std::size_t kind = random() % 2;
            const bool begins = i < 250 && open[kind].size() < 6 && random() % 2 == 0;
            if (begins) {
                const Scope scope = kind == 0 ? Scope::User : Scope::PythonFunction;
                Open made{(kind == 0 ? "range " : "call ") + std::to_string(i), now,
                          std::make_unique<Operation>(scope)};
                made.operation->begin(made.name);
                open[kind].push_back(std::move(made));
            } else if (!open[kind].empty()) {
                closed[kind].push_back({open[kind].back().name, open[kind].back().start, now});
                open[kind].pop_back();
            }
        }
        for (std::size_t kind = 0; kind < 2; ++kind) {
            for (; !open[kind].empty(); open[kind].pop_back()) {
                at(static_cast<std::uint64_t>(++now));
                closed[kind].push_back({open[kind].back().name, open[kind].back().start, now});
            }
        }
        at(static_cast<std::uint64_t>(++now));
        const Trace trace = session.stop();
        const auto found = shown(trace);
        for (const Closed& range : closed[0]) {
            EXPECT_EQ(found.at(range.name).start, range.start);
            EXPECT_EQ(found.at(range.name).duration, range.end - range.start);
            EXPECT_EQ(found.at(range.name).flags, 0);
        }
        for (const Closed& call : closed[1]) {
            std::int64_t start = call.start;
            std::int64_t end = call.end;
            for (const Closed& range : closed[0]) {
                if (range.start < call.start && range.end > call.start && range.end < call.end)
                    start = std::max(start, range.end);
                if (range.start > call.start && range.start < call.end && range.end > call.end)
                    end = std::min(end, range.start);
            }
            EXPECT_EQ(found.at(call.name).start, start) << call.name;
            EXPECT_EQ(found.at(call.name).duration, end - start) << call.name;
            EXPECT_EQ(found.at(call.name).flags, 0);
        }
        const RangeColumns ranges = trace.ranges();
        for (std::size_t row = 0; row < ranges.size(); ++row) {
            const Row parent = ranges.parent[row];
            if (parent == kNoRow) continue;
            EXPECT_GE(ranges.start_ns[row], ranges.start_ns[parent]);
            EXPECT_LE(ranges.start_ns[row] + ranges.duration_ns[row],
                      ranges.start_ns[parent] + ranges.duration_ns[parent]);
        }
        ASSERT_FALSE(HasFailure()) << "seed " << seed;
    }
}

TEST_F(ExactTimes, OfARingByTimeAreThoseOfItsLastSeconds) {
    constexpr std::uint64_t kStepNs = 10'000, kSecondNs = 1'000'000'000;
    Session session(SessionOptions{.last_ns = kSecondNs});
    for (std::uint64_t ns = 2000; ns < 10 * kSecondNs; ns += kStepNs) {
        at(ns);
        MAREY_RANGE("step");
    }
    const Trace trace = session.stop();
    // A chunk goes when its newest record is old enough. A thread keeps the last two.
    constexpr std::size_t kChunk = detail::kLargeBlocks * detail::kBlockBytes / detail::kRecordUnit;
    EXPECT_GE(trace.ranges().size(), kSecondNs / kStepNs);
    EXPECT_LE(trace.ranges().size(), kSecondNs / kStepNs + 3 * kChunk);
    EXPECT_EQ(trace.window().policy, "ring");
}

TEST_F(ExactTimes, OfAClockThatGoesBackwards) {
    Session session(SessionOptions{});
    {
        at(1100);
        MAREY_RANGE("backwards");
        at(1050);
    }
    at(1300);
    const Trace trace = session.stop();
    EXPECT_EQ(shown(trace), (std::map<std::string, Shown>{{"backwards", {1100, 0, 0, 0, 0}}}));
    EXPECT_EQ(trace.threads()[0].clamped, 1u);
}

TEST_F(ExactTimes, OfAFileEqualThoseOfTheTrace) {
    char name[] = "/tmp/marey-exact-XXXXXX";
    const std::string path = std::string(mkdtemp(name)) + "/exact.marey";
    Session session(SessionOptions{.output = path});
    {
        at(1100);
        MAREY_RANGE("outer");
        at(1150);
        { MAREY_RANGE("inner"); }
        at(1200);
    }
    at(1300);
    const auto direct = shown(session.stop());
    const Trace loaded = Trace::load(path);
    EXPECT_EQ(shown(loaded), direct);
    EXPECT_EQ(direct.at("outer"), (Shown{1100, 100, 100, 0, 0}));
    EXPECT_EQ(loaded.window().start_ns, 1000);
    EXPECT_EQ(loaded.window().end_ns, 1300);
    unlink(path.c_str());
    rmdir(name);
}

// ---- state that remains ----

TEST(Usage, ComesBackToNothingWhenTheLastSessionEnds) {
    {
        Session session(SessionOptions{});
        MAREY_RANGE("first");  // from now on this thread is registered
    }
    const std::size_t threads =
        Recorder::get().usage().threads;  // including logs of devices, if tests made some
    for (int i = 0; i < 3; ++i) {
        Session first(SessionOptions{});
        Session second(SessionOptions{});
        { MAREY_RANGE("used"); }
        EXPECT_EQ(Recorder::get().usage().sessions, 2u);
        EXPECT_GT(Recorder::get().usage().journal_bytes, 0u);
    }
    EXPECT_EQ(Recorder::get().usage().sessions, 0u);
    EXPECT_EQ(Recorder::get().usage().journal_bytes, 0u);
    EXPECT_EQ(Recorder::get().usage().threads, threads);
}

TEST(Sessions, AThreadThatEndsLeavesNoChunkOfAnEarlierRecordingToTheNext) {
    std::promise<void> recorded;
    std::promise<void> may_end;
    const Recorder::Started first = Recorder::get().start(SessionOptions{});
    std::thread old([&] {
        { MAREY_RANGE("old"); }
        recorded.set_value();
        may_end.get_future().wait();
    });
    recorded.get_future().wait();
    RawLog log;  // being read all the time
    ASSERT_TRUE(Recorder::get().stop(first.id, log));
    Session session(SessionOptions{});
    may_end.set_value();
    old.join();
    std::thread([] { MAREY_RANGE("new"); }).join();
    const Trace trace = session.stop();
    ASSERT_EQ(trace.ranges().size(), 1u);
    EXPECT_EQ(trace.range_name(0), "new");
}

TEST(Sessions, OneThatFollowsTasksMayBeTheFirstOfAForkedChild) {
    char folder[] = "/tmp/marey-forked-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    const auto succeeds = [](auto in_child) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(120);  // rather than wait for itself for ever
            _exit(in_child() ? 0 : 1);
        }
        int status = 0;
        waitpid(child, &status, 0);
        return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    };
    EXPECT_TRUE(succeeds([&] {
        setenv("MAREY", ("out=" + std::string(folder) + "/app.marey").c_str(), 1);
        start_environment_session();
        // The child restarts that session when it first records.
        return succeeds([] {
            Session session(SessionOptions{.threads = Threads::Tasks});
            { MAREY_RANGE("in the child"); }
            return session.stop().ranges().size() == 1;
        });
    }));
    std::filesystem::remove_all(folder);
}

TEST(Usage, AThreadKeepsNoChunkOfAFinishedFile) {
    char name[] = "/tmp/marey-usage-XXXXXX";
    const std::string path = std::string(mkdtemp(name)) + "/file.marey";
    {
        Session session(SessionOptions{.output = path});
        { MAREY_RANGE("in the file"); }
    }
    for (int i = 0; i < 2; ++i) {
        Session session(SessionOptions{});
        { MAREY_RANGE("in memory"); }
        const auto* const entry = static_cast<const ThreadEntry*>(detail::current_thread->owner);
        // Sanitizers detect more: its blocks have been freed.
        EXPECT_TRUE(i != 0 || entry->last_full == nullptr);
    }
    unlink(path.c_str());
    rmdir(name);
}

// Like a signal handler that runs while its thread holds the recorder's lock.
TEST(Sessions, ARangeThatCannotBeClosedInsideTheRecorderIsLostAndNotLeftOpen) {
    const auto handle = [] {
        MAREY_RANGE("in a handler");
        MAREY_RANGE("with a value", "n", 1);
    };
    Session session(SessionOptions{});
    handle();
    {
        RecorderMutex mutex;
        const std::lock_guard lock(mutex);
        for (int i = 0; i < 100'000; ++i) handle();
    }
    {
        MAREY_RANGE("outer");
        MAREY_RANGE("inner");
    }
    const Trace trace = session.stop();
    const auto inner = static_cast<Row>(trace.ranges().size() - 1);
    const ThreadInfo& thread = trace.threads()[trace.tracks()[trace.track_of(inner)].thread];
    EXPECT_GT(thread.dropped, 0u);
    EXPECT_EQ(thread.resyncs, 0u);
    EXPECT_EQ(trace.ranges().size() + thread.dropped, 200'004u);
    ASSERT_EQ(trace.problems().size(), 1u) << "there was space for them";
    EXPECT_EQ(trace.problems()[0].code, "dropped_in_handler");
    EXPECT_EQ(trace.problems()[0].count, thread.dropped);
    EXPECT_EQ(trace.range_name(inner), "inner");
    EXPECT_EQ(trace.range_name(trace.ranges().parent[inner]), "outer");
    for (const std::uint16_t flags : trace.ranges().flags) EXPECT_EQ(flags & (kAsync | kUnfinished), 0);
}

// As in a handler that has interrupted the end of a range: names are new, and values have no place.
TEST(Sessions, ALostRecordIsCountedOnceWithItsNameAndValues) {
    Session session(SessionOptions{.record_shapes = true});
    { MAREY_RANGE("first"); }
    detail::ThreadState* const thread = detail::current_thread;
    detail::set_busy(thread);
    {
        MAREY_RANGE("new");
        MAREY_RANGE("new with a value", "n", 1);
        const std::string name = "new at run time";
        MAREY_RANGE_DYNAMIC(name, "n", 1);
        instant("new instant");
        counter("new counter", 1.0);
        marey_begin_named("new begin");
        marey_end();
        const Range movable("new movable");
    }
    detail::clear_busy(thread);
    { MAREY_RANGE("last"); }
    const Trace trace = session.stop();
    EXPECT_EQ(trace.ranges().size(), 2u);
    ASSERT_EQ(trace.problems().size(), 1u);
    EXPECT_EQ(trace.problems()[0].code, "dropped_in_handler");
    EXPECT_EQ(trace.problems()[0].count, 7u);
}

// ---- the file of a ring ----

// Forty threads use small chunks, as there is little space for each; the only thread that comes after them
// uses large ones.
TEST(Ring, ItsFileStaysWithinItsLimitAlsoWhenTheSizeOfChunksChanges) {
    constexpr std::uint64_t kLimit = std::uint64_t{16} << 20;
    const auto record = [](int ranges) {
        for (int i = 0; i < ranges; ++i) {
            MAREY_RANGE("recorded");
        }
    };
    char folder[] = "/tmp/marey-ring-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    SessionOptions options;
    options.output = std::string(folder) + "/ring.marey";
    options.max_bytes = kLimit;
    options.policy = Policy::Ring;
    Session session(options);
    std::vector<std::thread> threads;
    for (int i = 0; i < 40; ++i) threads.emplace_back(record, 100'000);
    for (std::thread& thread : threads) thread.join();
    std::thread(record, 4'000'000).join();
    std::uintmax_t bytes = std::filesystem::file_size(options.output);
    EXPECT_LE(bytes, kLimit + 4 * threads.size() * detail::kBlockBytes);
    session.discard();
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace marey
