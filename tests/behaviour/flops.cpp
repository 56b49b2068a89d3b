// flops.cpp: floating-point operations and memory of recorded programs, through the public interface.
#include <gtest/gtest.h>

#include <array>

#include <marey/all.h>

namespace {

/// Records a product of matrices and a convolution.
marey::Trace record(const marey::SessionOptions& options) {
    constexpr std::array<std::int64_t, 2> kLeft{3, 4}, kRight{4, 5};
    constexpr std::array<std::int64_t, 4> kImage{2, 3, 10, 10}, kKernel{8, 3, 3, 3};
    const marey::ArrayView left{.sizes = kLeft}, right{.sizes = kRight};
    const marey::ArrayView image{.sizes = kImage}, kernel{.sizes = kKernel};
    const marey::Value ones[] = {1, 1};
    const marey::Value zeros[] = {0, 0};
    marey::Session session(options);
    {
        marey::Operation op;
        op.begin("aten::mm", {}, {marey::Value(left), marey::Value(right)});
    }
    {
        marey::Operation op;
        op.begin("aten::conv2d", {},
                 {marey::Value(image), marey::Value(kernel), marey::Value(nullptr),
                  marey::Value(std::span<const marey::Value>(ones)),
                  marey::Value(std::span<const marey::Value>(zeros)),
                  marey::Value(std::span<const marey::Value>(ones)), marey::Value(1)});
    }
    return session.stop();
}

// F1
TEST(Flops, RequestingThemRecordsTheNeededValues) {
    const marey::Trace trace = record({.with_flops = true});
    ASSERT_EQ(trace.ranges().size(), 2u);
    EXPECT_EQ(marey::flops_of(trace, 0), 2 * 3 * 4 * 5);
    EXPECT_EQ(marey::flops_of(trace, 1), 2.0 * 2 * 8 * 8 * 9 * 3 * 8);
    EXPECT_EQ(marey::all_flops(trace).size(), 2u);
}

TEST(Flops, ShapesAloneAreEnoughWhereAFormulaTakesNothingElse) {
    const marey::Trace trace = record({.record_shapes = true});
    EXPECT_EQ(marey::flops_of(trace, 0), 120);
    EXPECT_EQ(marey::flops_of(trace, 1), std::nullopt);
}

TEST(Flops, AreUnknownWhenNothingWasRequested) {
    EXPECT_TRUE(marey::all_flops(record({})).empty());
}

TEST(MemoryUse, OfARecordedProgramNamesTheRangesThatHeldThePeak) {
    marey::Session session(marey::SessionOptions{.profile_memory = true});
    int a = 0, b = 0;
    {
        MAREY_RANGE("step");
        marey::report_allocation(&a, 100, 0, 0);
        {
            MAREY_RANGE("inner");
            marey::report_allocation(&b, 1000, 0, 0);
        }
        marey::report_allocation(&b, -1000, 0, 0);
    }
    const marey::Trace trace = session.stop();
    const marey::MemoryUse use = marey::memory_use(trace);
    ASSERT_EQ(use.devices.size(), 1u);
    EXPECT_EQ(use.devices[0].peak_bytes, 1100);
    EXPECT_EQ(use.devices[0].kept_bytes, 100);
    ASSERT_EQ(use.devices[0].holders.size(), 2u);
    EXPECT_EQ(use.devices[0].holders[0].path, (std::vector<std::string>{"step", "inner"}));
    EXPECT_EQ(marey::memory_series(trace).at(0).points.size(), 3u);
}

}  // namespace
