// machine_test.cpp: the virtual schedule, and the conversion of device times to host times.
#include "simulated/machine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "simulated/device_clock.h"

namespace marey::simulated {
namespace {

TEST(ClockRelation, TheErrorBetweenTwoReadingsIsNoLargerThanTheirs) {
    std::mt19937 random(3);
    for (int round = 0; round < 200; ++round) {
        Settings settings;
        settings.skew_ns = static_cast<double>(random()) * 1000 - 2e12;
        settings.drift_ppm = static_cast<double>(random() % 20'000) - 10'000;
        const DeviceClock clock(1'000'000);
        const double error = static_cast<double>(random() % 500);
        ClockRelation relation;
        std::uint64_t now = 1'000'000;
        std::uint64_t last = now;
        for (int i = 0; i < 5; ++i) {
            const double off = std::uniform_real_distribution<double>(-error, error)(random);
            relation.add({static_cast<double>(now) + off, clock.show(now, settings), error});
            last = now;
            now += 10'000'000 + random() % 1'000'000'000;
        }
        for (int i = 0; i < 20; ++i) {
            const std::uint64_t ticks = 1'000'000 + random() % (last - 1'000'000);
            const auto found = relation.to_ticks(clock.show(ticks, settings));
            EXPECT_LE(std::abs(static_cast<double>(found) - static_cast<double>(ticks)), error + 2);
        }
    }
}

TEST(Machine, AJobStartsWhenItHasArrivedAndItsQueueIsFree) {
    Settings settings;
    settings.latency_ns = 1000;
    Machine machine;
    const auto ticks = [](double ns) { return static_cast<std::uint64_t>(ns_to_ticks(ns)); };
    const auto job = [](std::uint32_t stream, std::uint64_t ns) {
        Job made;
        made.stream = stream;
        made.duration_ns = ns;
        return made;
    };
    const std::uint64_t now = 1'000'000'000;
    machine.give({job(1, 1'000'000)}, now, settings);
    machine.give({job(1, 2'000'000)}, now, settings);
    machine.give({job(2, 500'000)}, now, settings);
    machine.add_wait(job(2, 0), 1, now);
    machine.give({job(2, 100'000)}, now, settings);
    EXPECT_TRUE(machine.take_finished(now).empty());
    const std::vector<Job> done = machine.take_finished(now + ticks(1e9));
    ASSERT_EQ(done.size(), 5u);
    EXPECT_EQ(done[0].stream, 2u);
    EXPECT_EQ(done[0].start, now + ticks(1000));
    EXPECT_EQ(done[1].end, now + ticks(1000) + ticks(1e6));
    EXPECT_EQ(done[2].start, done[1].end);  // the second of queue 1
    EXPECT_EQ(done[4].start, done[2].end);  // queue 2 waited for it
    EXPECT_TRUE(machine.take_finished(kNever).empty());
}

TEST(Machine, AJobThatNeverEndsBlocksOnlyItsQueue) {
    const Settings settings;
    Machine machine;
    Job job;
    job.duration_ns = kNever;
    machine.give({job}, 1000, settings);
    job.duration_ns = 1;
    machine.give({job}, 1000, settings);
    job.stream = 3;
    machine.give({job}, 1000, settings);
    EXPECT_EQ(machine.take_finished(kNever - 1).size(), 1u);
    EXPECT_EQ(machine.end_of_device(0, 1000), kNever);
    EXPECT_NE(machine.end_of_queue(0, 3, 1000), kNever);
}

TEST(Machine, AllocatesMemoryUntilNoneIsLeft) {
    Settings settings;
    settings.memory_bytes = 1000;
    Machine machine;
    const std::uint64_t block = machine.allocate(0, 600, settings);
    EXPECT_NE(block, 0u);
    EXPECT_EQ(machine.allocate(0, 600, settings), 0u);
    EXPECT_NE(machine.allocate(1, 600, settings), 0u);
    EXPECT_EQ(machine.release(0, block), 600u);
    EXPECT_EQ(machine.release(0, block), 0u);
    EXPECT_NE(machine.allocate(0, 600, settings), 0u);
}

}  // namespace
}  // namespace marey::simulated
