// run_time_names.cpp: names made at run time, in programs that record several times.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <marey/all.h>

#include "support/range_lookup.h"

namespace {

using Names = std::multiset<std::string>;

class RunTimeNames : public ::testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/marey-names-XXXXXX";
        folder_ = mkdtemp(name);
    }
    void TearDown() override {
        marey::clear_observers();
        std::filesystem::remove_all(folder_);
    }

    std::string path(const std::string& name) const { return folder_ + "/" + name + ".marey"; }
    marey::SessionOptions to_file(const std::string& name, marey::Policy policy = marey::Policy::Stop) const {
        return {.output = path(name), .max_bytes = 4 << 20, .policy = policy};
    }

    static void use(const std::string& name) { MAREY_RANGE_DYNAMIC(name); }

    /// A session that uses many names, then ends.
    static void record_earlier_names(int count) {
        marey::Session session(marey::SessionOptions{});
        for (int i = 0; i < count; ++i) use("earlier " + std::to_string(i));
        session.stop();
    }

    static Names names(const marey::Trace& trace) {
        for (const marey::ProblemInfo& problem : trace.problems()) EXPECT_NE(problem.code, "unknown_site");
        Names found;
        for (marey::Row row = 0; row < trace.ranges().size(); ++row) found.emplace(trace.range_name(row));
        return found;
    }
    Names names_in(const std::string& name) const { return names(marey::Trace::load(path(name))); }

    /// How many of the earlier names are in the file.
    int earlier_names_in(const std::string& name) const {
        std::ifstream file(path(name), std::ios::binary);
        const std::string bytes{std::istreambuf_iterator<char>(file), {}};
        int count = 0;
        for (std::size_t at = 0; (at = bytes.find("earlier ", at)) != std::string::npos; ++at) ++count;
        return count;
    }

    /// Runs `program` in a process that it must end by itself.
    static int status_of(const std::function<void()>& program) {
        const pid_t child = fork();
        if (child == 0) {
            program();
            _exit(7);
        }
        int status = 0;
        waitpid(child, &status, 0);
        return status;
    }

    std::string folder_;
};

