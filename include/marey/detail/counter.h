// counter.h: the CPU's counter register, and the few atomic accesses that the inlined path needs.
#pragma once

#include <cstdint>

#include <marey/detail/export.h>

namespace marey::detail {
inline namespace layout1 {

/// Reads the counter, in ticks. Deliberately unordered: the CPU may move a read by a few nanoseconds relative
/// to its neighbours, but an ordered read costs 2.5 times as much. Used only if the recorder has found the
/// counter to be invariant.
inline std::uint64_t read_counter() noexcept {
#if defined(__aarch64__)
    std::uint64_t ticks;
    asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#elif defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return 0;  // without a counter the recorder sets kArmedSlowClock
#endif
}

template <class T>
inline T load_relaxed(const T& place) noexcept {
    return __atomic_load_n(&place, __ATOMIC_RELAXED);
}
template <class T>
inline T load_acquire(const T& place) noexcept {
    return __atomic_load_n(&place, __ATOMIC_ACQUIRE);
}
template <class T>
inline void store_relaxed(T& place, T value) noexcept {
    __atomic_store_n(&place, value, __ATOMIC_RELAXED);
}
template <class T>
inline void store_release(T& place, T value) noexcept {
    __atomic_store_n(&place, value, __ATOMIC_RELEASE);
}

/// Orders accesses of this thread as seen by its signal handlers; no instruction.
inline void signal_fence() noexcept {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

}  // namespace layout1
}  // namespace marey::detail
