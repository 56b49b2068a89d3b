// now_test.cpp: devices of a program that runs.
#include <gtest/gtest.h>
#include <marey/now.h>

#include "analyze/gpu/gpu_fixture.h"

namespace marey {
namespace {

using testing::GpuFixture;

TEST(Now, HasTheNewestWorkOfEachDeviceAndTheCallsWhoseWorkIsMissing) {
    GpuFixture gpu;
    gpu.window(0, 1000);
    gpu.kernel(100, 50, "older", gpu.call(10, 5));
    gpu.kernel(200, 300, "newest", gpu.call(20, 5));
    gpu.device(1).kernel(210, 20, "other", gpu.call(30, 5));
    gpu.call(25, 2, "cudaStreamSynchronize");
    gpu.call(40, 5);
    gpu.call(50, 5);
    gpu.call(60, 2, "cudaStreamSynchronize");
    const std::vector<ProcessNow> processes = now(gpu.trace());
    ASSERT_EQ(processes.size(), 1u);
    EXPECT_EQ(processes[0].in_flight, 2u);
    ASSERT_EQ(processes[0].devices.size(), 2u);
    EXPECT_EQ(processes[0].devices[0].idle_ns, 500);
    EXPECT_EQ(processes[0].devices[1].idle_ns, 770);
}

TEST(Now, HasNoDeviceWithoutWork) {
    GpuFixture gpu;
    gpu.call(10, 5);
    const std::vector<ProcessNow> processes = now(gpu.trace());
    EXPECT_EQ(processes[0].in_flight, 0u);
    EXPECT_TRUE(processes[0].devices.empty());
}

}  // namespace
}  // namespace marey
