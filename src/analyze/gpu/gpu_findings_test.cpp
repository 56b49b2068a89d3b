// gpu_findings_test.cpp: each finding is reported at its threshold and not just below it.
#include <gtest/gtest.h>

#include <set>

#include <marey/gpu_use.h>

#include "analyze/gpu/gpu_fixture.h"

namespace marey {
namespace {

using testing::GpuFixture;

constexpr std::int64_t kUs = 1000;

std::set<std::string> rules(const GpuUse& use) {
    std::set<std::string> names;
    for (const GpuFinding& finding : use.findings) names.insert(finding.rule);
    return names;
}
GpuFinding finding(const GpuUse& use, const std::string& rule) {
    for (const GpuFinding& one : use.findings) {
        if (one.rule == rule) return one;
    }
    ADD_FAILURE() << "no finding " << rule;
    return {};
}
const GpuEvidence* evidence(const GpuFinding& of, const std::string& what) {
    for (const GpuEvidence& row : of.evidence) {
        if (row.what == what) return &row;
    }
    ADD_FAILURE() << "no evidence '" << what << "' of " << of.rule;
    return nullptr;
}

/// `count` iterations of 100 us: a launch after `idle` us, then the device works for the rest.
void add_iterations(GpuFixture& gpu, int count, std::int64_t idle_us, const char* kernel = "k") {
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t start = (i * 100 + idle_us) * kUs;
        gpu.range(start - 4 * kUs, 3 * kUs, "aten::add");
        gpu.kernel(start, (100 - idle_us) * kUs, kernel, gpu.call(start - 3 * kUs, kUs));
    }
}

TEST(GpuFindings, ABusyDeviceHasNoFindings) {
    GpuFixture gpu;
    add_iterations(gpu, 300, 5);
    EXPECT_EQ(rules(gpu_use(gpu.trace())), std::set<std::string>());
}

TEST(GpuFindings, ManyShortGapsWithNothingQueuedAreLaunchBound) {
    GpuFixture gpu;
    add_iterations(gpu, 101, 30);
    const GpuUse use = gpu_use(gpu.trace());
    EXPECT_EQ(rules(use), std::set<std::string>{"launch_bound"});
    const GpuFinding found = finding(use, "launch_bound");
    EXPECT_EQ(found.device, (Device{DeviceType::Cuda, 0}));
    EXPECT_NEAR(found.share, 0.3, 0.01);
    EXPECT_EQ(found.text.substr(0, 4), "30% ");
    const GpuEvidence* const gaps = evidence(found, "gaps under 100 us with nothing queued");
    ASSERT_NE(gaps, nullptr);
    EXPECT_EQ(gaps->count, 100u);
    EXPECT_EQ(gaps->time_ns, 100 * 30 * kUs);
    const GpuEvidence* const call = evidence(found, "launch call (median)");
    ASSERT_NE(call, nullptr);
    EXPECT_EQ(call->time_ns, kUs);
    const GpuEvidence* const host = evidence(found, "thread activity during the gaps: outside any range");
    ASSERT_NE(host, nullptr);
    EXPECT_EQ(host->time_ns, 100 * 27 * kUs);
}

TEST(GpuFindings, ItIsNotLaunchBoundBelowItsThresholds) {
    GpuFixture less_idle;
    add_iterations(less_idle, 200, 19);
    EXPECT_EQ(rules(gpu_use(less_idle.trace())), std::set<std::string>());
    GpuFixture few_gaps;
    add_iterations(few_gaps, 100, 30);
    EXPECT_EQ(rules(gpu_use(few_gaps.trace())), std::set<std::string>());
    GpuFixture queued;  // the device is just as idle, but work was queued
    for (std::int64_t i = 0; i < 200; ++i)
        queued.kernel((1000 + i * 100) * kUs, 70 * kUs, "k", queued.call(i * 3 * kUs, kUs));
    EXPECT_EQ(rules(gpu_use(queued.trace())), std::set<std::string>());
}

TEST(GpuFindings, LongGapsWithNothingQueuedAreHostBound) {
    const auto make = [](std::int64_t load_us) {
        GpuFixture gpu;
        for (std::int64_t i = 0; i < 3; ++i) {
            const std::int64_t start = i * 10'000 * kUs;
            gpu.python(start, load_us * kUs, "data.py(3): load");
            gpu.kernel(start + (load_us + 10) * kUs, (9990 - load_us) * kUs, "k",
                       gpu.call(start + load_us * kUs, kUs));
        }
        return gpu_use(gpu.trace());
    };
    EXPECT_EQ(rules(make(2000)), std::set<std::string>());
    const GpuUse use = make(4000);
    EXPECT_EQ(rules(use), std::set<std::string>{"host_bound"});
    const GpuFinding found = finding(use, "host_bound");
    const GpuEvidence* const host = evidence(found, "thread activity during the gaps: data.py(3): load");
    ASSERT_NE(host, nullptr);
    EXPECT_EQ(host->time_ns, 2 * 4000 * kUs);
}

TEST(GpuFindings, ManyShortKernelsAreReported) {
    const auto make = [](int count, int short_ones) {
        GpuFixture gpu;
        for (std::int64_t i = 0; i < count; ++i) {
            gpu.range(i * 100 * kUs, 5 * kUs, i % 2 == 0 ? "aten::add" : "aten::mul");
            gpu.kernel(i * 100 * kUs + 2 * kUs, i < short_ones ? 9 * kUs : 98 * kUs, "k",
                       gpu.call(i * 100 * kUs, kUs));
        }
        return gpu_use(gpu.trace());
    };
    EXPECT_FALSE(rules(make(100, 49)).contains("short_kernels"));
    EXPECT_FALSE(rules(make(99, 99)).contains("short_kernels"));
    const GpuFinding found = finding(make(100, 51), "short_kernels");
    EXPECT_DOUBLE_EQ(found.share, 0.51);
    ASSERT_EQ(found.evidence.size(), 3u);
    EXPECT_EQ(found.evidence[0].count, 51u);
    EXPECT_EQ(found.evidence[0].time_ns, 51 * 9 * kUs);
    EXPECT_EQ(found.evidence[1].what, "launched by aten::add");
    EXPECT_EQ(found.evidence[1].count, 26u);
    EXPECT_EQ(found.evidence[2].count, 25u);
}

TEST(GpuFindings, ShortKernelsOfAProgramWithoutRangesAreLaunchedOutsideAnyRange) {
    GpuFixture gpu;
    for (std::int64_t i = 0; i < 100; ++i)
        gpu.kernel(i * 100 * kUs + 2 * kUs, 9 * kUs, "k", gpu.call(i * 100 * kUs, kUs));
    const GpuFinding found = finding(gpu_use(gpu.trace()), "short_kernels");
    ASSERT_EQ(found.evidence.size(), 2u);
    EXPECT_EQ(found.evidence[1].what, "launched outside any range");
    EXPECT_EQ(found.evidence[1].count, 100u);
}

TEST(GpuFindings, CopiesThatDoNotOverlapKernelsAreReported) {
    const auto make = [](std::int64_t copy_us, std::int64_t copy_start_us) {
        GpuFixture gpu;
        gpu.kernel(0, 1000 * kUs, "k");
        gpu.device(0, 8).copy(copy_start_us * kUs, copy_us * kUs, 1 << 20);
        return gpu_use(gpu.trace());
    };
    EXPECT_EQ(rules(make(500, 0)), std::set<std::string>());
    EXPECT_EQ(rules(make(100, 1000)), std::set<std::string>());  // 1 of 11
    const GpuUse use = make(150, 980);
    EXPECT_EQ(rules(use), std::set<std::string>{"copies_not_overlapped"});
    const GpuFinding found = finding(use, "copies_not_overlapped");
    EXPECT_DOUBLE_EQ(found.share, 130.0 / 1130);
    EXPECT_EQ(found.evidence[0].time_ns, 150 * kUs);
    EXPECT_EQ(found.evidence[1].time_ns, 20 * kUs);
    EXPECT_EQ(found.evidence[2].what, "HtoD");
}

TEST(GpuFindings, CopiesOfPageableMemoryAreReported) {
    const auto make = [](std::int64_t copy_us, const char* name) {
        GpuFixture gpu;
        gpu.kernel(0, 1000 * kUs, "k");
        gpu.device(0, 8).copy(0, copy_us * kUs, 1 << 20, name);
        return gpu_use(gpu.trace());
    };
    EXPECT_EQ(rules(make(9, "Memcpy HtoD (Pageable -> Device)")), std::set<std::string>());
    EXPECT_EQ(rules(make(90, "Memcpy HtoD (Pinned -> Device)")), std::set<std::string>());
    const GpuUse use = make(10, "Memcpy HtoD (Pageable -> Device)");
    EXPECT_EQ(rules(use), std::set<std::string>{"pageable_copies"});
    EXPECT_EQ(finding(use, "pageable_copies").evidence[0].what, "HtoD, pageable");
}

TEST(GpuFindings, SmallGridsAndLowOccupancyAreReported) {
    const auto make = [](std::int64_t blocks, std::int64_t registers, std::int64_t poor_us) {
        GpuFixture gpu;
        gpu.properties();
        gpu.shape(gpu.kernel(0, (1000 - poor_us) * kUs, "good"), {1080, 1, 1}, {1024, 1, 1});
        gpu.shape(gpu.kernel(1000 * kUs, poor_us * kUs, "poor"), {blocks, 1, 1}, {128, 1, 1}, registers);
        return gpu_use(gpu.trace());
    };
    EXPECT_EQ(rules(make(107, 32, 200)), std::set<std::string>{"small_grids"});
    EXPECT_EQ(rules(make(107, 32, 199)), std::set<std::string>());
    EXPECT_EQ(rules(make(108, 32, 200)), std::set<std::string>{"low_occupancy"});
    EXPECT_EQ(rules(make(1080, 250, 200)), std::set<std::string>{"low_occupancy"});
    EXPECT_EQ(rules(make(1080, 250, 199)), std::set<std::string>());
    EXPECT_EQ(rules(make(1080, 32, 900)), std::set<std::string>());
    const GpuFinding found = finding(make(107, 32, 300), "small_grids");
    EXPECT_NE(found.text.find("(108)"), std::string::npos);
    EXPECT_EQ(found.evidence[0].what, "poor");
    EXPECT_EQ(found.evidence[0].time_ns, 300 * kUs);
}

TEST(GpuFindings, WaitsThatLeaveTheDeviceIdleAreReported) {
    const auto make = [](int count, std::int64_t wait_us, std::int64_t pause_us) {
        GpuFixture gpu;
        std::int64_t now = 0;
        for (int i = 0; i < count; ++i) {
            gpu.python(now, (wait_us + pause_us + 2) * kUs, "train.py(9): item");
            gpu.kernel(now + 2 * kUs, (wait_us + 1) * kUs, "k", gpu.call(now, kUs));
            gpu.call(now + 3 * kUs, wait_us * kUs, "cudaStreamSynchronize");
            now += (3 + wait_us + pause_us) * kUs;
        }
        return gpu_use(gpu.window(0, now).trace());
    };
    EXPECT_FALSE(rules(make(9, 60, 10)).contains("waits"));
    EXPECT_FALSE(rules(make(100, 10, 100)).contains("waits"));   // short waits
    EXPECT_FALSE(rules(make(100, 1000, 10)).contains("waits"));  // the device is idle only briefly
    const GpuFinding found = finding(make(10, 60, 10), "waits");
    EXPECT_NEAR(found.share, 600 / 730.0, 1e-9);
    EXPECT_NE(found.thread, kNoRow);
    ASSERT_EQ(found.evidence.size(), 3u);
    EXPECT_EQ(found.evidence[0].count, 10u);
    EXPECT_EQ(found.evidence[0].time_ns, 600 * kUs);
    EXPECT_EQ(found.evidence[1].time_ns, 9 * 12 * kUs + 10 * kUs);
    EXPECT_EQ(found.evidence[2].what, "waited in train.py(9): item");
}

}  // namespace
}  // namespace marey
