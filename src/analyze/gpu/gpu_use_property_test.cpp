// gpu_use_property_test.cpp: sums that hold for every trace, compared with slower algorithms.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include <marey/gpu_use.h>

#include "analyze/gpu/gpu_work.h"
#include "trace/random_trace_fixture.h"

namespace marey {
namespace {

/// Marks every nanosecond in which a piece selected by `is_chosen` ran.
template <typename Choose>
std::vector<int> running(const Trace& trace, const std::vector<GpuPiece>& pieces, const Choose& is_chosen) {
    std::vector<int> counts(static_cast<std::size_t>(trace.window().end_ns - trace.window().start_ns));
    for (const GpuPiece& piece : pieces) {
        if (!is_chosen(piece)) continue;
        for (std::int64_t at = piece.start_ns; at < piece.end_ns; ++at)
            ++counts[static_cast<std::size_t>(at - trace.window().start_ns)];
    }
    return counts;
}
std::int64_t at_least(const std::vector<int>& counts, int least) {
    return std::count_if(counts.begin(), counts.end(), [&](int count) { return count >= least; });
}
std::uint64_t gaps_of(const std::vector<int>& counts) {
    std::uint64_t gaps = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) gaps += counts[i] == 0 && (i == 0 || counts[i - 1] > 0);
    return gaps;
}

std::int64_t total(const std::vector<GpuHostWork>& rows) {
    std::int64_t sum = 0;
    for (const GpuHostWork& row : rows) sum += row.time_ns;
    return sum;
}

void check_times(const Trace& trace, const GpuTimes& times, const std::vector<int>& counts) {
    EXPECT_EQ(times.busy_ns, at_least(counts, 1));
    EXPECT_EQ(times.busy_ns + times.idle_ns, trace.window().end_ns - trace.window().start_ns);
    EXPECT_EQ(times.gaps.count, gaps_of(counts));
    EXPECT_EQ(times.gaps.total_ns, times.idle_ns);
}

void check_queue(const Trace& trace, const GpuDevice& device, const std::vector<GpuPiece>& pieces) {
    std::map<Row, Row> call_of;
    for (const LinkInfo& link : trace.links()) {
        if (link.kind == LinkKind::Launch) call_of.try_emplace(link.to, link.from);
    }
    const RangeColumns ranges = trace.ranges();
    std::map<Row, std::int64_t> earliest;  // by call
    std::uint64_t unlaunched = 0;
    for (const GpuPiece& piece : pieces) {
        const auto found = call_of.find(piece.range);
        EXPECT_EQ(piece.call, found == call_of.end() ? kNoRow : found->second);
        unlaunched += piece.call == kNoRow;
        if (piece.is_first) earliest.emplace(piece.call, ranges.start_ns[piece.range]);
    }
    std::int64_t queue_ns = 0;
    for (const auto& [call, start] : earliest)
        queue_ns += std::max<std::int64_t>(start - ranges.start_ns[call], 0);
    EXPECT_EQ(device.queue.count, earliest.size());
    EXPECT_EQ(device.queue.total_ns, queue_ns);
    EXPECT_EQ(device.unlaunched, unlaunched);
    EXPECT_LE(device.queue_after_call.total_ns, queue_ns);
}

void check(const Trace& trace) {
    const GpuUse use = gpu_use(trace, {.longest_gaps = 1000});
    const GpuWork work = collect_gpu_work(trace, {});
    ASSERT_EQ(use.devices.size(), work.devices.size());
    for (std::size_t i = 0; i < work.devices.size(); ++i) {
        const GpuDevice& device = use.devices[i];
        const std::vector<GpuPiece>& pieces = work.devices[i].pieces;
        const auto all = running(trace, pieces, [](const GpuPiece&) { return true; });
        const auto kernels =
            running(trace, pieces, [](const GpuPiece& piece) { return piece.kind == GpuWorkKind::Kernel; });
        const auto copies =
            running(trace, pieces, [](const GpuPiece& piece) { return piece.kind == GpuWorkKind::Copy; });
        check_times(trace, device.times, all);
        EXPECT_EQ(device.times.count(), pieces.size());
        EXPECT_EQ(device.kernel_busy_ns, at_least(kernels, 1));
        EXPECT_EQ(device.concurrent_ns, at_least(kernels, 2));
        EXPECT_EQ(device.most_concurrent, kernels.empty() ? 0
                                                          : static_cast<std::uint64_t>(*std::max_element(
                                                                kernels.begin(), kernels.end())));
        EXPECT_EQ(device.copy_busy_ns, at_least(copies, 1));
        std::int64_t both = 0;
        for (std::size_t at = 0; at < all.size(); ++at) both += kernels[at] > 0 && copies[at] > 0;
        EXPECT_EQ(device.overlap_ns, both);
        for (std::uint32_t s = 0; s < device.streams.size(); ++s)
            check_times(trace, device.streams[s].times,
                        running(trace, pieces, [&](const GpuPiece& piece) { return piece.stream == s; }));

        ASSERT_EQ(device.longest_gaps.size(), device.times.gaps.count);
        std::int64_t between = 0;
        for (const GpuGap& gap : device.longest_gaps) {
            EXPECT_EQ(total(gap.host), gap.thread == kNoRow ? 0 : gap.duration_ns);
            if (gap.place == GpuGapPlace::Between) between += total(gap.host);
        }
        EXPECT_EQ(total(device.idle_host), between);
        EXPECT_LE(device.starved_short_ns + device.starved_long_ns, device.times.idle_ns);
        std::uint64_t count = 0;
        for (const GpuKernel& kernel : device.kernels) count += kernel.times.count;
        EXPECT_EQ(count, device.times.kernels.count);
        count = 0;
        for (const GpuLauncher& row : device.ranges) count += row.count;
        EXPECT_EQ(count + device.unlaunched, pieces.size());
        check_queue(trace, device, pieces);
    }
}

TEST(GpuUseProperties, HoldForTracesOfEverything) {
    for (unsigned seed = 0; seed < 300 && !::testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE(seed);
        check(testing::random_trace(seed));
    }
}

TEST(GpuUseProperties, HoldForTrainingWithLaunches) {
    for (unsigned seed = 0; seed < 30 && !::testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE(seed);
        check(testing::random_training_trace(seed, 100));
    }
}

TEST(GpuUseProperties, WildTracesAreRead) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        const GpuUse use = gpu_use(testing::random_trace(seed, {.max_ranges = 200, .is_arbitrary = true}));
        for (const GpuDevice& device : use.devices) EXPECT_GE(device.times.idle_ns, 0) << seed;
    }
}

}  // namespace
}  // namespace marey
