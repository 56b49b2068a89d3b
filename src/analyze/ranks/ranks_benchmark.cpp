// ranks_benchmark.cpp: comparing the ranks of a large job, file by file: time and memory.
// bench_ranks [RANKS [STEPS]]; the published figure is for 1000 ranks of 200 steps with 500 ranges each.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <random>
#include <string>

#include <marey/ranks.h>

#include "analyze/trace_fixture.h"

namespace marey {
namespace {

constexpr int kRangesPerStep = 500, kCollectivesPerStep = 10, kRanksPerHost = 8;

/// Steps of 50 ms: operators, and an all_reduce after every 49 of them. Rank 3 takes 5 % longer.
Trace rank_trace(int rank, int steps) {
    TraceFixture fixture;
    std::mt19937_64 random(static_cast<std::uint64_t>(rank));
    TraceData& data = fixture.data();
    data.processes[0].node = rank;
    data.processes[0].pid = 1000 + rank;
    data.processes[0].host = fixture.string("node" + std::to_string(rank / kRanksPerHost));
    std::vector<std::string> names;
    for (int i = 0; i < 20; ++i) {
        names.push_back("aten::op_" + std::to_string(i));
        fixture.site(names.back(), Scope::Function);
    }
    std::vector<RangeSpec> all;
    for (int step = 0; step < steps; ++step) {
        const std::int64_t start = step * std::int64_t{50'000'000};
        RangeSpec& made = all.emplace_back();
        made = {"ProfilerStep#" + std::to_string(step), start, 49'900'000};
        constexpr int kPart = kRangesPerStep / kCollectivesPerStep;
        for (int part = 0; part < kCollectivesPerStep; ++part) {
            std::int64_t now = start + part * std::int64_t{4'900'000};
            for (int i = 1; i < kPart; ++i) {
                const auto length =
                    static_cast<std::int64_t>(80'000 + random() % 2000) + (rank == 3 ? 4000 : 0);
                made.inside.push_back({names[static_cast<std::size_t>(i) % names.size()], now, length});
                now += length;
            }
            const std::int64_t end = start + part * std::int64_t{4'900'000} + 4'300'000;
            made.inside.push_back({"gloo:all_reduce", now, end - now});
        }
    }
    fixture.thread("main", all);
    return fixture.trace();
}

double cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}
double wall_seconds() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

int measure(int ranks, int steps) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("bench_ranks_" + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
    if (const pid_t child = fork(); child == 0) {  // so that its memory does not count
        for (int rank = 0; rank < ranks; ++rank)
            rank_trace(rank, steps).save((folder / (std::to_string(rank) + ".marey")).string());
        _exit(0);
    } else {
        int status = 0;
        waitpid(child, &status, 0);
    }
    const double cpu = cpu_seconds(), wall = wall_seconds();
    const std::string paths[] = {folder.string()};
    const RankFiles files = read_ranks(paths);
    const double used_cpu = cpu_seconds() - cpu, used_wall = wall_seconds() - wall;
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    std::filesystem::remove_all(folder);
    const auto ranges = static_cast<double>(ranks) * steps * kRangesPerStep;
    if (files.report.worst_rank != 3 || files.report.ranks.size() != static_cast<std::size_t>(ranks))
        return 1;
    std::fprintf(stderr, "%d ranks, %.0f ranges: %.1f s, %.1f s of CPU\n", ranks, ranges, used_wall,
                 used_cpu);
    std::printf(
        "{\"name\": \"ranks_cpu\", \"value\": %.0f, \"unit\": \"ns per range\", \"target\": \"<= 1200\"}\n",
        used_cpu / ranges * 1e9);
    std::printf("{\"name\": \"ranks_memory\", \"value\": %.0f, \"unit\": \"MiB\", \"target\": \"<= 2048\"}\n",
                static_cast<double>(usage.ru_maxrss) / 1024);
    return 0;
}

}  // namespace
}  // namespace marey

int main(int argc, char** argv) {
    return marey::measure(argc > 1 ? std::atoi(argv[1]) : 100, argc > 2 ? std::atoi(argv[2]) : 200);
}
