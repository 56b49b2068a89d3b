// counting_observer.h: for tests: an observer that counts, and ranges for it to see.
#pragma once

#include <atomic>
#include <memory>

#include <marey/all.h>

struct Count {
    std::atomic<int> starts{0};
    std::atomic<int> ends{0};
};
/// An observer that counts its callbacks.
inline marey::Observer counting(Count& count) {
    return {.start = [](const marey::ObservedRange&, void* data) -> std::unique_ptr<marey::ObserverContext> {
                ++static_cast<Count*>(data)->starts;
                return nullptr;
            },
            .end = [](const marey::ObservedRange&, marey::ObserverContext*,
                      void* data) { ++static_cast<Count*>(data)->ends; },
            .data = &count};
}

inline void open_ranges(int count) {
    for (int i = 0; i < count; ++i) {
        MAREY_RANGE("sampled");
    }
}
