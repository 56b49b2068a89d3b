// device_list.h: the tests that every device must pass: one list of tests, and a driver for each device.
//
// A driver is a class of static functions:
//   name()                     what find_device() calls it
//   why_not()                  why the tests cannot run here; empty: they can
//   devices()                  how many there are
//   launch(device, queue, ns)  a kernel of about that long, in one of the queues 0 to 3
//   graph(device, queue, n)    one call, n kernels
//   synchronize(device)        returns when the device has done what it was given
//   is_kernel(name), is_launch(name), is_graph(name), is_synchronize(name)   as traces show them
//   clock_fact()               the key of the trace's fact about the device's clock
//   works_after_fork()         whether the child of a fork can launch
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <marey/all.h>
#include <marey/validate.h>

namespace device_list {

using marey::kNoRow;
using marey::Row;
using marey::Session;
using marey::SessionOptions;
using marey::Trace;

/// The options of the tests' sessions.
class Reading {
  public:
    template <class Driver>
    static Reading of(const Trace& trace) {
        Reading reading(trace);
        for (const marey::TrackInfo& track : trace.tracks()) {
            const bool is_device = track.device.type != marey::DeviceType::Cpu;
            for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
                const std::string name(trace.range_name(row));
                if (is_device && track.kind != marey::TrackKind::Async && Driver::is_kernel(name))
                    reading.kernels.push_back(row);
                if (!is_device && (Driver::is_launch(name) || Driver::is_graph(name)))
                    reading.launches.push_back(row);
                if (!is_device && Driver::is_synchronize(name)) reading.synchronizes.push_back(row);
            }
        }
        return reading;
    }

    std::int64_t start(Row row) const { return trace_.ranges().start_ns[row]; }
    std::int64_t end(Row row) const { return start(row) + trace_.ranges().duration_ns[row]; }
    /// The call that launched it; kNoRow: none, or more than one.
    Row launcher(Row kernel) const {
        const auto found = launchers_.find(kernel);
        return found != launchers_.end() && found->second.size() == 1 ? found->second[0] : kNoRow;
    }
    /// The name of the innermost range around a call that is not itself a device call.
    std::string range_around(Row call) const {
        for (Row row = trace_.ranges().parent[call]; row != kNoRow; row = trace_.ranges().parent[row]) {
            const marey::SiteInfo& site = trace_.sites()[trace_.ranges().site[row]];
            if (site.scope != marey::Scope::DeviceRuntime) return std::string(trace_.range_name(row));
        }
        return "";
    }
    /// Kernels by the range that launched them; "?" for those without one call.
    std::map<std::string, int> by_range() const {
        std::map<std::string, int> found;
        for (const Row kernel : kernels) {
            const Row call = launcher(kernel);
            ++found[call == kNoRow ? "?" : range_around(call)];
        }
        return found;
    }
    std::uint64_t problem(std::string_view code) const {
        for (const marey::ProblemInfo& each : trace_.problems()) {
            if (each.code == code) return each.count;
        }
        return 0;
    }
    /// A number from a fact of the trace; -1: it is missing.
    long long fact(std::string_view key, std::string_view member) const {
        for (const marey::MetadataInfo& each : trace_.metadata()) {
            if (each.key != key) continue;
            const std::string wanted = "\"" + std::string(member) + "\": ";
            const std::size_t at = each.json.find(wanted);
            if (at != std::string::npos) return std::atoll(each.json.c_str() + at + wanted.size());
        }
        return -1;
    }

    std::vector<Row> kernels;
    std::vector<Row> launches;      ///< calls that launch
    std::vector<Row> synchronizes;  ///< calls that wait

  private:
    explicit Reading(const Trace& trace) : trace_(trace) {
        for (const marey::LinkInfo& link : trace.links()) {
            if (link.kind == marey::LinkKind::Launch) launchers_[link.to].push_back(link.from);
        }
    }
    Trace trace_;
    std::map<Row, std::vector<Row>> launchers_;
};

template <class Driver>
SessionOptions options_of() {
    SessionOptions options;
    options.devices = {Driver::name()};
    return options;
}

