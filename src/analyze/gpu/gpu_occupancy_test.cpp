// gpu_occupancy_test.cpp: the estimate, compared with the values in PyTorch traces of the same launches.
#include "analyze/gpu/gpu_occupancy.h"

#include <gtest/gtest.h>

#include "analyze/gpu/gpu_fixture.h"

namespace marey {
namespace {

GpuProperties a100() {
    return {"A100", 108, 32, 2048, 65536, 167936, 8, 0};
}

GpuShape shape(std::int64_t blocks, std::int64_t threads, std::int64_t registers, std::int64_t shared_bytes) {
    return {{blocks, 1, 1}, {threads, 1, 1}, registers, shared_bytes};
}

double occupancy(const GpuShape& of, const GpuProperties& device) {
    return estimate_occupancy(of, device).occupancy.value_or(-1);
}

TEST(GpuOccupancy, MatchesPyTorchForARealLaunch) {
    // 170 multiprocessors, compute capability 12.0: its limit is 3 blocks, by registers and by warps.
    const GpuProperties device{"", 170, 32, 1536, 65536, 102400, 12, 0};
    const GpuOccupancy estimate = estimate_occupancy(shape(800, 512, 40, 0), device);
    EXPECT_NEAR(estimate.blocks_per_sm.value_or(0), 4.705883, 1e-6);
    EXPECT_NEAR(estimate.warps_per_sm.value_or(0), 75.294121, 1e-5);
    EXPECT_DOUBLE_EQ(estimate.occupancy.value_or(0), 1);
}

TEST(GpuOccupancy, IsLimitedByTheGrid) {
    EXPECT_DOUBLE_EQ(occupancy(shape(54, 128, 32, 0), a100()), 0.5 * 128 / 2048);
}

TEST(GpuOccupancy, IsLimitedByRegisters) {
    // 128 x 32 registers per warp: 4 warps in each of 4 partitions, 2 blocks of 8 warps.
    EXPECT_DOUBLE_EQ(occupancy(shape(10000, 256, 122, 0), a100()), 2 * 256 / 2048.0);
    // 255 registers: 2 warps per partition; a block of 16 warps does not fit.
    EXPECT_DOUBLE_EQ(occupancy(shape(10000, 512, 255, 0), a100()), 0);
}

TEST(GpuOccupancy, IsLimitedBySharedMemory) {
    // 48 KiB plus 1 KiB for the system: 3 blocks in 164 KiB.
    EXPECT_DOUBLE_EQ(occupancy(shape(10000, 128, 32, 49152), a100()), 3 * 128 / 2048.0);
}

TEST(GpuOccupancy, IsLimitedByWarpsAndByBlocks) {
    EXPECT_DOUBLE_EQ(occupancy(shape(10000, 768, 16, 0), a100()), 2 * 768 / 2048.0);
    EXPECT_DOUBLE_EQ(occupancy(shape(10000, 32, 16, 0), a100()), 32 * 32 / 2048.0);
    GpuProperties turing = a100();
    turing.compute_major = 7;
    turing.compute_minor = 5;
    EXPECT_DOUBLE_EQ(occupancy(shape(10000, 32, 16, 0), turing), 16 * 32 / 2048.0);
}

TEST(GpuOccupancy, IsUnknownWithoutDeviceProperties) {
    GpuProperties little;
    EXPECT_FALSE(estimate_occupancy(shape(54, 128, 32, 0), little).blocks_per_sm);
    little.sm_count = 108;
    EXPECT_DOUBLE_EQ(estimate_occupancy(shape(54, 128, 32, 0), little).blocks_per_sm.value_or(0), 0.5);
    EXPECT_FALSE(estimate_occupancy(shape(54, 128, 32, 0), little).occupancy);
    EXPECT_FALSE(estimate_occupancy(GpuShape(), a100()).blocks_per_sm);
}

TEST(GpuOccupancy, PropertiesAreReadFromTheMetadata) {
    testing::GpuFixture gpu;
    gpu.properties();
    const auto all = gpu_properties(gpu.trace());
    ASSERT_EQ(all.size(), 1u);
    const GpuProperties& device = all.at(0);
    EXPECT_EQ(device.name, "A100");
    EXPECT_EQ(device.sm_count, 108);
    EXPECT_EQ(device.warp_size, 32);
    EXPECT_EQ(device.threads_per_sm, 2048);
    EXPECT_EQ(device.registers_per_sm, 65536);
    EXPECT_EQ(device.shared_bytes_per_sm, 167936);
    EXPECT_EQ(device.compute_major, 8);
}

TEST(GpuOccupancy, MetadataOfAnotherFormIsIgnored) {
    for (const char* json :
         {"{}", "17", "[]", "[1,2]", R"([{"name":"x"}])", R"([{"id":-1}])", R"([[{"id":0}]])"}) {
        testing::GpuFixture gpu;
        gpu.assembler().add_metadata("deviceProperties", json);
        EXPECT_TRUE(gpu_properties(gpu.trace()).empty()) << json;
    }
}

}  // namespace
}  // namespace marey
