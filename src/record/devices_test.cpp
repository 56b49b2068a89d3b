// devices_test.cpp: devices that are registered, and what they are told.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <marey/marey.h>

#include "record/device_fixture.h"

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

TEST(Devices, HearFromCudasDriverThatItBegins) {
    const auto cuda = std::make_shared<FakeDevice>("cuda", DeviceType::Cuda);
    EXPECT_EQ(InitializeInjection(), 1);  // where there is no such device, too
    register_device(cuda);
    EXPECT_EQ(InitializeInjection(), 1);
    EXPECT_EQ(cuda->calls, "begins ");
}

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
    fake();  // registered when it is first asked for
    EXPECT_EQ(find_device("fake").get(), &fake());
    EXPECT_EQ(device_error("fake"), "");
    fake().why_not = "it is switched off";
    EXPECT_EQ(device_error("fake"), "it is switched off");
    EXPECT_EQ(device_error("abacus"), "There is no device called 'abacus'.");
    // Its library is not beside this program.
    EXPECT_EQ(find_device("simulated"), nullptr);
    EXPECT_EQ(
        device_error("simulated").rfind("Marey's part for the device 'simulated' cannot be loaded: ", 0), 0u);
}

TEST(Devices, ThatCannotBeHadAreLeftOutAndTheTraceSaysWhy) {
    SessionOptions options;
    options.devices = {"abacus"};
    Session session(options);
    { MAREY_RANGE("range"); }
    const Trace trace = session.stop();
    EXPECT_EQ(problem_text(trace, "device_unavailable"), "There is no device called 'abacus'.");
    EXPECT_EQ(trace.ranges().size(), 1u);
    fake().why_not = "it is switched off";
    Session other(with_fake());
    EXPECT_EQ(fake().told.size(), 0u);
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
              "The device 'silent' tells nothing of its work. Ranges are timed with its events instead.");
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

}  // namespace
}  // namespace marey
