// figure.h: shared by all benchmarks: clocks, medians, and one JSON line per figure.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <marey/detail/counter.h>

namespace bench {

inline double seconds(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// CPU time that `work` takes on the calling thread, in nanoseconds per unit.
template <class Work>
double thread_ns(std::int64_t units, Work work) {
    const double begin = seconds(CLOCK_THREAD_CPUTIME_ID);
    work();
    return (seconds(CLOCK_THREAD_CPUTIME_ID) - begin) * 1e9 / static_cast<double>(units);
}

inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// Prints a figure and its baseline. The ratio is the median of the ratios of the repetitions.
inline void print(const std::string& name, const std::string& unit, const std::vector<double>& values,
                  const std::string& against, const std::vector<double>& against_values,
                  const std::string& target) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < values.size(); ++i) ratios.push_back(values[i] / against_values[i]);
    std::printf(
        "{\"name\": \"%s\", \"value\": %.4g, \"unit\": \"%s\", \"against\": \"%s\", \"against_value\": %.4g, "
        "\"ratio\": %.4g, \"target\": \"%s\"}\n",
        name.c_str(), median(values), unit.c_str(), against.c_str(), median(against_values), median(ratios),
        target.c_str());
    std::fflush(stdout);
}

/// Prints a figure without a baseline, for example a size in bytes.
inline void print(const std::string& name, const std::string& unit, double value, const std::string& target) {
    std::printf("{\"name\": \"%s\", \"value\": %.4g, \"unit\": \"%s\", \"target\": \"%s\"}\n", name.c_str(),
                value, unit.c_str(), target.c_str());
    std::fflush(stdout);
}

/// The physical minimum: two counter reads and 32 bytes stored into a ring of warm memory (64 K events, 2
/// MiB).
class Floor {
  public:
    Floor() : ring_(kEvents * 4) {}
    __attribute__((noinline)) void run(std::int64_t count) {
        std::uint64_t* const ring = ring_.data();
        std::uint64_t at = 0;
        for (std::int64_t i = 0; i < count; ++i) {
            const std::uint64_t begin = marey::detail::read_counter();
            asm volatile("" ::: "memory");
            const std::uint64_t end = marey::detail::read_counter();
            std::uint64_t* const event = ring + (at++ & (kEvents - 1)) * 4;
            event[0] = begin;
            event[1] = end;
            event[2] = at;
            event[3] = 0;
            asm volatile("" ::: "memory");
        }
    }
    /// The same around `work`.
    template <class Work>
    __attribute__((noinline)) void run_around(std::int64_t count, Work work) {
        std::uint64_t* const ring = ring_.data();
        std::uint64_t at = 0;
        for (std::int64_t i = 0; i < count; ++i) {
            const std::uint64_t begin = marey::detail::read_counter();
            work();
            const std::uint64_t end = marey::detail::read_counter();
            std::uint64_t* const event = ring + (at++ & (kEvents - 1)) * 4;
            event[0] = begin;
            event[1] = end;
            event[2] = at;
            event[3] = 0;
        }
    }

  private:
    static constexpr std::uint64_t kEvents = 64 * 1024;
    std::vector<std::uint64_t> ring_;
};

/// About 100 ns of dependent integer work.
struct Work {
    std::uint64_t state = 88172645463325252ull;
    __attribute__((always_inline)) void operator()() {
        std::uint64_t x = state;
        for (int i = 0; i < 22; ++i) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            asm volatile("" : "+r"(x));
        }
        state = x;
    }
};

}  // namespace bench
