// gpu_use_test.cpp: the numbers of the GPU report for hand-made traces.
#include <marey/gpu_use.h>

#include <gtest/gtest.h>

#include "analyze/gpu/gpu_fixture.h"

namespace marey {
namespace {

using testing::GpuFixture;

GpuDevice only_device(const Trace& trace, const GpuUseOptions& options = {}) {
    GpuUse use = gpu_use(trace, options);
    EXPECT_EQ(use.devices.size(), 1u);
    return use.devices.empty() ? GpuDevice() : std::move(use.devices[0]);
}

struct Host {
    std::string name, function;
    std::int64_t time_ns;
    friend bool operator==(const Host&, const Host&) = default;
};
std::ostream& operator<<(std::ostream& out, const Host& host) {
    return out << host.name << " in " << host.function << ": " << host.time_ns;
}
std::vector<Host> hosts(const std::vector<GpuHostWork>& rows) {
    std::vector<Host> all;
    for (const GpuHostWork& row : rows) all.push_back({row.name, row.function, row.time_ns});
    return all;
}

TEST(GpuUse, IsEmptyWithoutDeviceWork) {
    GpuFixture gpu;
    gpu.range(0, 100, "compute");
    gpu.call(10, 5);
    const GpuUse use = gpu_use(gpu.trace());
    EXPECT_TRUE(use.devices.empty());
    EXPECT_TRUE(use.calls.empty());
    EXPECT_TRUE(use.findings.empty());
    EXPECT_TRUE(gpu_use(Trace()).devices.empty());
}

TEST(GpuUse, BusyIsWhenAnyWorkRanAndGapsAreTheRestOfTheWindow) {
    GpuFixture gpu;
    gpu.window(0, 1000);
    gpu.kernel(100, 100, "a");
    gpu.kernel(200, 50, "b");  // directly after: no gap
    gpu.device(0, 20).copy(150, 150, 30);
    gpu.work(700, 100, "Memset (Device)", "gpu_memset");
    gpu.work(800, 50, "CUDA graph", "cuda_graph");
    const GpuDevice device = only_device(gpu.trace());
    EXPECT_EQ(device.times.busy_ns, 200 + 150);
    EXPECT_EQ(device.times.idle_ns, 650);
    EXPECT_DOUBLE_EQ(device.times.utilisation(), 0.35);
    EXPECT_EQ(device.first_ns, 100);
    EXPECT_EQ(device.last_ns, 850);
    EXPECT_EQ(device.times.gaps.count, 3u);
    EXPECT_EQ(device.times.gaps.total_ns, 650);
    EXPECT_EQ(device.times.gaps.max_ns, 400);
    EXPECT_EQ(device.times.gaps.median_ns, 150);
    EXPECT_EQ(device.times.kernels.count, 2u);
    EXPECT_EQ(device.times.kernels.total_ns, 150);
    EXPECT_EQ(device.times.copies.total_ns, 150);
    EXPECT_EQ(device.times.sets.count, 1u);
    EXPECT_EQ(device.times.others.total_ns, 50);
    EXPECT_EQ(device.times.count(), 5u);

    ASSERT_EQ(device.streams.size(), 2u);
    EXPECT_EQ(device.streams[0].stream, 7);
    EXPECT_EQ(device.streams[0].name, "stream 7");
    EXPECT_EQ(device.streams[0].times.busy_ns, 150);
    EXPECT_EQ(device.streams[0].times.gaps.count, 2u);
    EXPECT_EQ(device.streams[0].times.gaps.max_ns, 750);
    EXPECT_EQ(device.streams[1].times.busy_ns, 300);
    EXPECT_EQ(device.streams[1].times.copies.count, 1u);
}

TEST(GpuUse, OverlapOfCopiesAndKernelsAndOfKernelsIsReported) {
    GpuFixture gpu;
    gpu.kernel(0, 100, "a");
    gpu.device(0, 8).kernel(50, 100, "b");
    gpu.device(0, 9).kernel(60, 10, "c");
    gpu.device(0, 10).copy(120, 60, 1);
    gpu.device(0, 11).copy(170, 30, 1);
    const GpuDevice device = only_device(gpu.trace());
    EXPECT_EQ(device.times.busy_ns, 200);
    EXPECT_EQ(device.kernel_busy_ns, 150);
    EXPECT_EQ(device.copy_busy_ns, 80);
    EXPECT_EQ(device.overlap_ns, 30);
    EXPECT_EQ(device.concurrent_ns, 50);
    EXPECT_EQ(device.most_concurrent, 3u);
}

TEST(GpuUse, AnnotationsWaitsEventsAndOverheadAreNotWork) {
    GpuFixture gpu;
    gpu.window(0, 1000);
    gpu.kernel(100, 100, "a");
    gpu.work(90, 300, "step", "gpu_user_annotation", GpuFixture::kNoCall, TrackKind::Device, Scope::User);
    gpu.work(400, 100, "Stream Sync", "cuda_sync", GpuFixture::kNoCall, TrackKind::Async);
    gpu.work(500, 100, "Stream Sync", "cuda_sync");
    gpu.work(600, 100, "cudaEventRecord", "cuda_event");
    gpu.work(700, 100, "Buffer Flush", "overhead");
    gpu.device(1).work(100, 10, "Event Sync", "cuda_sync", GpuFixture::kNoCall, TrackKind::Async);
    const GpuDevice device = only_device(gpu.trace());
    EXPECT_EQ(device.times.busy_ns, 100);
    EXPECT_EQ(device.times.count(), 1u);
    EXPECT_EQ(device.unlaunched, 1u);
}

TEST(GpuUse, WorkWithoutACategoryIsClassifiedByItsName) {
    GpuFixture gpu;
    gpu.work(0, 10, "Memcpy DtoH (Device -> Pageable)", "");
    gpu.work(10, 10, "Memset (Device)", "");
    gpu.work(20, 10, "add", "");
    const GpuDevice device = only_device(gpu.trace());
    EXPECT_EQ(device.times.copies.count, 1u);
    EXPECT_EQ(device.times.sets.count, 1u);
    EXPECT_EQ(device.times.kernels.count, 1u);
}

TEST(GpuUse, TimesAreClippedToTheWindow) {
    GpuFixture gpu;
    gpu.window(100, 200);
    gpu.kernel(50, 70, "a");
    gpu.kernel(180, 100, "b");
    const GpuDevice device = only_device(gpu.trace());
    EXPECT_EQ(device.times.busy_ns, 40);
    EXPECT_EQ(device.times.idle_ns, 60);
    EXPECT_EQ(device.times.kernels.total_ns, 40);
    EXPECT_EQ(device.first_ns, 100);
    EXPECT_EQ(device.last_ns, 200);
}

TEST(GpuUse, DevicesAreSeparateAndOneCanBeChosen) {
    GpuFixture gpu;
    gpu.device(1).kernel(0, 10, "a");
    gpu.device(0).kernel(10, 10, "b");
    gpu.device(1).kernel(20, 10, "a");
    const Trace trace = gpu.trace();
    const GpuUse use = gpu_use(trace);
    ASSERT_EQ(use.devices.size(), 2u);
    EXPECT_EQ(use.devices[0].device.index, 0);
    EXPECT_EQ(use.devices[1].times.kernels.count, 2u);
    EXPECT_EQ(only_device(trace, {.device = 1}).device.index, 1);
    EXPECT_TRUE(gpu_use(trace, {.device = 2}).devices.empty());
}

TEST(GpuUse, QueueTimeIsFromTheCallToItsFirstWork) {
    GpuFixture gpu;
    gpu.kernel(110, 10, "a", gpu.call(100, 5));  // 10 from its start, 5 from its end
    gpu.kernel(203, 10, "a", gpu.call(200, 5));  // began before the call returned
    const auto graph = gpu.call(300, 50, "cudaGraphLaunch");
    gpu.kernel(400, 10, "b", graph);
    gpu.kernel(360, 10, "a", graph);
    gpu.kernel(495, 10, "b", gpu.call(500, 1));  // before its call
    const GpuDevice device = only_device(gpu.trace());
    EXPECT_EQ(device.queue.count, 4u);
    EXPECT_EQ(device.queue.total_ns, 10 + 3 + 60 + 0);
    EXPECT_EQ(device.queue.median_ns, 3);
    EXPECT_EQ(device.queue.max_ns, 60);
    EXPECT_EQ(device.queue_after_call.total_ns, 5 + 0 + 10 + 0);
    EXPECT_EQ(device.launch_calls.total_ns, 5 + 5 + 50 + 1);
    EXPECT_EQ(device.early, 1u);
    ASSERT_EQ(device.kernels.size(), 2u);
    EXPECT_EQ(device.kernels[0].name, "a");
    EXPECT_EQ(device.kernels[0].queued, 3u);
    EXPECT_DOUBLE_EQ(device.kernels[0].mean_queue_ns, (10 + 3 + 60) / 3.0);
    EXPECT_EQ(device.kernels[1].queued, 1u);
}

TEST(GpuUse, AGapShowsWhatTheLaunchingThreadDid) {
    GpuFixture gpu;
    gpu.window(0, 1000);
    gpu.python(100, 800, "train.py(5): step");
    gpu.kernel(120, 80, "a", gpu.call(110, 5));
    gpu.range(150, 250, "load");
    gpu.range(300, 50, "decode");
    gpu.kernel(460, 100, "b", gpu.call(450, 5));
    gpu.kernel(600, 300, "c", gpu.call(500, 5));  // it was queued before the gap
    const Trace trace = gpu.trace();
    const GpuDevice device = only_device(trace);
    ASSERT_EQ(device.longest_gaps.size(), 4u);
    const GpuGap& longest = device.longest_gaps[0];
    EXPECT_EQ(longest.start_ns, 200);
    EXPECT_EQ(longest.duration_ns, 260);
    EXPECT_EQ(longest.place, GpuGapPlace::Between);
    EXPECT_TRUE(longest.is_starved);
    EXPECT_EQ(longest.before, "a");
    EXPECT_EQ(longest.after, "b");
    EXPECT_EQ(trace.string(trace.threads()[longest.thread].name), "main");
    EXPECT_EQ(hosts(longest.host), (std::vector<Host>{{"load", "train.py(5): step", 150},
                                                      {"train.py(5): step", "", 55},
                                                      {"decode", "train.py(5): step", 50},
                                                      {"cudaLaunchKernel", "train.py(5): step", 5}}));
    EXPECT_EQ(device.longest_gaps[1].place, GpuGapPlace::BeforeFirst);
    EXPECT_EQ(hosts(device.longest_gaps[1].host)[0], (Host{"", "", 100}));
    EXPECT_EQ(device.longest_gaps[2].place, GpuGapPlace::AfterLast);
    EXPECT_EQ(hosts(device.longest_gaps[2].host), (std::vector<Host>{{"", "", 100}}));
    EXPECT_EQ(device.longest_gaps[3].duration_ns, 40);
    EXPECT_FALSE(device.longest_gaps[3].is_starved);
    EXPECT_EQ(hosts(device.idle_host)[0], (Host{"load", "train.py(5): step", 150}));
    EXPECT_EQ(hosts(device.idle_host)[1], (Host{"train.py(5): step", "", 55 + 40}));
    EXPECT_EQ(device.starved_short_ns, 260);
    EXPECT_EQ(device.starved_short_gaps, 1u);
    EXPECT_EQ(device.starved_long_gaps, 0u);
}

TEST(GpuUse, AGapIsAttributedToTheThreadThatEndedIt) {
    GpuFixture gpu;
    gpu.range(0, 1000, "on main");
    gpu.kernel(10, 90, "a", gpu.call(0, 5));
    gpu.thread("other").range(0, 1000, "on other");
    gpu.kernel(300, 100, "b", gpu.call(290, 5));
    gpu.kernel(400, 10, "b", gpu.call(296, 4));
    gpu.kernel(
        500, 100,
        "c");  // no launch call: the thread of the work before counts, then the thread that launches most
    const Trace trace = gpu.trace();
    const GpuDevice device = only_device(trace, {.longest_gaps = 3});
    ASSERT_EQ(device.longest_gaps.size(), 3u);
    for (const GpuGap& gap : device.longest_gaps)
        EXPECT_EQ(trace.string(trace.threads()[gap.thread].name), "other") << gap.start_ns;
    EXPECT_EQ(hosts(device.longest_gaps[0].host), (std::vector<Host>{{"on other", "", 400}}));
    EXPECT_EQ(hosts(device.idle_host),
              (std::vector<Host>{{"on other", "", 191 + 90}, {"cudaLaunchKernel", "", 9}}));
}

TEST(GpuUse, KernelsHaveTheirTimesAndTheirMostFrequentShape) {
    GpuFixture gpu;
    gpu.properties();
    for (int i = 0; i < 3; ++i)
        gpu.shape(gpu.kernel(i * 100, 10 + i, "add"), {i == 0 ? 27 : 216, 1, 1}, {128, 1, 1}, 32, 16);
    gpu.kernel(300, 67, "mul");
    const GpuDevice device = only_device(gpu.trace());
    EXPECT_EQ(device.name, "A100");
    EXPECT_EQ(device.sm_count, 108);
    ASSERT_EQ(device.kernels.size(), 2u);
    EXPECT_EQ(device.kernels[0].name, "mul");
    EXPECT_EQ(device.kernels[0].shape, GpuShape());
    EXPECT_FALSE(device.kernels[0].occupancy.blocks_per_sm);
    const GpuKernel& add = device.kernels[1];
    EXPECT_EQ(add.times.count, 3u);
    EXPECT_EQ(add.times.total_ns, 33);
    EXPECT_EQ(add.times.min_ns, 10);
    EXPECT_EQ(add.times.max_ns, 12);
    EXPECT_DOUBLE_EQ(add.share, 0.33);
    EXPECT_EQ(add.queued, 0u);
    EXPECT_EQ(add.shapes, 2u);
    EXPECT_EQ(add.shape.grid[0], 216);
    EXPECT_EQ(add.shape.block[0], 128);
    EXPECT_EQ(add.shape.registers, 32);
    EXPECT_EQ(add.shape.shared_bytes, 16);
    EXPECT_DOUBLE_EQ(add.occupancy.blocks_per_sm.value_or(0), 2);
    EXPECT_DOUBLE_EQ(add.occupancy.warps_per_sm.value_or(0), 8);
    EXPECT_DOUBLE_EQ(add.occupancy.occupancy.value_or(0), 0.125);
    EXPECT_EQ(add.small_grid_ns, 10);
    EXPECT_EQ(add.low_occupancy_ns, 23);
    EXPECT_EQ(device.short_kernels.count, 4u);
    EXPECT_EQ(device.short_kernels.total_ns, 100);
}

TEST(GpuUse, LaunchersAreRangesAndPythonFunctions) {
    GpuFixture gpu;
    gpu.python(0, 500, "step");
    gpu.range(10, 100, "aten::add");
    gpu.kernel(60, 40, "a", gpu.call(50, 5));
    gpu.kernel(200, 30, "b", gpu.call(150, 5));
    gpu.range(600, 50, "aten::mul");
    gpu.kernel(700, 20, "a", gpu.call(610, 5));
    gpu.kernel(800, 10, "a", gpu.call(750, 5));  // outside any range
    gpu.kernel(900, 5, "a");
    const GpuDevice device = only_device(gpu.trace());
    ASSERT_EQ(device.ranges.size(), 4u);
    const std::pair<std::string, std::int64_t> expected[] = {
        {"aten::add", 40}, {"step", 30}, {"aten::mul", 20}, {"", 10}};
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(device.ranges[i].name, expected[i].first);
        EXPECT_EQ(device.ranges[i].time_ns, expected[i].second);
        EXPECT_EQ(device.ranges[i].count, 1u);
    }
    ASSERT_EQ(device.functions.size(), 1u);
    EXPECT_EQ(device.functions[0].name, "step");
    EXPECT_EQ(device.functions[0].time_ns, 70);
    EXPECT_EQ(device.functions[0].short_kernels, 2u);
    EXPECT_EQ(device.outside, 1u);
    EXPECT_EQ(device.unlaunched, 1u);
}

TEST(GpuUse, TheCallIsNotALauncherWithoutRanges) {
    GpuFixture gpu;
    gpu.kernel(60, 40, "a", gpu.call(50, 5));
    gpu.kernel(160, 20, "b", gpu.call(150, 5, "cudaGraphLaunch"));
    const GpuDevice device = only_device(gpu.trace());
    ASSERT_EQ(device.ranges.size(), 1u);
    EXPECT_EQ(device.ranges[0].name, "");
    EXPECT_EQ(device.ranges[0].count, 2u);
    EXPECT_EQ(device.ranges[0].time_ns, 60);
    EXPECT_EQ(device.outside, 2u);
}

TEST(GpuUse, AMarkedRangeIsTheLauncherEvenIfAFunctionInItLaunches) {
    GpuFixture gpu;
    gpu.range(0, 500, "forward");
    gpu.python(10, 400, "helper");
    gpu.kernel(60, 40, "a", gpu.call(50, 5));
    const GpuDevice device = only_device(gpu.trace());
    ASSERT_EQ(device.ranges.size(), 1u);
    EXPECT_EQ(device.ranges[0].name, "forward");
    ASSERT_EQ(device.functions.size(), 1u);
    EXPECT_EQ(device.functions[0].name, "helper");
}

TEST(GpuUse, TransfersHaveTheirBandwidthByDirection) {
    GpuFixture gpu;
    gpu.copy(0, 100, 1000);
    gpu.copy(100, 100, 3000);
    gpu.copy(200, 50, 500, "Memcpy HtoD (Pageable -> Device)");
    gpu.text(gpu.copy(300, 10, 40, "Memcpy DtoH"), "destination", "Pageable");
    gpu.copy(400, 4, 1, "MemcpyD2H");
    gpu.work(500, 1, "Memcpy PtoP", "gpu_memcpy");
    const auto set = gpu.work(600, 2, "Memset (Device)", "gpu_memset");
    gpu.integer(set, "bytes", 64);
    const GpuDevice device = only_device(gpu.trace());
    ASSERT_EQ(device.transfers.size(), 6u);
    EXPECT_EQ(device.transfers[0].direction, "HtoD");
    EXPECT_FALSE(device.transfers[0].is_pageable);
    EXPECT_EQ(device.transfers[0].count, 2u);
    EXPECT_EQ(device.transfers[0].bytes, 4000);
    EXPECT_DOUBLE_EQ(device.transfers[0].bytes_per_ns(), 20);
    EXPECT_TRUE(device.transfers[1].is_pageable);
    EXPECT_DOUBLE_EQ(device.transfers[1].bytes_per_ns(), 10);
    EXPECT_EQ(device.transfers[2].direction, "DtoH");
    EXPECT_TRUE(device.transfers[2].is_pageable);
    EXPECT_EQ(device.transfers[3].direction, "DtoH");
    EXPECT_FALSE(device.transfers[3].is_pageable);
    EXPECT_EQ(device.transfers[4].direction, "Memset");
    EXPECT_DOUBLE_EQ(device.transfers[4].bytes_per_ns(), 32);
    EXPECT_EQ(device.transfers[5].direction, "PtoP");
    EXPECT_EQ(device.transfers[5].sized, 0u);
    EXPECT_EQ(device.transfers[5].time_ns, 1);
}

TEST(GpuUse, WaitsAreSynchronizationsAndSynchronousCopies) {
    GpuFixture gpu;
    gpu.python(0, 1000, "step");
    gpu.kernel(20, 80, "a", gpu.call(10, 5));
    gpu.call(30, 80, "cudaDeviceSynchronize");
    gpu.call(31, 70, "cuCtxSynchronize");  // inside: the same wait
    gpu.call(150, 10, "cudaMemcpy");       // in the same gap
    gpu.call(170, 10, "cudaMemcpyAsync");
    gpu.kernel(200, 50, "b", gpu.call(190, 5));
    gpu.kernel(300, 50, "b", gpu.call(280, 5));
    const GpuUse use = gpu_use(gpu.trace());
    ASSERT_EQ(use.waits.size(), 1u);
    EXPECT_EQ(use.waits[0].count, 2u);
    EXPECT_EQ(use.waits[0].time_ns, 90);
    EXPECT_EQ(use.waits[0].idle_after_ns, 200 - 110);
    ASSERT_EQ(use.waits[0].callers.size(), 1u);
    EXPECT_EQ(use.waits[0].callers[0].name, "step");
    ASSERT_EQ(use.calls.size(), 5u);
    EXPECT_EQ(use.calls[0].name, "cudaDeviceSynchronize");
    EXPECT_EQ(use.calls[2].name, "cudaLaunchKernel");
    EXPECT_EQ(use.calls[2].times.count, 3u);
    EXPECT_EQ(use.calls[2].times.total_ns, 15);
}

}  // namespace
}  // namespace marey
