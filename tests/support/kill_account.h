// kill_account.h: shared by kill_program and the test that kills it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace kill_test {

constexpr int kThreads = 4;
constexpr int kNames = 251;  // a prime: a hole in the sequence cannot hide

struct ThreadAccount {
    std::atomic<std::uint64_t> ended;    ///< inner ranges that have ended
    std::atomic<std::uint32_t> pending;  ///< the inner range about to open, or open
    std::atomic<std::uint32_t> depth;    ///< open ranges: 0, 1 (outer) or 2 (outer, inner)
    char padding[48];
};

struct Account {
    std::atomic<std::uint64_t> started;
    ThreadAccount threads[kThreads];
};

inline std::string range_name(int number) {
    return "inner " + std::to_string(number);
}

}  // namespace kill_test
