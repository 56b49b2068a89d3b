// device_timing.cpp: ranges timed with events of a device.
#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <marey/all.h>
#include <marey/analyze.h>

namespace marey {
namespace {

/// The tolerance of times: a tick of the coarsest clock, and the uncertainty of the rate in a session of a
/// few milliseconds.
constexpr double off_by(double ns) {
    return 100 + 0.005 * ns;
}

/// A device whose time only moves when the test moves it.
class Clockwork final : public DeviceRuntime {
  public:
    struct Event final : DeviceEvent {
        Event(Clockwork& of, std::int32_t index, double at) : owner(of), number(index), us(at) {
            ++owner.alive;
        }
        ~Event() override { --owner.alive; }
        std::int32_t device() const noexcept override { return number; }
        Clockwork& owner;
        std::int32_t number;
        double us;
    };

    std::string name() const override { return "clockwork"; }
    DeviceType type() const noexcept override { return DeviceType::Mps; }
    std::string unavailable() const override { return {}; }
    std::unique_ptr<DeviceEvent> record() override {
        if (!failure.empty()) throw Error(failure);
        if (is_absent) return nullptr;
        if (current_queue(type()) == this) ++in_own_queue;
        auto event = std::make_unique<Event>(*this, current, us.load());
        if (next_is_stuck.exchange(false)) stuck = event.get();
        return event;
    }
    std::optional<bool> has_reached(const DeviceEvent& point) override {
        return &point == stuck.load() ? std::optional(false) : reached;
    }
    double elapsed_us(const DeviceEvent& from, const DeviceEvent& to) override {
        EXPECT_NE(has_reached(from), false) << "this would wait";
        EXPECT_NE(has_reached(to), false) << "this would wait";
        return static_cast<const Event&>(to).us - static_cast<const Event&>(from).us;
    }
    void mark(std::string_view) override {}
    void range_push(std::string_view) override {}
    void range_pop() override {}
    void on_each_device(const std::function<void(std::int32_t)>& visit) override { visit(0); }
    void synchronize() override { ++waits; }

    std::atomic<double> us{0};
    std::atomic<int> alive{0};
    std::atomic<int> in_own_queue{0};  ///< events of the queue with the device's address
    std::int32_t current = 0;
    int waits = 0;
    std::string failure;
    bool is_absent = false;       ///< on the calling thread
    std::optional<bool> reached;  ///< the state of events that it reports; nothing: it cannot be queried
    std::atomic<bool> next_is_stuck{false};  ///< the device will not reach the next one
    std::atomic<const Event*> stuck{nullptr};
};

class DeviceTiming : public testing::Test {
  protected:
    static Clockwork& device() {
        static const std::shared_ptr<Clockwork> only = [] {
            auto made = std::make_shared<Clockwork>();
            register_device(made);
            return made;
        }();
        return *only;
    }

    DeviceTiming() {
        device().failure.clear();
        device().is_absent = false;
        device().reached.reset();
        device().stuck = nullptr;
        device().current = 0;
        device().in_own_queue = 0;
    }

    static void work(double us) { device().us = device().us.load() + us; }

    static Session timing_session() { return Session(SessionOptions{.devices = {"clockwork"}}); }

    /// Nanoseconds on the device, by the name of the range that they belong to.
    static std::map<std::string, std::vector<std::int64_t>> times(const Trace& trace) {
        std::map<std::string, std::vector<std::int64_t>> found;
        for (const LinkInfo& link : trace.links()) {
            if (link.kind == LinkKind::Launch)
                found[std::string(trace.range_name(link.from))].push_back(
                    trace.ranges().duration_ns[link.to]);
        }
        return found;
    }

