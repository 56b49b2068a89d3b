// profile_benchmark.cpp: the cost of exporting plain ranges as pprof, Firefox Profiler and OTLP files: CPU
// time per range, beside writing the same bytes. bench_profile [FOLDER [MILLIONS]]; the files are removed.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <marey/export.h>

#include "base/mapped_file.h"
#include "base/output_file.h"
#include "formats/plain_ranges_fixture.h"

namespace marey {
namespace {

struct Measured {
    const char* name;
    const char* file;
    const char* target;
};
constexpr Measured kMeasured[] = {
    {"export_pprof", "bench.pprof", "<= 40 ns"},
    {"export_firefox", "bench.profile.json", "<= 60 ns"},
    {"export_otlp", "bench.otlp.json", "<= 150 ns"},
};

double median(std::vector<double> runs) {
    std::sort(runs.begin(), runs.end());
    return runs[runs.size() / 2];
}

int run(int argc, char** argv) {
    const std::filesystem::path folder = argc > 1 ? argv[1] : MAREY_BENCH_DIR;
    const std::size_t millions = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 5;
    const Trace trace = testing::plain_ranges(millions * 1'000'000);
    const auto count = static_cast<double>(trace.ranges().size());
    constexpr int kRepetitions = 5;
    for (const Measured& measured : kMeasured) {
        const std::string path = (folder / measured.file).string(), copy = path + ".copy";
        std::vector<double> writing, floor;
        double bytes = 0;
        for (int i = 0; i <= kRepetitions; ++i) {  // the first run pays for first-touch page faults
            double start = testing::cpu_ns();
            export_trace(trace, path);
            const double export_ns = (testing::cpu_ns() - start) / count;
            const auto file = MappedFile::open(path);
            const auto content = file->bytes();
            bytes = static_cast<double>(content.size()) / count;
            start = testing::cpu_ns();
            OutputFile out(copy);
            out.write({reinterpret_cast<const char*>(content.data()), content.size()});
            out.commit();
            const double copy_ns = (testing::cpu_ns() - start) / count;
            if (i > 0) {
                writing.push_back(export_ns);
                floor.push_back(copy_ns);
            }
            std::filesystem::remove(copy);
            std::filesystem::remove(path);
        }
        const double value = median(writing), against = median(floor);
        std::printf(
            "{\"name\": \"%s\", \"value\": %.2f, \"unit\": \"ns\", \"against\": \"writing its %.1f bytes per "
            "range\", "
            "\"against_value\": %.2f, \"ratio\": %.2f, \"target\": \"%s\"}\n",
            measured.name, value, bytes, against, against > 0 ? value / against : 0, measured.target);
    }
    return 0;
}

}  // namespace
}  // namespace marey

int main(int argc, char** argv) {
    return marey::run(argc, argv);
}