TEST_F(RunTimeNames, ACaptureContainsOnlyTheNamesThatWereUsedWhileItWasRecorded) {
    record_earlier_names(10'000);
    {
        marey::Session session(to_file("without"));
        use("own");
        session.stop();
    }
    EXPECT_EQ(earlier_names_in("without"), 0);
    EXPECT_EQ(names_in("without"), Names{"own"});
    {
        marey::Session session(to_file("with"));
        for (int i = 0; i < 3; ++i) use("earlier 17");
        session.stop();
    }
    EXPECT_EQ(earlier_names_in("with"), 1);
    EXPECT_EQ(names_in("with"), (Names{"earlier 17", "earlier 17", "earlier 17"}));
}

TEST_F(RunTimeNames, ATraceContainsOnlyTheNamesThatWereUsedWhileItWasRecorded) {
    record_earlier_names(10'000);
    marey::Session session(marey::SessionOptions{});
    use("earlier 17");
    const marey::Trace trace = session.stop();
    EXPECT_EQ(names(trace), Names{"earlier 17"});
    int earlier = 0;
    for (marey::StringId id = 0; id < trace.string_count(); ++id)
        earlier += trace.string(id).starts_with("earlier ");
    EXPECT_EQ(earlier, 1);
}

TEST_F(RunTimeNames, OfEarlierSessionsAreRightInLaterOnesOfEveryKind) {
    record_earlier_names(10);
    for (const marey::Policy policy : {marey::Policy::Stop, marey::Policy::Drop, marey::Policy::Ring}) {
        const std::string file = std::to_string(static_cast<int>(policy));
        marey::Session in_file(to_file(file, policy));
        use("earlier 3");
        marey::instant("earlier 4");
        marey::counter("earlier 5", 1);
        const marey::Trace trace = in_file.stop();
        for (const marey::Trace& each : {trace, marey::Trace::load(path(file))}) {
            EXPECT_EQ(names(each), Names{"earlier 3"});
            EXPECT_EQ(each.string(each.sites()[each.instants().site[0]].name), "earlier 4");
            EXPECT_EQ(each.string(each.sites()[each.counters().site[0]].name), "earlier 5");
        }
        marey::Session in_memory({.policy = policy});
        use("earlier 6");
        EXPECT_EQ(names(in_memory.stop()), Names{"earlier 6"});
    }
}

TEST_F(RunTimeNames, AreRightInSessionsThatOverlap) {
    record_earlier_names(10);
    marey::Session first(marey::SessionOptions{});
    use("earlier 1");
    marey::Session second(to_file("second"));
    use("earlier 1");
    use("earlier 2");
    EXPECT_EQ(names(first.stop()), (Names{"earlier 1", "earlier 1", "earlier 2"}));
    marey::Session third(to_file("third"));
    use("earlier 2");
    use("earlier 3");
    EXPECT_EQ(names(second.stop()), (Names{"earlier 1", "earlier 2", "earlier 2", "earlier 3"}));
    use("earlier 1");
    EXPECT_EQ(names(third.stop()), (Names{"earlier 1", "earlier 2", "earlier 3"}));
    EXPECT_EQ(names_in("second"), (Names{"earlier 1", "earlier 2", "earlier 2", "earlier 3"}));
    EXPECT_EQ(names_in("third"), (Names{"earlier 1", "earlier 2", "earlier 3"}));
}

TEST_F(RunTimeNames, OfALongSessionAreNotInTheTracesAndCapturesOfShortOnes) {
    marey::Session long_one(to_file("long"));
    for (int i = 0; i < 3000; ++i) use("earlier " + std::to_string(i));
    marey::Session in_memory(marey::SessionOptions{});
    marey::Session in_file(to_file("short"));
    use("earlier 17");
    const marey::Trace trace = in_memory.stop();
    in_file.stop();
    EXPECT_EQ(names(trace), Names{"earlier 17"});
    EXPECT_EQ(names_in("short"), Names{"earlier 17"});
    EXPECT_EQ(names(long_one.stop()).size(), 3001u);
    EXPECT_EQ(names_in("long").size(), 3001u);
    // Its first chunk has ranges from before, which are outside its window.
    EXPECT_LT(earlier_names_in("short"), 2500);
    EXPECT_LT(trace.string_count(), 2500u);
}

TEST_F(RunTimeNames, OfRangesOpenAcrossSessionsAreInAllOfThem) {
    auto first = std::make_unique<marey::Session>(marey::SessionOptions{});
    std::atomic<bool> is_open{false}, may_end{false};
    std::thread other([&] {  // it does nothing while the second session runs
        MAREY_RANGE_DYNAMIC(std::string("open elsewhere"));
        is_open = true;
        is_open.notify_one();
        may_end.wait(false);
    });
    is_open.wait(false);
    MAREY_RANGE_DYNAMIC(std::string("open here"));
    marey::Range movable("movable");
    first->stop();
    marey::Session second(to_file("second"));
    use("inside");
    movable.end();
    const marey::Trace trace = second.stop();
    may_end = true;
    may_end.notify_one();
    other.join();
    const Names expected{"open elsewhere", "open here", "inside", "movable"};
    EXPECT_EQ(names(trace), expected);
    EXPECT_EQ(names_in("second"), expected);
    EXPECT_EQ(parent_name(trace, "inside"), "open here");
}

TEST_F(RunTimeNames, ThatObserversSawWhileNothingRecordedAreNotInALaterCapture) {
    marey::add_observer({.start = [](const marey::ObservedRange&,
                                     void*) -> std::unique_ptr<marey::ObserverContext> { return nullptr; }});
    for (int i = 0; i < 100; ++i) use("earlier " + std::to_string(i));
    marey::Session session(to_file("observed"));
    use("earlier 5");
    session.stop();
    EXPECT_EQ(names_in("observed"), Names{"earlier 5"});
    EXPECT_EQ(earlier_names_in("observed"), 1);
}

TEST_F(RunTimeNames, AreInTheFileOfAProgramThatIsKilled) {
    record_earlier_names(10);
    const int status = status_of([&] {
        const marey::Session first(marey::SessionOptions{});
        MAREY_RANGE_DYNAMIC(std::string("open before"));
        marey::Session session(to_file("killed"));
        use("earlier 3");
        MAREY_RANGE_DYNAMIC(std::string("earlier 4"));
        use("new");
        raise(SIGKILL);
    });
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(names_in("killed"), (Names{"earlier 3", "earlier 4", "new", "open before"}));
    EXPECT_EQ(parent_name(marey::Trace::load(path("killed")), "new"), "earlier 4");
}

TEST_F(RunTimeNames, OfTheParentAreRightInAForkedChild) {
    marey::Session session(to_file("parent"));
    use("earlier 1");
    MAREY_RANGE_DYNAMIC(std::string("open at fork"));
    const int status = status_of([&] {
        marey::Session own(to_file("child"));
        use("earlier 1");
        use("earlier 2");
        own.stop();
        _exit(names_in("child").size() == 3 ? 0 : 1);
    });
    EXPECT_EQ(status, 0);
    session.stop();
    EXPECT_EQ(names_in("child"), (Names{"earlier 1", "earlier 2", "open at fork"}));
    EXPECT_EQ(names_in("parent"), (Names{"earlier 1", "open at fork"}));
}

TEST_F(RunTimeNames, AreRightWhileSessionsComeAndGo) {
    std::atomic<bool> ends{false};
    std::vector<std::thread> threads;
    for (int number = 0; number < 3; ++number) {
        threads.emplace_back([&ends, number] {
            for (unsigned i = 0; !ends; ++i) {
                MAREY_RANGE_DYNAMIC("outer " + std::to_string(number));
                use("inner " + std::to_string(i % 7));
                if (i % 3 == 0) marey::counter("count " + std::to_string(i % 5), 1);
                const marey::Range movable("movable " + std::to_string(i % 2));
            }
        });
    }
    for (int i = 0; i < 200; ++i) {
        marey::Session session(i % 4 == 0 ? to_file("n" + std::to_string(i)) : marey::SessionOptions{});
        use("own");
        ASSERT_EQ(names(session.stop()).count("(unknown)"), 0u);
    }
    ends = true;
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
