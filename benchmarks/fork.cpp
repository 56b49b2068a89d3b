// fork.cpp: what recording costs a forked child that has ten ranges, beside making one small file.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include <marey/marey.h>

#include "figure.h"

namespace {

constexpr int kChildren = 100;
constexpr int kRepetitions = 7;
constexpr std::size_t kFileBytes = 64 * 1024;

const std::string folder = std::string(MAREY_BENCH_DIR) + "/bench_fork.data";

double cpu_us(int who) {
    rusage usage{};
    getrusage(who, &usage);
    const auto us = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
    };
    return us(usage.ru_utime) + us(usage.ru_stime);
}

/// The floor: one small file, with its blocks on disk, in memory.
void make_file(int number) {
    const std::string path = folder + "/floor." + std::to_string(number);
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || posix_fallocate(fd, 0, kFileBytes) != 0) _exit(1);
    void* const mapped = mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) _exit(1);
    std::memset(mapped, 1, kFileBytes);
}

/// Forks the children, prints the CPU time of one, in microseconds, and ends.
int run(bool makes_files) {
    { MAREY_RANGE("parent"); }
    const double before = cpu_us(RUSAGE_SELF) + cpu_us(RUSAGE_CHILDREN);
    for (int i = 0; i < kChildren; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            for (int range = 0; range < 10; ++range) {
                MAREY_RANGE("child");
            }
            if (makes_files) make_file(i);
            std::exit(0);
        }
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return 1;
    }
    std::printf("%.3f\n", (cpu_us(RUSAGE_SELF) + cpu_us(RUSAGE_CHILDREN) - before) / kChildren);
    return 0;
}

double measure(const std::string& mode) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    const bool is_recorded = mode == "recorded";
    const std::string command = (is_recorded ? "MAREY=out=" + folder + "/app.marey " : std::string()) +
                                std::filesystem::canonical("/proc/self/exe").string() + " " + mode;
    FILE* const output = popen(command.c_str(), "r");
    double us = 0;
    if (output == nullptr || std::fscanf(output, "%lf", &us) != 1 || pclose(output) != 0) {
        std::fprintf(stderr, "failed: %s\n", command.c_str());
        std::exit(1);
    }
    return us;
}

}  // namespace

int main(int count, char** words) {
    if (count > 1) return run(std::strcmp(words[1], "floor") == 0);
    std::vector<double> recorded, floor;
    for (int i = 0; i < kRepetitions; ++i) {
        const double plain = measure("plain");
        recorded.push_back(measure("recorded") - plain);
        floor.push_back(measure("floor") - plain);
    }
    std::filesystem::remove_all(folder);
    bench::print("a forked child with 10 ranges, CPU", "us", recorded,
                 "making, allocating and mapping 64 KiB", floor, "0.5 ms");
    return 0;
}
