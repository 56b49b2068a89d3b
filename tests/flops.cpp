// flops.cpp: floating-point operations and memory of what was recorded, as a user of the library gets them.
#include <gtest/gtest.h>

#include <array>

#include <kymo/kymo.h>

namespace {

/// Records a product of matrices and a convolution.
kymo::Trace record(const kymo::SessionOptions& options) {
    constexpr std::array<std::int64_t, 2> kLeft{3, 4}, kRight{4, 5};
    constexpr std::array<std::int64_t, 4> kImage{2, 3, 10, 10}, kKernel{8, 3, 3, 3};
    const kymo::ArrayView left{.sizes = kLeft}, right{.sizes = kRight};
    const kymo::ArrayView image{.sizes = kImage}, kernel{.sizes = kKernel};
    const kymo::Value ones[] = {1, 1};
    const kymo::Value zeros[] = {0, 0};
    kymo::Session session(options);
    {
        kymo::Operation op;
        op.begin("aten::mm", {}, {kymo::Value(left), kymo::Value(right)});
    }
    {
        kymo::Operation op;
        op.begin("aten::conv2d", {},
                 {kymo::Value(image), kymo::Value(kernel), kymo::Value(nullptr),
                  kymo::Value(std::span<const kymo::Value>(ones)),
                  kymo::Value(std::span<const kymo::Value>(zeros)),
                  kymo::Value(std::span<const kymo::Value>(ones)), kymo::Value(1)});
    }
    return session.stop();
}

// F1
TEST(Flops, AskingForThemRecordsWhatTheyNeed) {
    const kymo::Trace trace = record({.with_flops = true});
    ASSERT_EQ(trace.ranges().size(), 2u);
    EXPECT_EQ(kymo::flops_of(trace, 0), 2 * 3 * 4 * 5);
    EXPECT_EQ(kymo::flops_of(trace, 1), 2.0 * 2 * 8 * 8 * 9 * 3 * 8);
    EXPECT_EQ(kymo::all_flops(trace).size(), 2u);
}

TEST(Flops, ShapesAloneAreEnoughWhereAFormulaTakesNothingElse) {
    const kymo::Trace trace = record({.record_shapes = true});
    EXPECT_EQ(kymo::flops_of(trace, 0), 120);
    EXPECT_EQ(kymo::flops_of(trace, 1), std::nullopt);
}

TEST(Flops, AreUnknownWhenNothingWasAskedFor) {
    EXPECT_TRUE(kymo::all_flops(record({})).empty());
}

TEST(MemoryUse, OfARecordedProgramNamesWhoHeldThePeak) {
    kymo::Session session(kymo::SessionOptions{.profile_memory = true});
    int a = 0, b = 0;
    {
        KYMO_RANGE("step");
        kymo::report_allocation(&a, 100, 0, 0);
        {
            KYMO_RANGE("inner");
            kymo::report_allocation(&b, 1000, 0, 0);
        }
        kymo::report_allocation(&b, -1000, 0, 0);
    }
    const kymo::Trace trace = session.stop();
    const kymo::MemoryUse use = kymo::memory_use(trace);
    ASSERT_EQ(use.devices.size(), 1u);
    EXPECT_EQ(use.devices[0].peak_bytes, 1100);
    EXPECT_EQ(use.devices[0].kept_bytes, 100);
    ASSERT_EQ(use.devices[0].holders.size(), 2u);
    EXPECT_EQ(use.devices[0].holders[0].path, (std::vector<std::string>{"step", "inner"}));
    EXPECT_EQ(kymo::memory_series(trace).at(0).points.size(), 3u);
}

}  // namespace
