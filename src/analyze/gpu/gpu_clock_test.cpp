// gpu_clock_test.cpp: clock metadata as devices write it, and in other forms.
#include <gtest/gtest.h>

#include <marey/gpu_use.h>

#include "analyze/gpu/gpu_fixture.h"

namespace marey {
namespace {

std::optional<GpuClock> clock_of(const char* key, const char* json) {
    testing::GpuFixture gpu;
    gpu.assembler().add_metadata(key, json);
    return gpu_clock(gpu.trace());
}

TEST(GpuClocks, AreReadFromTheMetadata) {
    for (const char* key : {"gpu_clock", "simulated_clock"}) {
        const auto clock = clock_of(key,
                                    R"({"readings": 6, "median_error_ns": 1347, "worst_error_ns": 1567,
                                        "drift_ppm": 0.5, "more": [{"readings": 7}]})");
        ASSERT_TRUE(clock.has_value()) << key;
        EXPECT_EQ(clock->readings, 6);
        EXPECT_EQ(clock->median_error_ns, 1347);
        EXPECT_EQ(clock->worst_error_ns, 1567);
    }
}

TEST(GpuClocks, MetadataOfAnotherFormIsIgnored) {
    for (const char* json : {"{}", "17", "[]", R"({"readings": 6})",
                             R"({"readings": 0, "median_error_ns": 1, "worst_error_ns": 1})",
                             R"({"readings": 6, "median_error_ns": -1, "worst_error_ns": 1})",
                             R"({"readings": "6", "median_error_ns": 1, "worst_error_ns": 1})"})
        EXPECT_FALSE(clock_of("gpu_clock", json).has_value()) << json;
    EXPECT_FALSE(
        clock_of("wall_clock", R"({"readings": 6, "median_error_ns": 1, "worst_error_ns": 1})").has_value());
}

}  // namespace
}  // namespace marey
