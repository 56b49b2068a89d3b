// launches.cu: overhead of recording a program that launches kernels as fast as it can. Usage: launches MODE [COUNT]
//   off     nothing records
//   bare    a CUPTI client that requests kernels and runtime calls and discards the records
//   least   the same with kernels only: the minimum for a profiler that gets its kernels from CUPTI
//   marey   a Marey session with the device "cuda"; also measures stop, table, export and log bytes
// Prints one line of JSON: nanoseconds per launch before and while recording, and the other measurements.
#include <cuda_runtime.h>
#include <cupti.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <marey/all.h>

namespace {

__global__ void empty() {}

constexpr int kRound = 1000;

double now_ns() {
    return static_cast<double>(std::chrono::steady_clock::now().time_since_epoch().count());
}

double launch(int count) {
    const double start = now_ns();
    for (int i = 0; i < count; ++i) empty<<<1, 1>>>();
    const double end = now_ns();
    cudaDeviceSynchronize();
    return (end - start) / count;
}

// The lower quartile of rounds, each shorter than the GPU's queue: in a virtual machine slower rounds include other
// load.
double usual_launch(int count) {
    std::vector<double> rounds;
    for (int done = 0; done < count; done += kRound) rounds.push_back(launch(kRound));
    std::sort(rounds.begin(), rounds.end());
    return rounds[rounds.size() / 4];
}

// The largest contradiction between GPU and host times: a kernel that starts before its launch, or ends after the
// return of the call that waited for it. 0 if there is none.
double worst_contradiction_ns(const marey::Trace& trace) {
    const marey::RangeColumns ranges = trace.ranges();
    std::int64_t worst = 0;
    std::vector<std::pair<std::int64_t, std::int64_t>> launched;  // start of the launch, end of the kernel
    for (const marey::LinkInfo& link : trace.links()) {
        worst = std::max(worst, ranges.start_ns[link.from] - ranges.start_ns[link.to]);
        launched.emplace_back(ranges.start_ns[link.from], ranges.start_ns[link.to] + ranges.duration_ns[link.to]);
    }
    std::sort(launched.begin(), launched.end());
    for (marey::Row row = 0; row < ranges.size(); ++row) {
        if (trace.range_name(row) != "cudaDeviceSynchronize") continue;
        const auto after = std::lower_bound(launched.begin(), launched.end(),
                                             std::pair(ranges.start_ns[row], std::int64_t{0}));
        if (after == launched.begin()) continue;
        worst = std::max(worst, (after - 1)->second - (ranges.start_ns[row] + ranges.duration_ns[row]));
    }
    return double(worst);
}

void CUPTIAPI request(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most) {
    *bytes = std::size_t{1} << 20;
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(64, *bytes));
    *most = 0;
}

void CUPTIAPI complete(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t) {
    std::free(buffer);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string mode = argc > 1 ? argv[1] : "off";
    const int count = argc > 2 ? std::atoi(argv[2]) : 100'000;
    cudaFree(nullptr);
    launch(5000);
    const double before = usual_launch(count);
    if (mode == "bare" || mode == "least") {
        cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
        cuptiActivityRegisterCallbacks(request, complete);
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
        if (mode == "bare") cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME);
        launch(2000);
        const double during = usual_launch(count);
        cuptiActivityFlushAll(0);
        std::printf("{\"mode\": \"%s\", \"before\": %.1f, \"during\": %.1f}\n", mode.c_str(), before, during);
        return 0;
    }
    if (mode == "marey") {
        marey::Session session({.devices = {"cuda"}});
        launch(2000);
        const double during = usual_launch(count);
        const double stop_start = now_ns();
        const marey::Trace trace = session.stop();
        const double stopped = now_ns();
        const std::string table = marey::averages_table(marey::key_averages(trace));
        const double tabled = now_ns();
        // Replacing a file would be slower: ext4 writes the new file to disk before it removes the old one.
        std::remove("launches.json");
        const double export_start = now_ns();
        marey::write_chrome_json(trace, "launches.json");
        const double exported = now_ns();
        std::size_t kernels = 0;
        for (marey::Row row = 0; row < trace.ranges().size(); ++row)
            kernels += trace.range_name(row) == "(anonymous namespace)::empty()" ? 1 : 0;
        std::printf(
            "{\"mode\": \"marey\", \"before\": %.1f, \"during\": %.1f, \"launched\": %d, \"kernels\": %zu, \"links\": %zu, "
            "\"contradiction_ns\": %.0f, \"stop_us\": %.4f, \"table_us\": %.4f, \"export_us\": %.4f, \"bytes\": %.1f}\n",
            before, during, 2000 + (count + kRound - 1) / kRound * kRound, kernels, trace.links().size(), worst_contradiction_ns(trace), (stopped - stop_start) / 1e3 / double(kernels),
            (tabled - stopped) / 1e3 / double(kernels), (exported - export_start) / 1e3 / double(kernels),
            double(trace.window().log_bytes) / double(kernels));
        for (const marey::MetadataInfo& fact : trace.metadata())
            std::fprintf(stderr, "%s: %s\n", fact.key.c_str(), fact.json.c_str());
        for (const marey::ProblemInfo& problem : trace.problems())
            std::fprintf(stderr, "problem %s (%llu): %s\n", problem.code.c_str(),
                         static_cast<unsigned long long>(problem.count), problem.text.c_str());
        return 0;
    }
    const double during = usual_launch(count);
    std::printf("{\"mode\": \"off\", \"before\": %.1f, \"during\": %.1f}\n", before, during);
}