template <class Driver>
class DeviceList : public ::testing::Test {
  protected:
    void SetUp() override {
        if (const std::string why = Driver::why_not(); !why.empty()) GTEST_SKIP() << why;
    }
    /// The facts that it states must hold.
    static Reading read(const Trace& trace) {
        for (const marey::Violation& violation : marey::validate(trace))
            ADD_FAILURE() << violation.rule << ": " << violation.example;
        return Reading::of<Driver>(trace);
    }
};
TYPED_TEST_SUITE_P(DeviceList);

using Counts = std::map<std::string, int>;

TYPED_TEST_P(DeviceList, EveryKernelAppearsOnceUnderTheRangeThatLaunchedIt) {
    constexpr int kEach = 150;
    TypeParam::launch(0, 0, 1000);  // whatever the device does at first
    TypeParam::synchronize(0);
    Session session(options_of<TypeParam>());
    Counts expected;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 2; ++thread) {
        for (int queue = 0; queue < 4; ++queue)
            expected["thread " + std::to_string(thread) + " queue " + std::to_string(queue)] = kEach;
        expected["graphs of " + std::to_string(thread)] = 5 * 8;
        threads.emplace_back([thread] {
            for (int i = 0; i < kEach; ++i) {
                for (int queue = 0; queue < 4; ++queue) {
                    const std::string name =
                        "thread " + std::to_string(thread) + " queue " + std::to_string(queue);
                    MAREY_RANGE_DYNAMIC(name);
                    TypeParam::launch(0, queue, 2000);
                }
            }
            MAREY_RANGE_DYNAMIC("graphs of " + std::to_string(thread));
            for (int i = 0; i < 8; ++i) TypeParam::graph(0, thread, 5);
        });
    }
    for (std::thread& thread : threads) thread.join();
    TypeParam::synchronize(0);
    const Reading reading = this->read(session.stop());
    EXPECT_EQ(reading.by_range(), expected);
    EXPECT_EQ(reading.problem("dropped"), 0u);
    EXPECT_EQ(reading.problem("device_work_without_call"), 0u);
}

TYPED_TEST_P(DeviceList, ASessionOfOneThreadHasWhatThatThreadLaunched) {
    SessionOptions options = options_of<TypeParam>();
    options.threads = marey::Threads::Tasks;
    options.device_activities = marey::kDeviceAll;
    Session session(options);
    {
        MAREY_RANGE("own");
        for (int i = 0; i < 20; ++i) TypeParam::launch(0, 0, 1000);
    }
    std::thread([] {
        MAREY_RANGE("other");
        TypeParam::launch(0, 1, 1000);
    }).join();
    TypeParam::synchronize(0);
    EXPECT_EQ(this->read(session.stop()).by_range(), (Counts{{"own", 20}}));
}

TYPED_TEST_P(DeviceList, ManyLaunchesAreAllThere) {
    constexpr int kMany = 20'000;
    Session session(options_of<TypeParam>());
    {
        MAREY_RANGE("many");
        for (int i = 0; i < kMany; ++i) TypeParam::launch(0, i % 4, 500);
    }
    const Reading reading = this->read(session.stop());
    EXPECT_EQ(reading.by_range(), (Counts{{"many", kMany}}));
    EXPECT_EQ(static_cast<int>(reading.launches.size()), kMany);
}

/// A thread that launches, each time in a range "busy", as long as it lives.
template <class Driver>
class BusyThread {
  public:
    ~BusyThread() {
        is_over_ = true;
        thread_.join();
        Driver::synchronize(0);
    }
    int launched() const { return launched_; }
    void wait_for_more(int more) const {
        for (const int before = launched_; launched_ < before + more;) std::this_thread::yield();
    }

  private:
    void launch() {
        while (!is_over_) {
            MAREY_RANGE("busy");
            Driver::launch(0, launched_ % 4, 1000);
            if (++launched_ % 64 == 0) Driver::synchronize(0);
        }
    }
    std::atomic<bool> is_over_{false};
    std::atomic<int> launched_{0};
    std::thread thread_{[this] { launch(); }};
};

