// range_plugin.cpp: a shared library with a loop that has a range and one that does not.
#include <cstdint>

#include <marey/range.h>

extern "C" {

MAREY_API void empty_loop(std::int64_t count);
MAREY_API void marked_loop(std::int64_t count);

void empty_loop(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) asm volatile("" ::: "memory");
}

void marked_loop(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        MAREY_RANGE("in a library");
        asm volatile("" ::: "memory");
    }
}
}
