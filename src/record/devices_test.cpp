// devices_test.cpp: devices that are registered, what they are told, and their logs.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <kymo/kymo.h>

#if defined(__SANITIZE_THREAD__)
// The child of a fork starts a thread of its own here (the recorder's), which works.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
    return "die_after_fork=0";
}
#endif

namespace kymo {
namespace {

/// Writes down what it is told.
class FakeDevice : public DeviceRuntime, public DeviceActivitySource {
  public:
    FakeDevice(std::string name, DeviceType type) : name_(std::move(name)), type_(type) {}
    std::string name() const override { return name_; }
    DeviceType type() const noexcept override { return type_; }
    std::string unavailable() const override { return why_not; }
    std::unique_ptr<DeviceEvent> record() override { throw Error("it has no events"); }
    double elapsed_us(const DeviceEvent&, const DeviceEvent&) override { return 0; }
    void mark(std::string_view) override {}
    void range_push(std::string_view) override {}
    void range_pop() override {}
    void on_each_device(const std::function<void(std::int32_t)>&) override {}
    void synchronize() override {}
    DeviceActivitySource* activities() override { return has_activities ? this : nullptr; }

    std::string record(const DeviceNeeds& needs, DeviceLog& log) noexcept override {
        told.push_back(needs);
        to = &log;
        return needs.activities != 0 ? trouble : "";
    }
    bool flush(std::uint64_t timeout_ns, bool wait_for_work) noexcept override {
        calls += wait_for_work ? "wait " : "flush ";
        timeout = timeout_ns;
        return is_whole;
    }
    void forked() noexcept override { calls += "forked "; }
    std::vector<std::pair<std::string, std::string>> facts() noexcept override {
        return {{"fake_clock", "7"}};
    }

    /// Work from now on, for as long as it is asked.
    void work(std::string_view what, std::uint64_t ticks = 10) const {
        const std::uint64_t now = device_ticks();
        DeviceWork work;
        work.site = DeviceLog::work_site(DeviceWorkKind::Kernel, what);
        work.device = {type_, 0};
        work.stream = 7;
        work.start = now;
        work.end = now + ticks;
        to->write(work);
    }

    std::string why_not;
    std::string trouble;
    bool has_activities = true;
    bool is_whole = true;
    std::vector<DeviceNeeds> told;
    std::string calls;
    std::uint64_t timeout = 0;
    DeviceLog* to = nullptr;