TYPED_TEST_P(DeviceList, ASessionInTheMiddleOfABusyProgramHasWhatWasLaunchedMeanwhile) {
    const BusyThread<TypeParam> busy;
    for (int round = 0; round < 8; ++round) {
        busy.wait_for_more(100);
        const int before_start = busy.launched();
        Session session(options_of<TypeParam>());
        const int after_start = busy.launched() + 1;  // one may be in progress
        busy.wait_for_more(300);
        const int before_stop = busy.launched();
        const Trace trace = session.stop();
        const int after_stop = busy.launched() + 1;
        const Reading reading = this->read(trace);
        Counts found = reading.by_range();
        // Some of those launched before the start may still run.
        EXPECT_GE(found["busy"], before_stop - after_start)
            << ::testing::PrintToString(found) << ", " << reading.launches.size() << " launches";
        EXPECT_LE(static_cast<int>(reading.kernels.size()), after_stop - before_start + 64);
        EXPECT_LE(found["?"], after_start - before_start + 64);  // the calls of these were not delivered yet
        EXPECT_EQ(reading.problem("device_work_missing"), 0u);
    }
}

TYPED_TEST_P(DeviceList, ASessionGoesOnWhileOthersEndInABusyProgram) {
    const BusyThread<TypeParam> busy;
    Session lasting(options_of<TypeParam>());
    const int after_start = busy.launched() + 1;
    for (int round = 0; round < 8; ++round) {
        Session other(options_of<TypeParam>());
        busy.wait_for_more(100);
        other.stop();
    }
    const int before_stop = busy.launched();
    const Reading reading = this->read(lasting.stop());
    const int found = reading.by_range()["busy"];
    // The device may have abandoned unfinished work at the end of another session, and reports that.
    EXPECT_GE(found + static_cast<int>(reading.problem("dropped")), before_stop - after_start);
    EXPECT_GE(found, (before_stop - after_start) / 2);
    EXPECT_EQ(reading.problem("device_work_missing"), 0u);
}

TYPED_TEST_P(DeviceList, SessionsOneAfterTheOtherHaveTheirOwn) {
    for (int round = 1; round <= 12; ++round) {
        Session session(options_of<TypeParam>());
        {
            MAREY_RANGE("round");
            for (int i = 0; i < round; ++i) TypeParam::launch(0, i % 2, 1000);
        }
        const Reading reading = this->read(session.stop());
        EXPECT_EQ(reading.by_range(), (Counts{{"round", round}}));
        TypeParam::launch(0, 0, 1000);  // not in a session
        TypeParam::synchronize(0);
    }
}

TYPED_TEST_P(DeviceList, WorkOutstandingAtTheStopIsWaitedFor) {
    Session session(options_of<TypeParam>());
    {
        MAREY_RANGE("range");
        for (int i = 0; i < 8; ++i) TypeParam::launch(0, i % 4, 10'000'000);
    }
    const Reading reading = this->read(session.stop());
    EXPECT_EQ(reading.by_range(), (Counts{{"range", 8}}));
    EXPECT_EQ(reading.problem("device_work_missing"), 0u);
    for (const Row kernel : reading.kernels)
        EXPECT_GT(reading.end(kernel) - reading.start(kernel), 5'000'000);
}

TYPED_TEST_P(DeviceList, ASnapshotDoesNotWait) {
    Session session(options_of<TypeParam>());
    TypeParam::launch(0, 0, 1000);
    TypeParam::synchronize(0);
    std::size_t launched = 1;
    bool has_waited = true;
    // On a slow machine the work may end by itself before the snapshot is taken; not if it is long enough. (A
    // stop waits for 2 s at most.)
    for (std::uint64_t ns = 200'000'000; has_waited && ns < 2'000'000'000; ns *= 2) {
        TypeParam::launch(0, 0, ns);
        const Reading early = this->read(session.snapshot());
        has_waited =
            early.kernels.size() > launched;  // fewer: the records in one buffer with unfinished work
        EXPECT_EQ(early.problem("device_work_missing"), 0u);
        ++launched;
    }
    EXPECT_FALSE(has_waited);
    EXPECT_EQ(this->read(session.stop()).kernels.size(), launched);
}

