// parallel_test.cpp: every item once, exceptions passed on.
#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace kymo {
namespace {

TEST(ParallelFor, DoesEveryItemOnce) {
    for (const unsigned threads : {0u, 1u, 2u, 7u}) {
        std::vector<std::atomic<int>> done(1000);
        parallel_for(
            done.size(), [&](std::size_t i) { ++done[i]; }, threads);
        for (const auto& count : done) EXPECT_EQ(count.load(), 1);
    }
}

TEST(ParallelFor, NothingToDoIsDoneAtOnce) {
    parallel_for(0, [](std::size_t) { FAIL(); });
}

TEST(ParallelFor, PassesOnAnException) {
    for (const unsigned threads : {1u, 4u}) {
        const auto work = [](std::size_t i) {
            if (i == 57) throw std::runtime_error("item 57");
        };
        EXPECT_THROW(parallel_for(100, work, threads), std::runtime_error);
    }
}

}  // namespace
}  // namespace kymo
