// perfetto_benchmark.cpp: the cost of exporting 10 million plain ranges as a Perfetto trace: CPU time and
// bytes per range. bench_perfetto [FILE [MILLIONS]]; the file is removed.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <marey/export.h>

#include "formats/plain_ranges_fixture.h"

namespace marey {
namespace {

int run(int argc, char** argv) {
    const std::string path = argc > 1 ? argv[1] : MAREY_BENCH_DIR "/bench_perfetto.pftrace";
    const std::size_t millions = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 10;
    const Trace trace = testing::plain_ranges(millions * 1'000'000);
    const auto count = static_cast<double>(trace.ranges().size());
    constexpr int kRepetitions = 7;
    std::vector<double> runs;
    double bytes = 0;
    for (int i = 0; i <= kRepetitions; ++i) {
        const double start = testing::cpu_ns();
        export_trace(trace, path, "perfetto");
        if (i > 0)
            runs.push_back((testing::cpu_ns() - start) /
                           count);  // the first run pays for first-touch page faults
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
