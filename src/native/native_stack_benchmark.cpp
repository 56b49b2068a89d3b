// native_stack_benchmark.cpp: one native capture of 30 frames, of which 3 differ from those of the one
// before, beside libunwind's cached backtrace (if libunwind.so.8 is installed) and a walk along frame
// pointers that stays within the stack.
#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>
#include <vector>

#include "native/native_stack.h"

namespace marey {
namespace {

constexpr std::size_t kFrames = 30;
constexpr std::size_t kSites = 16;
constexpr std::int64_t kRounds = 200'000;
using Frames = std::array<std::uintptr_t, kFrames>;
using Capture = std::size_t (*)(Frames& out);
std::size_t found = 0;
std::uintptr_t stack_end = 0;

// The benchmark's functions have frame pointers, so that they can be followed.
#if defined(__clang__)
#define MAREY_FRAME_POINTER
#else
#define MAREY_FRAME_POINTER __attribute__((optimize("no-omit-frame-pointer")))
#endif

__attribute__((noinline)) MAREY_FRAME_POINTER std::size_t by_frame_pointer(Frames& out) {
    auto at = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    std::size_t count = 0;
    while (count < out.size()) {
        const auto* const frame =
            reinterpret_cast<const std::uintptr_t*>(at);  // NOLINT(performance-no-int-to-ptr)
        out[count++] = frame[1];
        if (frame[0] <= at || frame[0] > stack_end || frame[0] % sizeof at != 0) break;
        at = frame[0];
    }
    return count;
}
__attribute__((noinline)) MAREY_FRAME_POINTER std::size_t by_rules(Frames& out) {
    return capture_native_stack(out.data(), out.size());
}
int (*unw_backtrace)(void**, int) = nullptr;
__attribute__((noinline)) MAREY_FRAME_POINTER std::size_t by_libunwind(Frames& out) {
    return static_cast<std::size_t>(unw_backtrace(reinterpret_cast<void**>(out.data()), kFrames));
}

template <std::size_t kSite>
__attribute__((noinline)) MAREY_FRAME_POINTER void leaf(Capture capture) {
    Frames out;
    found = capture(out);
    asm volatile("" ::"r"(kSite), "r"(out.data()) : "memory");
}
template <std::size_t kSite>
__attribute__((noinline)) MAREY_FRAME_POINTER void site(Capture capture) {
    leaf<kSite>(capture);
    asm volatile("" ::"r"(kSite) : "memory");
}

template <std::size_t... kEach>
constexpr auto all_sites(std::index_sequence<kEach...> /*numbers*/) {
    return std::array<void (*)(Capture), sizeof...(kEach)>{&site<kEach>...};
}

__attribute__((noinline)) MAREY_FRAME_POINTER void rounds(Capture capture) {
    constexpr auto kEverySite = all_sites(std::make_index_sequence<kSites>());
    for (std::int64_t i = 0; i < kRounds; ++i) kEverySite[static_cast<std::size_t>(i * 7) % kSites](capture);
}
__attribute__((noinline)) MAREY_FRAME_POINTER void at_depth(int depth, Capture capture) {
    if (depth == 0)
        rounds(capture);
    else
        at_depth(depth - 1, capture);
    asm volatile("" ::: "memory");
}

double cpu_ns() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

void print(const char* name, const std::vector<double>& values, const char* against,
           const std::vector<double>& others, const char* target) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < values.size(); ++i) ratios.push_back(values[i] / others[i]);
    std::printf(
        "{\"name\": \"%s\", \"value\": %.4g, \"unit\": \"ns\", \"against\": \"%s\", \"against_value\": %.4g, "
        "\"ratio\": %.4g, \"target\": \"%s\"}\n",
        name, median(values), against, median(others), median(ratios), target);
}

double nanoseconds(Capture capture) {
    const double begin = cpu_ns();
    at_depth(kFrames - 4, capture);
    const double value = (cpu_ns() - begin) / kRounds;
    if (found != kFrames) std::fprintf(stderr, "native_stack: %zu frames\n", found);
    return value;
}

}  // namespace
}  // namespace marey

int main() {
    using namespace marey;
    stack_end = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) + 512;
    std::vector<double> own;
    std::vector<double> pointers;
    std::vector<double> libunwind;
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    if (void* const library = dlopen("libunwind.so.8", RTLD_NOW))
        unw_backtrace = reinterpret_cast<int (*)(void**, int)>(dlsym(library, "unw_backtrace"));
    for (int repetition = 0; repetition < 15; ++repetition) {
        own.push_back(nanoseconds(by_rules));
        pointers.push_back(nanoseconds(by_frame_pointer));
        if (unw_backtrace != nullptr) libunwind.push_back(nanoseconds(by_libunwind));
    }
    print("native_capture", own, "frame pointers", pointers, "<= 2.2");
    if (unw_backtrace != nullptr)
        print("native_capture_peer", own, "unw_backtrace", libunwind, "<= 0.5");
    else
        std::fprintf(stderr, "native_stack: libunwind.so.8 is not installed\n");
}