TYPED_TEST_P(DeviceList, OverTheSizeLimitDroppedRecordsAreCounted) {
    SessionOptions options = options_of<TypeParam>();
    options.max_bytes = 1 << 20;
    options.policy = marey::Policy::Drop;
    Session session(options);
    for (int i = 0; i < 20'000; ++i) TypeParam::launch(0, i % 4, 500);
    const Reading reading = this->read(session.stop());
    EXPECT_GT(reading.kernels.size(), 0u);
    EXPECT_LT(reading.kernels.size(), 20'000u);
    EXPECT_GE(reading.kernels.size() + reading.problem("dropped"), 20'000u);
}

TYPED_TEST_P(DeviceList, ARingKeepsTheNewest) {
    SessionOptions options = options_of<TypeParam>();
    options.max_bytes = 1 << 20;
    options.policy = marey::Policy::Ring;
    Session session(options);
    for (int i = 0; i < 20'000; ++i) TypeParam::launch(0, i % 4, 500);
    TypeParam::synchronize(0);
    {
        MAREY_RANGE("last");
        TypeParam::launch(0, 0, 500);
    }
    const Reading reading = this->read(session.stop());
    EXPECT_LT(reading.kernels.size(), 20'000u);
    EXPECT_GT(reading.problem("overwritten"), 0u);
    EXPECT_EQ(reading.by_range()["last"], 1);
}

TYPED_TEST_P(DeviceList, ASessionWithoutDevicesBesideOneWithThemHasNothingOfThem) {
    Session without{SessionOptions{}};
    Session with(options_of<TypeParam>());
    {
        MAREY_RANGE("range");
        TypeParam::launch(0, 0, 1000);
    }
    EXPECT_EQ(this->read(with.stop()).by_range(), (Counts{{"range", 1}}));
    const Trace trace = without.stop();
    ASSERT_EQ(trace.ranges().size(), 1u);
    EXPECT_EQ(trace.range_name(0), "range");
    EXPECT_EQ(trace.metadata().size(), 0u);
}

TYPED_TEST_P(DeviceList, TwoDevicesAreTold) {
    if (TypeParam::devices() < 2) GTEST_SKIP() << "there is one device only";
    Session session(options_of<TypeParam>());
    for (int i = 0; i < 30; ++i) TypeParam::launch(i % 3 == 0 ? 1 : 0, 0, 1000);
    const Trace trace = session.stop();
    Counts found;
    for (const Row kernel : this->read(trace).kernels)
        ++found[std::to_string(trace.tracks()[trace.track_of(kernel)].device.index)];
    EXPECT_EQ(found, (Counts{{"0", 20}, {"1", 10}}));
}

TYPED_TEST_P(DeviceList, AForkLeavesTheParentWhole) {
    Session session(options_of<TypeParam>());
    {
        MAREY_RANGE("before");
        TypeParam::launch(0, 0, 1000);
    }
    const pid_t child = fork();
    if (child == 0) {
        Session own(options_of<TypeParam>());
        {
            MAREY_RANGE("child's");
            if (TypeParam::works_after_fork()) TypeParam::launch(0, 0, 1000);
        }
        const Reading reading = Reading::of<TypeParam>(own.stop());
        const Counts expected = TypeParam::works_after_fork() ? Counts{{"child's", 1}} : Counts{};
        _exit(reading.by_range() == expected ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    {
        MAREY_RANGE("after");
        TypeParam::launch(0, 0, 1000);
    }
    EXPECT_EQ(this->read(session.stop()).by_range(), (Counts{{"before", 1}, {"after", 1}}));
}

/// Ends the program while a session runs and work is outstanding.
template <class Driver>
void end_while_recording(const std::string& output) {
    SessionOptions options = options_of<Driver>();
    options.output = output;
    static Session session(options);
    {
        MAREY_RANGE("range");
        for (int i = 0; i < 20; ++i) Driver::launch(0, i % 4, 1'000'000);
    }
    std::exit(0);
}

TYPED_TEST_P(DeviceList, AProgramThatEndsLeavesAWholeCapture) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // a separate process, which runs this too
    if (std::getenv("MAREY_DEVICE_LIST") == nullptr)
        setenv("MAREY_DEVICE_LIST", ("/tmp/marey-device-list-" + std::to_string(getpid())).c_str(), 1);
    const std::string folder = std::getenv("MAREY_DEVICE_LIST");
    std::filesystem::create_directories(folder);
    EXPECT_EXIT(end_while_recording<TypeParam>(folder + "/exit.marey"), ::testing::ExitedWithCode(0), "");
    const Trace trace = Trace::load(folder + "/exit.marey");
    EXPECT_TRUE(trace.window().finished);
    EXPECT_EQ(this->read(trace).by_range(), (Counts{{"range", 20}}));
    EXPECT_TRUE(std::any_of(trace.metadata().begin(), trace.metadata().end(),
                            [](const marey::MetadataInfo& fact) { return fact.key == "deviceProperties"; }));
    std::filesystem::remove_all(folder);
    unsetenv("MAREY_DEVICE_LIST");
}

/// No kernel starts before its launch, or ends after the return of the call that waited for it, by more than
/// the error that the trace states. Returns that error.
template <class Driver>
long long check_clock(int rounds) {
    Session session(options_of<Driver>());
    for (int i = 0; i < rounds; ++i) {
        Driver::launch(0, i % 4, 3000);
        if (i % 16 == 15) Driver::synchronize(0);
    }
    Driver::synchronize(0);
    const Reading reading = Reading::of<Driver>(session.stop());
    const long long stated = reading.fact(Driver::clock_fact(), "worst_error_ns");
    EXPECT_GE(stated, 0) << "the trace states no error";
    const long long error =
        stated + 1 + 2'000'000'000 / static_cast<long long>(marey::device_ticks_per_second());
    EXPECT_EQ(static_cast<int>(reading.kernels.size()), rounds);
    long long earliest = 0;
    long long latest = 0;
    for (const Row kernel : reading.kernels) {
        const Row call = reading.launcher(kernel);
        if (call == kNoRow) continue;
        earliest = std::max<long long>(earliest, reading.start(call) - reading.start(kernel));
        const auto wait = std::find_if(reading.synchronizes.begin(), reading.synchronizes.end(),
                                       [&](Row row) { return reading.start(row) >= reading.start(call); });
        if (wait != reading.synchronizes.end())
            latest = std::max<long long>(latest, reading.end(kernel) - reading.end(*wait));
    }
    EXPECT_LE(earliest, error) << "a kernel started before its launch";
    EXPECT_LE(latest, error) << "a kernel ended after the return of what waited for it";
    EXPECT_FALSE(reading.synchronizes.empty());
    return stated;
}

TYPED_TEST_P(DeviceList, NoKernelIsBeforeItsLaunchOrAfterItsWaitByMoreThanTheStatedError) {
    check_clock<TypeParam>(2000);
}

REGISTER_TYPED_TEST_SUITE_P(DeviceList, EveryKernelAppearsOnceUnderTheRangeThatLaunchedIt,
                            ASessionOfOneThreadHasWhatThatThreadLaunched, ManyLaunchesAreAllThere,
                            ASessionInTheMiddleOfABusyProgramHasWhatWasLaunchedMeanwhile,
                            ASessionGoesOnWhileOthersEndInABusyProgram, SessionsOneAfterTheOtherHaveTheirOwn,
                            WorkOutstandingAtTheStopIsWaitedFor, ASnapshotDoesNotWait,
                            OverTheSizeLimitDroppedRecordsAreCounted, ARingKeepsTheNewest,
                            ASessionWithoutDevicesBesideOneWithThemHasNothingOfThem, TwoDevicesAreTold,
                            AForkLeavesTheParentWhole, AProgramThatEndsLeavesAWholeCapture,
                            NoKernelIsBeforeItsLaunchOrAfterItsWaitByMoreThanTheStatedError);

}  // namespace device_list
