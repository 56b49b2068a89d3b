// nvtx.cpp: cost of an NVTX range that Marey receives, while recording and while nothing records. NVTX itself
// adds one indirect call. The plug-in represents a library that uses NVTX.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <marey/all.h>
#include <marey/emit.h>

#include "figure.h"

namespace {

constexpr std::int64_t kCount = 1'000'000;
using Loop = void (*)(std::int64_t);

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

__attribute__((noinline)) void dynamic_ranges(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        const char* name = "benchmark of a library";
        asm volatile("" : "+r"(name)::"memory");
        MAREY_RANGE_DYNAMIC(name);
    }
}

void recording(const char* name, Loop loop, const char* against, Loop other, const char* target) {
    std::vector<double> values;
    std::vector<double> others;
    marey::Session session(warm());
    loop(kCount);
    other(kCount);
    for (int repetition = 0; repetition < 15; ++repetition) {
        others.push_back(bench::thread_ns(kCount, [&] { other(kCount); }));
        values.push_back(bench::thread_ns(kCount, [&] { loop(kCount); }));
    }
    session.discard();
    bench::print(name, "ns", values, against, others, target);
}

void off(const char* name, Loop loop, Loop empty) {
    std::vector<double> above;
    for (int repetition = 0; repetition < 16; ++repetition) {
        const double base = bench::thread_ns(kCount * 10, [&] { empty(kCount * 10); });
        const double value = bench::thread_ns(kCount * 10, [&] { loop(kCount * 10); });
        if (repetition != 0) above.push_back(value - base);
    }
    bench::print(name, "ns", bench::median(above), "<= 20 ns");
}

}  // namespace

int main() {
    const std::string path = std::string(MAREY_BENCH_DIR) + "/nvtx_plugin.so";
    if (!marey::nvtx::is_available()) {
        std::fprintf(stderr, "nvtx: skipped: built without the NVTX header\n");
        return 0;
    }
    setenv("NVTX_INJECTION64_PATH", marey::nvtx::library_path().c_str(),
           1);  // before the plug-in's first call
    void* const library = dlopen(path.c_str(), RTLD_NOW);
    if (library == nullptr) {
        std::fprintf(stderr, "nvtx: %s\n", dlerror());
        return 1;
    }
    const auto loop = [library](const char* name) { return reinterpret_cast<Loop>(dlsym(library, name)); };
    recording("nvtx_push_pop", loop("push_pop"), "MAREY_RANGE_DYNAMIC", dynamic_ranges, "<= 2.5");
    recording("nvtx_push_pop_registered", loop("push_pop_registered"), "MAREY_RANGE", ranges, "<= 4");
    recording("nvtx_push_pop_values", loop("push_pop_values"), "MAREY_RANGE", ranges, "");
    recording("nvtx_start_end", loop("start_end"), "MAREY_RANGE", ranges, "");
    off("nvtx_off", loop("push_pop"), loop("empty_loop"));
}
