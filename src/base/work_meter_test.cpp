// work_meter_test.cpp: operations count for whoever watches their thread.
#include "base/work_meter.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <thread>

#include "base/output_pieces.h"

namespace marey {
namespace {

TEST(WorkMeter, CountsForTheWatcherOfItsThreadFromAnyThread) {
    WorkProgress progress;
    const WatchedWork watched(progress);
    WorkMeter meter(10);
    EXPECT_EQ(progress.total, 10u);
    meter.add(3);
    std::thread([&] { meter.add(4); }).join();
    EXPECT_EQ(progress.done, 7u);
}

TEST(WorkMeter, CountsNothingIfNobodyWatches) {
    WorkMeter meter(10);
    meter.add(3);
    EXPECT_EQ(meter.progress(), nullptr);
}

TEST(WorkMeter, AnOperationInsideAnotherOneDoesNotCount) {
    WorkProgress progress;
    const WatchedWork watched(progress);
    {
        WorkMeter outer(2);
        outer.add(1);
        WorkMeter inner(1000);
        inner.add(1000);
        EXPECT_EQ(progress.total, 2u);
        EXPECT_EQ(progress.done, 1u);
    }
    EXPECT_EQ(progress.total, 0u);  // not known until the next one begins
    const WorkMeter next(5);
    EXPECT_EQ(progress.total, 5u);
    EXPECT_EQ(progress.done, 0u);
}

TEST(WorkMeter, CountsThePiecesOfAFile) {
    const std::string path = ::testing::TempDir() + "/work_meter_pieces.txt";
    for (const unsigned threads : {1u, 3u}) {
        WorkProgress progress;
        const WatchedWork watched(progress);
        std::uint64_t most = 0;
        OutputFile file(path);
        write_pieces(
            file, 100,
            [&](OutputBuffer& out) {
                return [&](std::size_t) {
                    if (threads == 1) most = progress.done;
                    out.write("x");
                };
            },
            threads);
        EXPECT_EQ(progress.done, 100u);
        if (threads == 1) {
            EXPECT_EQ(most, 99u);
        }
    }
    std::filesystem::remove(path);
}

}  // namespace
}  // namespace marey
