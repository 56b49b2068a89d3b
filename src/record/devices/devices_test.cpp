// devices_test.cpp: registered devices, and the calls they receive.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <marey/all.h>

#include "record/devices/device_fixture.h"

extern "C" int InitializeInjection();

namespace marey {
namespace {

using testing::fake;
using testing::FakeDevice;
using testing::problem_text;
using testing::with_fake;

std::string refusal(std::shared_ptr<DeviceRuntime> device) {
    try {
        register_device(std::move(device));
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

// ---- registered devices ----

TEST(Devices, AreNotifiedWhenCudasDriverStarts) {
    const auto cuda = std::make_shared<FakeDevice>("cuda", DeviceType::Cuda);
    EXPECT_EQ(InitializeInjection(), 1);  // where there is no such device, too
    register_device(cuda);
    EXPECT_EQ(InitializeInjection(), 1);
    EXPECT_EQ(cuda->calls, "begins ");
}

TEST(Devices, AreRefusedWithTheReason) {
    fake();
    EXPECT_EQ(refusal(nullptr), "register_device: the device is null");
    EXPECT_EQ(refusal(std::make_shared<FakeDevice>("", DeviceType::Mps)),
              "register_device: a device needs a name");
    EXPECT_EQ(refusal(std::make_shared<FakeDevice>("processor", DeviceType::Cpu)),
              "register_device: processor needs a device type that is not the CPU's");
    EXPECT_EQ(refusal(std::make_shared<FakeDevice>("none", DeviceType::None)),
              "register_device: none needs a device type that is not the CPU's");
    EXPECT_EQ(refusal(std::make_shared<FakeDevice>("fake", DeviceType::Mps)),
              "register_device: a device named fake is already registered");
    EXPECT_EQ(refusal(std::make_shared<FakeDevice>("second", DeviceType::Xpu)),
              "register_device: second has the same type as fake, which is already registered");
    EXPECT_EQ(find_device("second"), nullptr);
}

TEST(Devices, AreFoundByTheirNames) {
    fake();  // registered at first use
    EXPECT_EQ(find_device("fake").get(), &fake());
    EXPECT_EQ(device_error("fake"), "");
    fake().why_not = "it is switched off";
    EXPECT_EQ(device_error("fake"), "it is switched off");
    EXPECT_EQ(device_error("abacus"), "There is no device named 'abacus'.");
    EXPECT_EQ(device_error("../abacus"), "There is no device named '../abacus'.");
    // Its library is not in this program's folder.
    EXPECT_EQ(find_device("cuda"), nullptr);
    EXPECT_EQ(device_error("cuda").rfind("The library of the device 'cuda' cannot be loaded: ", 0), 0u);
}

TEST(Devices, ThatAreUnavailableAreLeftOutAndTheTraceStatesWhy) {
    SessionOptions options;
    options.devices = {"abacus"};
    Session session(options);
    { MAREY_RANGE("range"); }
    const Trace trace = session.stop();
    EXPECT_EQ(problem_text(trace, "device_unavailable"), "There is no device named 'abacus'.");
    EXPECT_EQ(trace.ranges().size(), 1u);
    fake().why_not = "it is switched off";
    Session other(with_fake());
    EXPECT_EQ(fake().received.size(), 0u);
    EXPECT_EQ(problem_text(other.stop(), "device_unavailable"), "it is switched off");
}

TEST(Devices, WithoutActivitiesAreTimedWithTheirEvents) {
    const auto silent = std::make_shared<FakeDevice>("silent", DeviceType::Hpu);
    silent->has_activities = false;
    register_device(silent);
    SessionOptions options;
    options.devices = {"silent"};
    Session session(options);
    EXPECT_EQ(problem_text(session.stop(), "device_unavailable"),
              "The device 'silent' does not report its work. Ranges are timed with its events instead.");
}

// ---- the calls they receive ----

TEST(Devices, ReceiveTheUnionOfTheSessionsNeeds) {
    FakeDevice& device = fake();
    Session plain{SessionOptions{}};
    EXPECT_EQ(device.received.size(), 0u);
    SessionOptions options = with_fake();
    options.device_activities = kDeviceKernels;
    Session first(options);
    options.device_activities = kDeviceCopies;
    options.profile_memory = true;
    Session second(options);
    first.stop();
    second.stop();
    plain.stop();
    EXPECT_EQ(device.received, (std::vector<DeviceNeeds>{{kDeviceKernels, false},
                                                         {kDeviceKernels | kDeviceCopies, true},
                                                         {kDeviceCopies, true},
                                                         {0, false}}));
}

TEST(Devices, AreWaitedForWhenASessionThatRequestedThemStops) {
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

TEST(Devices, ThatRefuseOrFailToDeliverAreReportedInTheTrace) {
    FakeDevice& device = fake();
    device.trouble = "another profiler holds it";
    device.is_whole = false;
    Session session(with_fake());
    const Trace trace = session.stop();
    EXPECT_EQ(problem_text(trace, "device_not_recorded"), "another profiler holds it");
    EXPECT_NE(problem_text(trace, "device_work_missing"), "");
}

TEST(Devices, GiveFactsToTheSessionsThatRequestedThem) {
    fake();
    Session without{SessionOptions{}};
    Session with(with_fake());
    const Trace trace = with.stop();
    ASSERT_EQ(trace.metadata().size(), 1u);
    EXPECT_EQ(trace.metadata()[0].key, "fake_clock");
    EXPECT_EQ(trace.metadata()[0].json, "7");
    EXPECT_EQ(without.stop().metadata().size(), 0u);
}

}  // namespace
}  // namespace marey
