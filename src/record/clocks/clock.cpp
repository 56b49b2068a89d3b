// clock.cpp: chooses the counter and reads all clocks together.
#include "record/clocks/clock.h"

#include <dlfcn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "base/small_file.h"

namespace marey {
namespace {

std::atomic<std::uint64_t (*)() noexcept> injected{nullptr};

// The C library's own function. A preloaded library that replaces it may return a time that does not advance,
// and must not be called after its destructor has run.
std::int64_t read_clock(clockid_t id) noexcept {
    static const auto next =
        reinterpret_cast<int (*)(clockid_t, timespec*)>(dlsym(RTLD_NEXT, "clock_gettime"));
    timespec time{};
    (next != nullptr ? next : &clock_gettime)(id, &time);
    return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

[[maybe_unused]] bool has_word(std::string_view text, std::string_view word) {
    for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
        const bool starts = at == 0 || text[at - 1] == ' ' || text[at - 1] == '\t';
        const std::size_t end = at + word.size();
        if (starts && (end == text.size() || text[end] == ' ' || text[end] == '\n')) return true;
    }
    return false;
}

detail::ClockSource choose_source() {
    [[maybe_unused]] const std::string kernel =
        read_small_file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
#if defined(__aarch64__)
    // The architecture guarantees a constant rate; the kernel reports whether it trusts the counter of this
    // machine.
    if (kernel.empty() || has_word(kernel, "arch_sys_counter")) return detail::ClockSource::Cntvct;
#elif defined(__x86_64__)
    const std::string info = read_small_file("/proc/cpuinfo");
    const bool invariant = has_word(info, "constant_tsc") && has_word(info, "nonstop_tsc");
    // Under a hypervisor the kernel uses the paravirtual clocks, which themselves count the TSC.
    const bool trusted = has_word(kernel, "tsc") || has_word(kernel, "kvm-clock") ||
                         has_word(kernel, "hyperv_clocksource_tsc_page");
    int mode = PR_TSC_ENABLE;  // the program may have given it up (PR_SET_TSC)
    const bool is_allowed = ::syscall(SYS_prctl, PR_GET_TSC, &mode, 0, 0, 0) != 0 || mode == PR_TSC_ENABLE;
    if (invariant && trusted && is_allowed) return detail::ClockSource::Tsc;
#endif
    return detail::ClockSource::MonotonicRaw;
}

detail::ClockSource real_source() noexcept {
    static const detail::ClockSource chosen = choose_source();
    return chosen;
}

std::uint64_t measure_rate() noexcept {
    switch (real_source()) {
        case detail::ClockSource::Cntvct: {
#if defined(__aarch64__)
            std::uint64_t rate;
            asm volatile("mrs %0, cntfrq_el0" : "=r"(rate));
            if (rate != 0) return rate;
#endif
            return 1'000'000'000;
        }
        case detail::ClockSource::Tsc: {
            // The fit over the session's own pairs decides; this is only the rate before there are two pairs.
            const std::int64_t begin_ns = read_clock(CLOCK_MONOTONIC_RAW);
            const std::uint64_t begin = detail::read_counter();
            std::int64_t end_ns;
            do {
                end_ns = read_clock(CLOCK_MONOTONIC_RAW);
            } while (end_ns - begin_ns < 200'000);
            const std::uint64_t end = detail::read_counter();
            return static_cast<std::uint64_t>(static_cast<double>(end - begin) * 1e9 /
                                              static_cast<double>(end_ns - begin_ns));
        }
        default:
            return 1'000'000'000;
    }
}

}  // namespace

detail::ClockSource Clock::source() noexcept {
    return injected.load(std::memory_order_relaxed) != nullptr ? detail::ClockSource::Injected
                                                               : real_source();
}

std::uint64_t Clock::ticks_per_second() noexcept {
    if (source() == detail::ClockSource::Injected) return 1'000'000'000;
    static const std::uint64_t rate = measure_rate();
    return rate;
}

std::atomic<bool> Clock::counts_{false};

bool Clock::source_is_counter() noexcept {
    const detail::ClockSource chosen = source();
    const bool counts = chosen == detail::ClockSource::Tsc || chosen == detail::ClockSource::Cntvct;
    if (counts) counts_.store(true, std::memory_order_relaxed);
    return counts;
}

std::uint64_t Clock::now_slow() noexcept {
    if (auto* const function = injected.load(std::memory_order_relaxed)) return function();
    if (source_is_counter()) return detail::read_counter();
    return static_cast<std::uint64_t>(read_clock(CLOCK_MONOTONIC_RAW));
}

detail::ClockPair Clock::pair() noexcept {
    detail::ClockPair best;
    if (source() == detail::ClockSource::Injected) {
        best.ticks = now();
        best.raw_ns = best.real_ns = static_cast<std::int64_t>(best.ticks);
        return best;
    }
    best.width = ~std::uint64_t{0};
    for (int attempt = 0; attempt < 4; ++attempt) {
        const std::uint64_t before = now();
        const std::int64_t raw = read_clock(CLOCK_MONOTONIC_RAW);
        const std::uint64_t after = now();
        if (after - before < best.width) {
            best.width = after - before;
            best.ticks = before + (after - before) / 2;
            best.raw_ns = raw;
        }
    }
    // The wall clock is only for people: a delay of a microsecond between `raw_ns` and this reading does not
    // matter.
    best.real_ns = read_clock(CLOCK_REALTIME) - (read_clock(CLOCK_MONOTONIC_RAW) - best.raw_ns);
    return best;
}

void Clock::inject(std::uint64_t (*function)() noexcept) noexcept {
    injected.store(function, std::memory_order_relaxed);
    counts_.store(false, std::memory_order_relaxed);  // until it is checked again
}

}  // namespace marey
