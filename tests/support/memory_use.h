// memory_use.h: for tests: the memory of this process.
#pragma once

#include <cstddef>
#include <cstdio>

// Sanitizers keep freed memory, so growth means nothing there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kMemoryIsOurs = false;
#else
inline constexpr bool kMemoryIsOurs = true;
#endif

inline std::size_t resident_bytes() {
    std::size_t size = 0;
    std::size_t resident = 0;
    FILE* const file = std::fopen("/proc/self/statm", "r");
    if (std::fscanf(file, "%zu %zu", &size, &resident) != 2) resident = 0;
    std::fclose(file);
    return resident * 4096;
}
