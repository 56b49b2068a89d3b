// memory.cpp: recording half a gigabyte into fresh pages and into a capture file.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include <marey/all.h>

#include "figure.h"

namespace {

constexpr std::int64_t kRanges = 512ll * 1024 * 1024 / 16;
constexpr double kMegabytes = 512;

struct Result {
    double thread_ns;   ///< per range, CPU time of the recording thread
    double process_ns;  ///< per range, CPU time of all threads of the process
    double floor_ns;
    double gaps;  ///< pauses of over 100 us between two ranges
};

__attribute__((noinline)) void ranges(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        MAREY_RANGE("fresh");
        asm volatile("" ::: "memory");
    }
}

// Counts pauses. The clock is read about every half microsecond, rarely enough not to affect the result.
__attribute__((noinline)) double count_gaps(std::int64_t count) {
    double last = bench::seconds(CLOCK_MONOTONIC);
    double gaps = 0;
    for (std::int64_t i = 0; i < count; i += 32) {
        for (int k = 0; k < 32; ++k) {
            MAREY_RANGE("fresh");
            asm volatile("" ::: "memory");
        }
        const double now = bench::seconds(CLOCK_MONOTONIC);
        if (now - last > 100e-6) ++gaps;
        last = now;
    }
    return gaps;
}

// Runs in a child process, because in a second run the pages would be warm.
template <class Run>
Result in_child(Run run) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    const pid_t child = fork();
    if (child == 0) {
        const Result result = run();
        _exit(write(ends[1], &result, sizeof result) == sizeof result ? 0 : 1);
    }
    close(ends[1]);
    Result result{};
    if (read(ends[0], &result, sizeof result) != sizeof result) std::abort();
    close(ends[0]);
    waitpid(child, nullptr, 0);
    return result;
}

Result record(const marey::SessionOptions& options, bool looks_for_gaps) {
    Result result{};
    bench::Floor floor;
    floor.run(2'000'000);
    result.floor_ns = bench::thread_ns(8'000'000, [&] { floor.run(8'000'000); });
    marey::Session session(options);
    const double process = bench::seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (looks_for_gaps) {
        result.gaps = count_gaps(kRanges);
    } else {
        result.thread_ns = bench::thread_ns(kRanges, [] { ranges(kRanges); });
    }
    result.process_ns =
        (bench::seconds(CLOCK_PROCESS_CPUTIME_ID) - process) * 1e9 / static_cast<double>(kRanges);
    session.discard();
    return result;
}

}  // namespace

int main() {
    const char* const folder = std::getenv("MAREY_BENCH_FOLDER");
    const std::string path = std::string(folder != nullptr ? folder : ".") + "/bench_memory.marey";
    const marey::SessionOptions memory{.max_bytes = 1ull << 30};
    const marey::SessionOptions file{.output = path, .max_bytes = 1ull << 30};
    std::vector<double> cold, process, floors, backed, memory_gaps, file_gaps;
    for (int repetition = 0; repetition < 7; ++repetition) {
        const Result fresh = in_child([&] { return record(memory, false); });
        const Result mapped = in_child([&] { return record(file, false); });
        std::filesystem::remove(path);
        floors.push_back((fresh.floor_ns + mapped.floor_ns) / 2);
        cold.push_back(fresh.thread_ns);
        process.push_back(fresh.process_ns);
        backed.push_back(mapped.thread_ns);
        memory_gaps.push_back(in_child([&] { return record(memory, true); }).gaps / (kMegabytes / 64));
        file_gaps.push_back(in_child([&] { return record(file, true); }).gaps / (kMegabytes / 64));
        std::filesystem::remove(path);
    }
    bench::print("range_enabled_cold", "ns", cold, "floor", floors, "<= 1.35");
    bench::print("range_enabled_cold_process", "ns", process, "floor", floors, "<= 1.6");
    bench::print("range_file_backed", "ns", backed, "range_enabled_cold", cold, "<= 1.15");
    std::printf(
        "{\"name\": \"range_file_gaps\", \"value\": %.3g, \"unit\": \"per 64 MB\", \"against\": \"into "
        "memory\", "
        "\"against_value\": %.3g, \"target\": \"<= 1 per 64 MB\"}\n",
        bench::median(file_gaps), bench::median(memory_gaps));
}
