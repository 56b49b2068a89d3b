// device_log_test.cpp: device records in memory, in captures, and in the children of forks.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <marey/all.h>

#include "record/devices/device_fixture.h"

namespace marey {
namespace {

using testing::counts;
using testing::fake;
using testing::FakeDevice;
using testing::problem_count;
using testing::with_fake;

TEST(DeviceLog, ShowsWorkToTheSessionsThatRequestedIt) {
    FakeDevice& device = fake();
    Session without{SessionOptions{}};
    Session with(with_fake());
    DeviceCall call;
    call.site = DeviceLog::call_site("launch");
    call.os_tid = gettid();
    call.correlation = 3;
    {
        MAREY_RANGE("range");
        call.start = device_ticks();
        while (device_ticks() < call.start + 4) {
        }
        call.end = device_ticks();
        while (device_ticks() == call.end) {
        }
    }
    device.to->write(call);
    const std::vector<KeyedValue> values{{"priority", Value(2)}};
    DeviceWork work;
    work.site = DeviceLog::work_site(DeviceWorkKind::Kernel, "_Z3addPfi");
    work.device = {DeviceType::Xpu, 1};
    work.stream = 4;
    work.correlation = 3;
    work.start = call.start;
    work.end = device_ticks();
    work.values = values;
    device.to->write(work);
    const Trace trace = with.stop();
    ASSERT_EQ(trace.ranges().size(), 3u);
    EXPECT_EQ(trace.range_name(1), "launch");
    EXPECT_EQ(trace.ranges().parent[1], 0u);
    EXPECT_EQ(trace.range_name(2), "add(float*, int)");
    ASSERT_EQ(trace.links().size(), 1u);
    EXPECT_EQ(trace.links()[0].from, 1u);
    EXPECT_EQ(trace.links()[0].to, 2u);
    EXPECT_EQ(trace.string(trace.range_arguments(2)[0].key), "priority");
    EXPECT_EQ(trace.tracks()[1].device, (Device{DeviceType::Xpu, 1}));
    EXPECT_EQ(without.stop().ranges().size(), 1u);
}

TEST(DeviceLog, RecordsAllocationsWithTheirTimes) {
    FakeDevice& device = fake();
    SessionOptions options = with_fake();
    options.profile_memory = true;
    Session session(options);
    Session without(with_fake());
    const std::uint64_t now = device_ticks();
    device.to->write(MemoryReport{&options, 512, 512, 1024, {DeviceType::Xpu, 0}, false}, now);
    const Trace trace = session.stop();
    ASSERT_EQ(trace.memory().size(), 1u);
    EXPECT_EQ(trace.memory().bytes[0], 512);
    EXPECT_EQ(trace.memory().device[0].type, DeviceType::Xpu);
    EXPECT_EQ(without.stop().memory().size(), 0u);
}

TEST(DeviceLog, IgnoresWorkWhileNothingRecords) {
    FakeDevice& device = fake();
    Session(with_fake()).stop();
    device.work("late");
    device.to->count_lost(5);
    Session session(with_fake());
    const Trace trace = session.stop();
    EXPECT_EQ(trace.ranges().size(), 0u);
    EXPECT_EQ(problem_count(trace, "dropped"), 0u);
}

TEST(DeviceLog, CountsMissingRecords) {
    FakeDevice& device = fake();
    Session session(with_fake());
    device.work("a");
    device.to->count_lost(40);
    device.to->write(DeviceWork{});  // there was no space for its name
    device.work("b");
    const Trace trace = session.stop();
    EXPECT_EQ(trace.ranges().size(), 2u);
    EXPECT_EQ(problem_count(trace, "dropped"), 41u);
}

TEST(DeviceLog, DropsAndCountsOverTheSizeLimit) {
    FakeDevice& device = fake();
    SessionOptions options = with_fake();
    options.policy = Policy::Drop;
    options.max_bytes = 1 << 20;
    Session session(options);
    for (int i = 0; i < 40'000; ++i) device.work("work");
    const Trace trace = session.stop();
    EXPECT_GT(trace.ranges().size(), 0u);
    EXPECT_EQ(trace.ranges().size() + problem_count(trace, "dropped"), 40'000u);
}

TEST(DeviceLog, KeepsTheNewestInARing) {
    FakeDevice& device = fake();
    SessionOptions options = with_fake();
    options.policy = Policy::Ring;
    options.max_bytes = 1 << 20;
    Session session(options);
    for (int i = 0; i < 40'000; ++i) device.work(i == 0 ? "first" : i == 39'999 ? "last" : "work");
    const Trace trace = session.stop();
    const auto found = counts(trace);
    EXPECT_EQ(found.count("first"), 0u);
    EXPECT_EQ(found.count("last"), 1u);
    EXPECT_GT(problem_count(trace, "overwritten"), 0u);
}

// ---- processes and files ----

TEST(DeviceLog, ContinuesInTheChildOfAFork) {
    FakeDevice& device = fake();
    Session session(with_fake());
    device.work("parent's");
    const pid_t child = fork();
    if (child == 0) {
        if (std::exchange(device.calls, "") != "forked ") _exit(1);
        device.work("nobody's");
        Session own(with_fake());
        device.work("child's");
        const auto found = counts(own.stop());
        _exit(found == std::map<std::string, int>{{"child's", 1}} ? 0 : 2);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    device.work("parent's");
    EXPECT_EQ(counts(session.stop()), (std::map<std::string, int>{{"parent's", 2}}));
}

class DeviceCapture : public ::testing::Test {
  protected:
    DeviceCapture() {
        char name[] = "/tmp/marey-test-XXXXXX";
        folder_ = mkdtemp(name);
    }
    ~DeviceCapture() override { std::filesystem::remove_all(folder_); }
    std::string path(const std::string& name) const { return folder_ + "/" + name; }
    std::string folder_;
};

TEST_F(DeviceCapture, OfAKilledProgramHoldsTheDeliveredWork) {
    const pid_t child = fork();
    if (child == 0) {
        FakeDevice& device = fake();
        SessionOptions options = with_fake();
        options.output = path("killed.marey");
        Session session(options);
        for (int i = 0; i < 3000; ++i) device.work("work");
        device.to->write_fact(device.type(), "fake_name", "\"abacus\"");
        kill(getpid(), SIGKILL);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    const Trace trace = Trace::load(path("killed.marey"));
    EXPECT_GE(trace.ranges().size(), 2999u);  // a thread may miss its last record
    EXPECT_EQ(trace.tracks()[0].kind, TrackKind::Device);
    EXPECT_FALSE(trace.window().finished);
    ASSERT_EQ(trace.metadata().size(), 1u);
    EXPECT_EQ(trace.metadata()[0].json, "\"abacus\"");
}

TEST_F(DeviceCapture, HoldsAFactOnceHoweverOftenItIsReported) {
    FakeDevice& device = fake();
    SessionOptions options = with_fake();
    options.output = path("facts.marey");
    Session session(options);
    device.to->write_fact(device.type(), "fake_name", "1");
    const auto before = std::filesystem::file_size(options.output);
    for (int i = 0; i < 100'000; ++i) device.to->write_fact(device.type(), "fake_name", "2");
    EXPECT_EQ(std::filesystem::file_size(options.output), before);
    const Trace trace = Trace::load(options.output);
    ASSERT_EQ(trace.metadata().size(), 1u);
    EXPECT_EQ(trace.metadata()[0].json, "2");
}

TEST_F(DeviceCapture, IsTheSameWhenLoadedAndWhenSaved) {
    FakeDevice& device = fake();
    SessionOptions options = with_fake();
    options.output = path("a.marey");
    Session session(options);
    for (int i = 0; i < 100; ++i) device.work(i % 2 == 0 ? "even" : "odd");
    const Trace trace = session.stop();
    trace.save(path("b.marey"));
    for (const char* name : {"a.marey", "b.marey"}) {
        const Trace loaded = Trace::load(path(name));
        EXPECT_EQ(counts(loaded), counts(trace)) << name;
        EXPECT_EQ(loaded.tracks()[0].stream, 7) << name;
        EXPECT_EQ(loaded.range_arguments(5).size(), trace.range_arguments(5).size()) << name;
        EXPECT_EQ(loaded.string(loaded.sites()[loaded.ranges().site[0]].category), "kernel") << name;
    }
}

}  // namespace
}  // namespace marey