    static std::vector<std::string> problems(const Trace& trace) {
        std::vector<std::string> texts;
        for (const ProblemInfo& problem : trace.problems()) {
            if (problem.code == "device_not_timed") texts.push_back(problem.text);
        }
        return texts;
    }
};

// L3 L18 L19
TEST_F(DeviceTiming, ARangeHasTheTimeBetweenItsEvents) {
    device();
    Session session = timing_session();
    {
        MAREY_RANGE("outer");
        work(100);
        {
            MAREY_RANGE("inner");
            work(40);
        }
    }
    const int waits = device().waits;
    const Trace trace = session.stop();
    EXPECT_EQ(device().waits, waits + 1);
    EXPECT_EQ(device().alive, 0);
    const auto found = times(trace);
    ASSERT_EQ(found.size(), 2u);
    EXPECT_NEAR(static_cast<double>(found.at("outer").at(0)), 140'000, off_by(140'000));
    EXPECT_NEAR(static_cast<double>(found.at("inner").at(0)), 40'000, off_by(40'000));
    for (const AverageRow& row : key_averages(trace).rows) {
        if (row.device_type != DeviceType::Cpu) continue;
        EXPECT_TRUE(row.is_legacy);
        EXPECT_NEAR(static_cast<double>(row.device_time_total_ns), row.name == "outer" ? 140'000 : 40'000,
                    off_by(140'000));
        EXPECT_NEAR(static_cast<double>(row.self_device_time_total_ns),
                    row.name == "outer" ? 100'000 : 40'000, 2 * off_by(100'000));
    }
}

// L10
TEST_F(DeviceTiming, RangesThatOnlyLookAtMemoryAreLeftOut) {
    device();
    Session session = timing_session();
    time_on_device("mine", false);
    time_on_device("aten::view", false);
    {
        MAREY_RANGE("aten::view");
        work(5);
    }
    {
        MAREY_RANGE("mine");
        work(5);
    }
    time_on_device("mine", true);
    {
        MAREY_RANGE("mine");
        work(7);
    }
    const auto found = times(session.stop());
    ASSERT_EQ(found.size(), 1u);
    ASSERT_EQ(found.at("mine").size(), 1u);
    EXPECT_NEAR(static_cast<double>(found.at("mine")[0]), 7'000, off_by(7'000));
}

// L3
TEST_F(DeviceTiming, EventsOfTwoDevicesHaveNoTimeBetweenThem) {
    device();
    Session session = timing_session();
    {
        MAREY_RANGE("moved");
        device().current = 1;
    }
    const Trace trace = session.stop();
    EXPECT_TRUE(times(trace).empty());
    EXPECT_EQ(problems(trace), std::vector<std::string>{"Events are not on the same device: 0 and 1."});
}

// L3 L18
TEST_F(DeviceTiming, ADeviceThatCannotRecordIsReportedInTheTrace) {
    device();
    Session session = timing_session();
    device().failure = "no queue";
    { MAREY_RANGE("range"); }
    const Trace trace = session.stop();
    EXPECT_TRUE(times(trace).empty());
    EXPECT_EQ(problems(trace), std::vector<std::string>{"Events were not recorded for clockwork: no queue"});
}

TEST_F(DeviceTiming, AThreadWithoutADeviceHasNothingToMeasure) {
    device();
    Session session = timing_session();
    device().is_absent = true;
    { MAREY_RANGE("elsewhere"); }
    device().is_absent = false;
    {
        MAREY_RANGE("left");
        device().is_absent = true;
    }
    const Trace trace = session.stop();
    EXPECT_TRUE(times(trace).empty());
    EXPECT_EQ(problems(trace),
              std::vector<std::string>{"No device of clockwork was current when a range ended."});
}

// K15
TEST_F(DeviceTiming, AStopDoesNotWaitForEverForEvents) {
    device();
    Session session = timing_session();
    device().reached = false;
    { MAREY_RANGE("stuck"); }
    const int waits = device().waits;
    const Trace trace = session.stop();
    EXPECT_EQ(device().waits, waits) << "a device that can be queried is not waited for";
    EXPECT_TRUE(times(trace).empty());
    EXPECT_EQ(problems(trace),
              std::vector<std::string>{"The events of clockwork did not all complete in time."});
    EXPECT_EQ(device().alive, 0);
}

TEST_F(DeviceTiming, OneEventThatIsNotReachedLosesNoOtherRange) {
    device();
    Session session = timing_session();
    device().reached = true;
    device().next_is_stuck = true;  // where it begins: its end is in another queue
    { MAREY_RANGE("stuck"); }
    {
        MAREY_RANGE("done");
        work(5);
    }
    EXPECT_EQ(times(session.snapshot()).count("done"), 1u);
    const Trace trace = session.stop();
    EXPECT_EQ(times(trace).count("done"), 1u);
    EXPECT_EQ(times(trace).count("stuck"), 0u);
    EXPECT_EQ(problems(trace).size(), 1u);
}

TEST_F(DeviceTiming, ASnapshotLeavesEventsThatTheDeviceHasNotReached) {
    device();
    Session session = timing_session();
    device().reached = false;
    {
        MAREY_RANGE("range");
        work(5);
    }
    EXPECT_TRUE(times(session.snapshot()).empty());
    device().reached = true;
    EXPECT_EQ(times(session.snapshot()).size(), 1u);
    EXPECT_EQ(times(session.stop()).size(), 1u);
}

TEST_F(DeviceTiming, EventsAreInTheQueueThatIsCurrent) {
    device();
    Session session = timing_session();
    set_current_queue(DeviceType::Mps, []() noexcept -> void* { return &device(); });
    { MAREY_RANGE("beside"); }
    EXPECT_EQ(device().in_own_queue, 2);
    set_current_queue(DeviceType::Mps, nullptr);
    { MAREY_RANGE("default"); }
    EXPECT_EQ(device().in_own_queue, 2);
    session.stop();
}

// L19
TEST_F(DeviceTiming, FewEventsAreAliveHoweverManyRangesThereAre) {
    device();
    Session session = timing_session();
    constexpr int kRanges = 20'000;
    int most = 0;
    std::thread other([] {
        for (int i = 0; i < kRanges; ++i) {
            MAREY_RANGE("there");
        }
    });
    for (int i = 0; i < kRanges; ++i) {
        MAREY_RANGE("here");
        most = std::max(most, device().alive.load());
    }
    other.join();
    const auto found = times(session.stop());
    EXPECT_LE(most, 3 * 4096);
    EXPECT_EQ(device().alive, 0);
    EXPECT_EQ(found.at("here").size(), std::size_t{kRanges});
    EXPECT_EQ(found.at("there").size(), std::size_t{kRanges});
}

TEST_F(DeviceTiming, IsForTheSessionsThatRequestIt) {
    device();
    Session plain{SessionOptions{}};
    Session session = timing_session();
    {
        MAREY_RANGE("range");
        work(5);
    }
    session.record_devices(false);
    {
        MAREY_RANGE("later");
        work(5);
    }
    EXPECT_EQ(times(session.stop()).size(), 1u);
    EXPECT_TRUE(times(plain.stop()).empty());
    EXPECT_FALSE(has_observers());
}

}  // namespace
}  // namespace marey