  private:
    std::string name_;
    DeviceType type_;
};

// A device is registered for the life of the process; every test looks at the same one.
FakeDevice& fake() {
    static const std::shared_ptr<FakeDevice> device = [] {
        auto made = std::make_shared<FakeDevice>("fake", DeviceType::Xpu);
        register_device(made);
        return made;
    }();
    device->told.clear();
    device->calls.clear();
    device->why_not.clear();
    device->trouble.clear();
    device->is_whole = true;
    return *device;
}

SessionOptions with_fake() {
    SessionOptions options;
    options.devices = {"fake"};
    return options;
}

std::string problem_text(const Trace& trace, std::string_view code) {
    for (const ProblemInfo& problem : trace.problems()) {
        if (problem.code == code) return problem.text;
    }
    return "";
}

std::uint64_t problem_count(const Trace& trace, std::string_view code) {
    for (const ProblemInfo& problem : trace.problems()) {
        if (problem.code == code) return problem.count;
    }
    return 0;
}

std::map<std::string, int> counts(const Trace& trace) {
    std::map<std::string, int> found;
    for (Row row = 0; row < trace.ranges().size(); ++row) ++found[std::string(trace.range_name(row))];
    return found;
}

std::string refusal(std::shared_ptr<DeviceRuntime> device) {
    try {
        register_device(std::move(device));
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

// ---- registered devices ----

TEST(Devices, AreRefusedWithTheReason) {
    fake();
    EXPECT_EQ(refusal(nullptr), "register_device: there is no device");
    EXPECT_EQ(refusal(std::make_shared<FakeDevice>("", DeviceType::Mps)),
              "register_device: a device needs a name");
    EXPECT_EQ(refusal(std::make_shared<FakeDevice>("processor", DeviceType::Cpu)),
              "register_device: processor needs a type of its own, which is not the CPU's");
    EXPECT_EQ(refusal(std::make_shared<FakeDevice>("none", DeviceType::None)),
              "register_device: none needs a type of its own, which is not the CPU's");
    EXPECT_EQ(refusal(std::make_shared<FakeDevice>("fake", DeviceType::Mps)),
              "a device called fake is registered already");
    EXPECT_EQ(refusal(std::make_shared<FakeDevice>("second", DeviceType::Xpu)),
              "register_device: second has the type of fake, which is registered already");
    EXPECT_EQ(find_device("second"), nullptr);
}

TEST(Devices, AreFoundByTheirNames) {
    EXPECT_EQ(find_device("fake").get(), &fake());
    EXPECT_EQ(device_trouble("fake"), "");
    fake().why_not = "it is switched off";
    EXPECT_EQ(device_trouble("fake"), "it is switched off");
    EXPECT_EQ(device_trouble("abacus"), "There is no device called 'abacus'.");
    // Its library is not beside this program.
    EXPECT_EQ(find_device("simulated"), nullptr);
    EXPECT_EQ(
        device_trouble("simulated").rfind("Kymo's part for the device 'simulated' cannot be loaded: ", 0),
        0u);
}

TEST(Devices, ThatCannotBeHadAreLeftOutAndTheTraceSaysWhy) {
    SessionOptions options;
    options.devices = {"abacus"};
    Session session(options);
    { KYMO_RANGE("range"); }
    const Trace trace = session.stop();
    EXPECT_EQ(problem_text(trace, "device_unavailable"), "There is no device called 'abacus'.");
    EXPECT_EQ(trace.ranges().size(), 1u);
    fake().why_not = "it is switched off";
    Session other(with_fake());
    EXPECT_EQ(fake().told.size(), 0u);
    EXPECT_EQ(problem_text(other.stop(), "device_unavailable"), "it is switched off");
}

TEST(Devices, WithoutActivitiesCannotBeRecorded) {
    const auto silent = std::make_shared<FakeDevice>("silent", DeviceType::Hpu);
    silent->has_activities = false;
    register_device(silent);
    SessionOptions options;
    options.devices = {"silent"};
    Session session(options);
    EXPECT_EQ(problem_text(session.stop(), "device_unavailable"),
              "The device 'silent' tells nothing of its work.");
}

// ---- what they are told ----

TEST(Devices, AreToldTheUnionOfWhatSessionsAskFor) {
    FakeDevice& device = fake();
    Session plain{SessionOptions{}};
    EXPECT_EQ(device.told.size(), 0u);
    SessionOptions options = with_fake();
    options.device_activities = kDeviceKernels;
    Session first(options);
    options.device_activities = kDeviceCopies;
    options.profile_memory = true;
    Session second(options);
    first.stop();
    second.stop();
    plain.stop();
    EXPECT_EQ(device.told, (std::vector<DeviceNeeds>{{kDeviceKernels, false},
                                                     {kDeviceKernels | kDeviceCopies, true},
                                                     {kDeviceCopies, true},
                                                     {0, false}}));
}

TEST(Devices, AreWaitedForWhenASessionThatAskedForThemStops) {
    FakeDevice& device = fake();
    Session with(with_fake());
    Session without{SessionOptions{}};
    without.stop();
    EXPECT_EQ(std::exchange(device.calls, ""), "flush ");
    with.snapshot();
    EXPECT_EQ(std::exchange(device.calls, ""), "flush ");
    with.stop();
    EXPECT_EQ(std::exchange(device.calls, ""), "wait ");
    EXPECT_GT(device.timeout, 0u);
    Session{SessionOptions{}}.stop();
    EXPECT_EQ(device.calls, "");
}

TEST(Devices, ThatRefuseOrFailToDeliverAreAProblemOfTheTrace) {
    FakeDevice& device = fake();
    device.trouble = "another profiler holds it";
    device.is_whole = false;
    Session session(with_fake());
    const Trace trace = session.stop();
    EXPECT_EQ(problem_text(trace, "device_not_recorded"), "another profiler holds it");
    EXPECT_NE(problem_text(trace, "device_work_missing"), "");
}

TEST(Devices, GiveFactsToTheSessionsThatAskedForThem) {
    fake();
    Session without{SessionOptions{}};
    Session with(with_fake());
    const Trace trace = with.stop();
    ASSERT_EQ(trace.metadata().size(), 1u);
    EXPECT_EQ(trace.metadata()[0].key, "fake_clock");
    EXPECT_EQ(trace.metadata()[0].json, "7");
    EXPECT_EQ(without.stop().metadata().size(), 0u);
}

// ---- their logs ----

TEST(DeviceLog, ShowsWorkToTheSessionsThatAskedForIt) {
    FakeDevice& device = fake();
    Session without{SessionOptions{}};
    Session with(with_fake());
    DeviceCall call;
    call.site = DeviceLog::call_site("launch");
    call.os_tid = gettid();
    call.correlation = 3;
    {
        KYMO_RANGE("range");
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

TEST(DeviceLog, TakesAllocationsWithTheirTimes) {
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

TEST(DeviceLog, IgnoresWhatComesWhileNothingRecords) {
    FakeDevice& device = fake();
    Session(with_fake()).stop();
    device.work("late");
    device.to->count_lost(5);
    Session session(with_fake());
    const Trace trace = session.stop();
    EXPECT_EQ(trace.ranges().size(), 0u);
    EXPECT_EQ(problem_count(trace, "dropped"), 0u);
}

TEST(DeviceLog, CountsWhatNeverCame) {
    FakeDevice& device = fake();
    Session session(with_fake());
    device.work("a");
    device.to->count_lost(41);
    device.work("b");
    const Trace trace = session.stop();
    EXPECT_EQ(trace.ranges().size(), 2u);
    EXPECT_EQ(problem_count(trace, "dropped"), 41u);
}

TEST(DeviceLog, DropsAndCountsOverTheCeiling) {
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

TEST(DeviceLog, GoesOnInTheChildOfAFork) {
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
        char name[] = "/tmp/kymo-test-XXXXXX";
        folder_ = mkdtemp(name);
    }
    ~DeviceCapture() override { std::filesystem::remove_all(folder_); }
    std::string path(const std::string& name) const { return folder_ + "/" + name; }
    std::string folder_;
};

TEST_F(DeviceCapture, OfAKilledProgramHoldsWhatTheDeviceHandedOver) {
    const pid_t child = fork();
    if (child == 0) {
        FakeDevice& device = fake();
        SessionOptions options = with_fake();
        options.output = path("killed.kymo");
        Session session(options);
        for (int i = 0; i < 3000; ++i) device.work("work");
        kill(getpid(), SIGKILL);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    const Trace trace = Trace::load(path("killed.kymo"));
    EXPECT_GE(trace.ranges().size(), 2999u);  // a thread may miss its last record
    EXPECT_EQ(trace.tracks()[0].kind, TrackKind::Device);
    EXPECT_FALSE(trace.window().finished);
}

TEST_F(DeviceCapture, IsTheSameWhenLoadedAndWhenSaved) {
    FakeDevice& device = fake();
    SessionOptions options = with_fake();
    options.output = path("a.kymo");
    Session session(options);
    for (int i = 0; i < 100; ++i) device.work(i % 2 == 0 ? "even" : "odd");
    const Trace trace = session.stop();
    trace.save(path("b.kymo"));
    for (const char* name : {"a.kymo", "b.kymo"}) {
        const Trace loaded = Trace::load(path(name));
        EXPECT_EQ(counts(loaded), counts(trace)) << name;
        EXPECT_EQ(loaded.tracks()[0].stream, 7) << name;
        EXPECT_EQ(loaded.range_arguments(5).size(), trace.range_arguments(5).size()) << name;
        EXPECT_EQ(loaded.string(loaded.sites()[loaded.ranges().site[0]].category), "kernel") << name;
    }
}

}  // namespace
}  // namespace kymo
