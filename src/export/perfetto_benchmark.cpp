// perfetto_benchmark.cpp: the cost of exporting 10 million plain ranges as a Perfetto trace: CPU time and
// bytes per range. bench_perfetto [FILE [MILLIONS]]; the file is removed.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include <marey/export.h>

#include "trace/trace_assembler.h"

namespace marey {
namespace {

/// Ranges of 128 sites on 4 threads, three levels deep, with durations of up to some microseconds.
Trace make_trace(std::size_t count) {
    constexpr std::uint32_t kThreads = 4;
    TraceAssembler assembler;
    const StringId file = assembler.string("src/render/scene.cpp");
    std::vector<std::uint32_t> sites;
    for (std::uint32_t i = 0; i < 128; ++i)
        sites.push_back(assembler.site(
            {assembler.string("render_layer_" + std::to_string(i)), file, 10 + i, Scope::User}));
    ProcessInfo process;
    process.pid = 4711;
    assembler.add_process(process);
    std::uint64_t state = 1;
    const auto random = [&](std::uint64_t limit) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state % limit;
    };
    for (std::uint32_t i = 0; i < kThreads; ++i) {
        ThreadInfo thread;
        thread.id = i + 1;
        thread.os_tid = 4711 + i;
        const std::uint32_t lane = assembler.add_lane({assembler.add_thread(thread)});
        std::int64_t now = 1'000'000'000'000;
        for (std::size_t made = 0; made < count / kThreads; made += 3) {
            const auto inner = static_cast<std::int64_t>(random(2000));
            assembler.add_range(lane, now, inner + 1000, sites[random(4)]);
            assembler.add_range(lane, now + 100, inner + 500, sites[4 + random(28)]);
            assembler.add_range(lane, now + 200, inner, sites[32 + random(96)]);
            now += inner + 1050;
        }
    }
    return assembler.finish();
}

double cpu_ns() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

int run(int argc, char** argv) {
    const std::string path = argc > 1 ? argv[1] : MAREY_BENCH_DIR "/bench_perfetto.pftrace";
    const std::size_t millions = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 10;
    const Trace trace = make_trace(millions * 1'000'000);
    const auto count = static_cast<double>(trace.ranges().size());
    constexpr int kRepetitions = 7;
    std::vector<double> runs;
    double bytes = 0;
    for (int i = 0; i <= kRepetitions; ++i) {
        const double start = cpu_ns();
        write_perfetto(trace, path);
        if (i > 0)
            runs.push_back((cpu_ns() - start) / count);  // the first run pays for first-touch page faults
        bytes = static_cast<double>(std::filesystem::file_size(path)) / count;
        std::filesystem::remove(path);
    }
    std::sort(runs.begin(), runs.end());
    std::printf(
        "{\"name\": \"export_perfetto\", \"value\": %.2f, \"unit\": \"ns\", \"target\": \"<= 100 ns\"}\n",
        runs[runs.size() / 2]);
    std::printf(
        "{\"name\": \"perfetto_bytes\", \"value\": %.2f, \"unit\": \"bytes\", \"target\": \"<= 32 bytes\"}\n",
        bytes);
    return 0;
}

}  // namespace
}  // namespace marey

int main(int argc, char** argv) {
    return marey::run(argc, argv);
}
