// clock.h: which counter is read, clock pairs, and an injected clock for tests.
#pragma once

#include <atomic>
#include <cstdint>

#include <marey/detail/counter.h>
#include <marey/detail/log_format.h>

namespace marey {

/// Decided once per process: the counter register if both the processor's flags and the kernel's own clock
/// source vouch for it, CLOCK_MONOTONIC_RAW otherwise. All functions are safe from any thread.
class Clock {
  public:
    static detail::ClockSource source() noexcept;
    /// Nominal rate: reported by the hardware, or measured briefly against CLOCK_MONOTONIC_RAW.
    static std::uint64_t ticks_per_second() noexcept;
    /// True when read_counter() may be used inline.
    static bool is_inline() noexcept {
        return counts_.load(std::memory_order_relaxed) || source_is_counter();
    }
    /// The current time, from whatever clock is in use.
    static std::uint64_t now() noexcept {
        return counts_.load(std::memory_order_relaxed) ? detail::read_counter() : now_slow();
    }
    /// The tightest of a few readings of all clocks together.
    static detail::ClockPair pair() noexcept;

    /// Tests: ticks come from `function` (nanoseconds), out of line. Null restores the real clock. Not while
    /// recording.
    static void inject(std::uint64_t (*function)() noexcept) noexcept;

  private:
    static std::uint64_t now_slow() noexcept;
    static bool source_is_counter() noexcept;
    // True if the clock is the counter register. A separate flag, because the guard of a function-local
    // static is an acquiring load, which waits for the releasing stores of the record before it (10 ns on
    // aarch64).
    static std::atomic<bool> counts_;
};

}  // namespace marey
