// pieces_test.cpp: the division of work among threads does not affect the file.
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <sstream>

#include <marey/error.h>
#include <marey/export.h>

#include "formats/chrome/write.h"
#include "formats/chrome/write_events.h"
#include "formats/full_trace_fixture.h"
#include "trace/random_trace_fixture.h"

namespace marey {
namespace {

using testing::random_trace;
using testing::random_training_trace;

constexpr ChromeCut kWhole{.rows_of_piece = ~std::size_t{0}, .threads = 1};

std::string text_of(const Trace& trace, ChromeCut cut) {
    std::ostringstream stream;
    write_chrome_json(trace, stream, cut);
    return stream.str();
}

void expect_same(const Trace& trace, const std::string& what) {
    const std::string whole = text_of(trace, kWhole);
    for (const std::size_t rows : {1, 2, 7, 50}) {
        for (const unsigned threads : {1u, 2u, 5u})
            ASSERT_TRUE(text_of(trace, {rows, threads}) == whole) << what << ": " << rows << " " << threads;
    }
    ASSERT_TRUE(text_of(trace, ChromeCut{}) == whole) << what;
}

TEST(ChromePieces, AnyPartitionOfATraceWithOneOfEverythingGivesTheSameBytes) {
    expect_same(full_trace(), "full");
    expect_same(Trace(), "empty");
}

// K11
TEST(ChromePieces, AnyPartitionOfRandomTracesGivesTheSameBytes) {
    for (unsigned seed = 0; seed < 30; ++seed) {
        const std::string name = std::to_string(seed);
        expect_same(random_trace(seed, {.max_ranges = 300}), "tame " + name);
        expect_same(random_trace(seed, {.max_ranges = 300, .is_arbitrary = true}), "wild " + name);
    }
    for (unsigned seed = 0; seed < 5; ++seed)
        expect_same(random_training_trace(seed, 500), "training " + std::to_string(seed));
}

TEST(ChromePieces, ALargeTraceUsesAllCoresByDefault) {
    const Trace trace = random_training_trace(1, 15'000);
    ASSERT_TRUE(text_of(trace, ChromeCut{}) == text_of(trace, kWhole));
}

TEST(ChromePieces, HoldEveryRowOnceInOrder) {
    const Trace trace = random_training_trace(3);
    const ChromePieces pieces(trace, 64);
    Row next = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        std::size_t rows = 0;
        for (const ChromeRun& run : pieces[i]) {
            ASSERT_EQ(run.table, ChromeRun::Table::Ranges);
            const TrackInfo& track = trace.tracks()[run.track];
            EXPECT_GE(run.first, track.first_range);
            EXPECT_LE(run.end, track.first_range + track.range_count);
            EXPECT_EQ(run.first, next);
            next = run.end;
            rows += run.end - run.first;
        }
        EXPECT_TRUE(rows == 64 || i + 1 == pieces.size());
    }
    EXPECT_EQ(next, trace.ranges().size());
    EXPECT_EQ(pieces.rows(), trace.ranges().size());
}

TEST(ChromePieces, AFullDiskIsAnErrorOnAnyNumberOfThreads) {
    if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full";
    const Trace trace = random_training_trace(2, 2000);
    for (const unsigned threads : {1u, 2u, 8u}) {
        try {
            write_chrome_json(trace, "/dev/full", {64, threads});
            FAIL() << "no error";
        } catch (const Error& error) {
            EXPECT_STREQ(error.what(), "/dev/full: cannot write: No space left on device");
        }
    }
}

}  // namespace
}  // namespace marey
