// parallel_test.cpp: every item once, exceptions passed on.
#include "base/parallel.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace marey {
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

TEST(OnThreads, TheFirstIsTheCallersAndAllAreDoneAfterwards) {
    const std::thread::id caller = std::this_thread::get_id();
    for (const unsigned threads : {0u, 1u, 5u}) {
        std::atomic<unsigned> done{0};
        on_threads(threads, [&](unsigned number) {
            EXPECT_EQ(number == 0, std::this_thread::get_id() == caller);
            ++done;
        });
        EXPECT_EQ(done.load(), std::max(1u, threads));
    }
}

TEST(OnThreads, PassesOnAnException) {
    for (const unsigned bad : {0u, 3u}) {
        const auto work = [&](unsigned number) {
            if (number == bad) throw std::runtime_error("that one");
        };
        EXPECT_THROW(on_threads(4, work), std::runtime_error);
    }
}

TEST(UsableCores, AreThoseThatTheThreadMayRunOn) {
    EXPECT_GE(usable_cores(), 1u);
    unsigned on_one = 0;
    std::thread([&] {
        cpu_set_t cores;
        ASSERT_EQ(::sched_getaffinity(0, sizeof cores, &cores), 0);
        int first = 0;
        while (!CPU_ISSET(first, &cores)) ++first;
        CPU_ZERO(&cores);
        CPU_SET(first, &cores);
        ASSERT_EQ(::sched_setaffinity(0, sizeof cores, &cores), 0);
        on_one = usable_cores();
    }).join();
    EXPECT_EQ(on_one, 1u);
}

}  // namespace
}  // namespace marey
