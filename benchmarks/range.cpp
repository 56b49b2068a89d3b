// range.cpp: cost of one range: recording, disabled, around real work, on two threads, with a name made at
// run time.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <thread>

#include <marey/all.h>

#include "figure.h"

namespace {

constexpr std::int64_t kCount = 2'000'000;

// A small ring: its chunks are recycled, so the memory is warm.
marey::SessionOptions warm() {
    return {.max_bytes = 4 << 20, .policy = marey::Policy::Ring};
}

__attribute__((noinline)) void ranges(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        MAREY_RANGE("benchmark");
        asm volatile("" ::: "memory");
    }
}

void enabled(bench::Floor& floor) {
    std::vector<double> values;
    std::vector<double> floors;
    marey::Session session(warm());
    ranges(kCount);
    floor.run(kCount);
    for (int repetition = 0; repetition < 21; ++repetition) {
        floors.push_back(bench::thread_ns(kCount, [&] { floor.run(kCount); }));
        values.push_back(bench::thread_ns(kCount, [] { ranges(kCount); }));
    }
    session.discard();
    bench::print("range_enabled", "ns", values, "floor", floors, "<= 1.1");
}

void in_work(bench::Floor& floor) {
    constexpr std::int64_t kAround = 500'000;
    bench::Work work;
    std::vector<double> added;
    std::vector<double> floor_added;
    marey::Session session(warm());
    for (int repetition = 0; repetition < 22; ++repetition) {
        const double alone = bench::thread_ns(kAround, [&] {
            for (std::int64_t i = 0; i < kAround; ++i) work();
        });
        const double with_floor =
            bench::thread_ns(kAround, [&] { floor.run_around(kAround, [&] { work(); }); });
        const double with_range = bench::thread_ns(kAround, [&] {
            for (std::int64_t i = 0; i < kAround; ++i) {
                MAREY_RANGE("around work");
                work();
            }
        });
        if (repetition == 0) continue;  // warm-up
        added.push_back(with_range - alone);
        floor_added.push_back(with_floor - alone);
    }
    session.discard();
    const double above = bench::median(added) - bench::median(floor_added);
    std::printf(
        "{\"name\": \"range_enabled_in_work\", \"value\": %.3g, \"unit\": \"ns\", \"against\": \"floor in "
        "work\", "
        "\"against_value\": %.3g, \"target\": \"<= 2.5 ns\"}\n",
        above, bench::median(floor_added));
}

// In a library loaded at run time, like most instrumented code.
void disabled(const char* folder) {
    const std::string path = std::string(folder) + "/range_plugin.so";
    void* const library = dlopen(path.c_str(), RTLD_NOW);
    if (library == nullptr) {
        std::fprintf(stderr, "range_disabled: %s\n", dlerror());
        return;
    }
    auto* const empty = reinterpret_cast<void (*)(std::int64_t)>(dlsym(library, "empty_loop"));
    auto* const marked = reinterpret_cast<void (*)(std::int64_t)>(dlsym(library, "marked_loop"));
    constexpr std::int64_t kLoops = 20'000'000;
    std::vector<double> above;
    std::vector<double> floors;
    for (int repetition = 0; repetition < 16; ++repetition) {
        const double base = bench::thread_ns(kLoops, [&] { empty(kLoops); });
        const double value = bench::thread_ns(kLoops, [&] { marked(kLoops); });
        if (repetition == 0) continue;
        above.push_back(value - base);
        floors.push_back(base);
    }
    std::printf(
        "{\"name\": \"range_disabled\", \"value\": %.3g, \"unit\": \"ns\", \"against\": \"empty loop\", "
        "\"against_value\": %.3g, \"target\": \"<= 0.8 ns\"}\n",
        bench::median(above), bench::median(floors));
}

// Returns millions of iterations per second with `threads` threads that each call run(count).
template <class Run>
double throughput(int threads, Run run) {
    constexpr std::int64_t kEach = 8'000'000;
    std::vector<std::thread> running;
    const double begin = bench::seconds(CLOCK_MONOTONIC);
    for (int i = 0; i < threads; ++i) running.emplace_back([&] { run(kEach); });
    for (std::thread& thread : running) thread.join();
    return static_cast<double>(threads) * kEach / (bench::seconds(CLOCK_MONOTONIC) - begin) * 1e-6;
}

// The floor with two threads is measured too: it is the highest gain that this machine allows.
void two_threads() {
    marey::Session session(marey::SessionOptions{.max_bytes = 16 << 20, .policy = marey::Policy::Ring});
    const auto run_floor = [](std::int64_t count) { bench::Floor().run(count); };
    throughput(2, ranges);
    std::vector<double> one, two, floor_one, floor_two;
    for (int repetition = 0; repetition < 11; ++repetition) {
        one.push_back(throughput(1, ranges));
        two.push_back(throughput(2, ranges));
        floor_one.push_back(throughput(1, run_floor));
        floor_two.push_back(throughput(2, run_floor));
    }
    session.discard();
    bench::print("range_two_threads", "M/s", two, "one thread", one, ">= 1.9");
    bench::print("floor_two_threads", "M/s", floor_two, "one thread", floor_one, "");
}

// 256 names of 20 to 30 characters, written in turn into one buffer, so that the address does not identify
// the name.
class Names {
  public:
    Names() {
        for (int i = 0; i < 256; ++i) {
            std::string name = "request/handler/" + std::to_string(1000 + i * 7);
            name.append(static_cast<std::size_t>(i % 11), 'x');
            names_.push_back(name);
        }
    }
    std::string_view next() {
        const std::string& name = names_[at_++ & 255];
        std::memcpy(buffer_, name.data(), name.size());
        asm volatile("" : : "r"(buffer_) : "memory");
        return {buffer_, name.size()};
    }

  private:
    std::vector<std::string> names_;
    std::size_t at_ = 0;
    char buffer_[64] = {};
};

void dynamic_name() {
    constexpr std::int64_t kNamed = 1'000'000;
    Names names;
    std::vector<double> values;
    std::vector<double> plain;
    marey::Session session(warm());
    for (int repetition = 0; repetition < 22; ++repetition) {
        const double base = bench::thread_ns(kNamed, [] { ranges(kNamed); });
        const double copying = bench::thread_ns(kNamed, [&] {
            for (std::int64_t i = 0; i < kNamed; ++i) names.next();
        });
        const double value = bench::thread_ns(kNamed, [&] {
            for (std::int64_t i = 0; i < kNamed; ++i) {
                MAREY_RANGE_DYNAMIC(names.next());
                asm volatile("" ::: "memory");
            }
        });
        if (repetition == 0) continue;
        plain.push_back(base);
        values.push_back(value - copying);
    }
    session.discard();
    bench::print("range_dynamic_name", "ns", values, "range_enabled", plain, "<= 2");
}

}  // namespace

int main(int, char** argv) {
    const std::string self = argv[0];
    const std::size_t slash = self.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : self.substr(0, slash);
    bench::Floor floor;
    enabled(floor);
    in_work(floor);
    disabled(folder.c_str());
    two_threads();
    dynamic_name();
}
