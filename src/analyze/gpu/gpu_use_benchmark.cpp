// gpu_use_benchmark.cpp: the cost of the GPU report for a million launched kernels, in CPU time per kernel on
// one core. bench_gpu_use [MILLIONS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include <marey/gpu_use.h>

#include "analyze/gpu/gpu_fixture.h"

namespace marey {
namespace {

/// Each kernel is launched in an operator in a Python function, on one of 4 streams.
Trace make_trace(std::int64_t count) {
    testing::GpuFixture gpu;
    gpu.properties();
    constexpr std::int64_t kRound = 20'000;
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t start = i * kRound;
        gpu.python(start, 19'000, "train.py(" + std::to_string(i % 40) + "): part");
        gpu.range(start + 1000, 15'000, "aten::op_" + std::to_string(i % 100));
        const auto call = gpu.call(start + 5000, 4000);
        const auto kernel = gpu.device(0, 7 + i % 4)
                                .kernel(start + 11'000 + i * 7 % 500, 5000 + i * 31 % 11'000,
                                        "kernel_" + std::to_string(i % 300), call);
        gpu.shape(kernel, {1 + i % 50, 1, 1}, {128, 1, 1});
    }
    return gpu.trace();
}

double cpu_ns() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

}  // namespace
}  // namespace marey

int main(int argc, char** argv) {
    const std::int64_t count = (argc > 1 ? std::max(std::atoi(argv[1]), 1) : 1) * std::int64_t{1'000'000};
    const marey::Trace trace = marey::make_trace(count);
    std::vector<double> runs;
    for (int i = 0; i < 7; ++i) {
        const double start = marey::cpu_ns();
        const marey::GpuUse use = marey::gpu_use(trace);
        runs.push_back((marey::cpu_ns() - start) / static_cast<double>(count));
        if (use.devices.size() != 1 || use.devices[0].queue.count != static_cast<std::uint64_t>(count))
            return 1;
    }
    std::sort(runs.begin(), runs.end());
    std::printf("{\"name\": \"gpu_use\", \"value\": %.1f, \"unit\": \"ns\", \"target\": \"<= 700\"}\n",
                runs[runs.size() / 2]);
}
