// backoff_test.cpp: the guarantees of the backoff.
#include "base/backoff.h"

#include <cstddef>

#include <gtest/gtest.h>

namespace marey {
namespace {

int subjects[256];

TEST(BackoffTest, most_calls_for_one_subject_skip_the_check) {
    Backoff backoff;
    std::size_t count = 0;
    for (int i = 0; i < 100'000; ++i) {
        if (!backoff.is_due(&subjects[0])) continue;
        ++count;
        backoff.failed(&subjects[0]);
    }
    EXPECT_LE(count, 11 + 100'000 / Backoff::kMaxSkips);
    EXPECT_GE(count, 100'000 / (Backoff::kMaxSkips + 1));
}

TEST(BackoffTest, a_successful_check_resets_the_backoff) {
    Backoff backoff;
    for (int i = 0; i < 1000; ++i) {
        if (backoff.is_due(&subjects[0])) backoff.failed(&subjects[0]);
    }
    backoff.succeeded(&subjects[0]);
    EXPECT_TRUE(backoff.is_due(&subjects[0]));
    backoff.failed(&subjects[0]);
    EXPECT_FALSE(backoff.is_due(&subjects[0]));
    EXPECT_TRUE(backoff.is_due(&subjects[0]));
}

TEST(BackoffTest, subjects_do_not_delay_each_other) {
    Backoff backoff;
    backoff.failed(&subjects[0]);
    for (int i = 1; i < 256; ++i) EXPECT_TRUE(backoff.is_due(&subjects[i])) << i;
    backoff.succeeded(&subjects[255]);
    EXPECT_FALSE(backoff.is_due(&subjects[0]));
}

}  // namespace
}  // namespace marey
