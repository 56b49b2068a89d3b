// backoff_test.cpp: what putting looks off promises.
#include "base/backoff.h"

#include <cstddef>

#include <gtest/gtest.h>

namespace marey {
namespace {

int subjects[256];

TEST(BackoffTest, most_questions_about_one_subject_need_no_look) {
    Backoff looks;
    std::size_t count = 0;
    for (int i = 0; i < 100'000; ++i) {
        if (!looks.is_due(&subjects[0])) continue;
        ++count;
        looks.failed(&subjects[0]);
    }
    EXPECT_LE(count, 11 + 100'000 / Backoff::kMaxSkips);
    EXPECT_GE(count, 100'000 / (Backoff::kMaxSkips + 1));
}

TEST(BackoffTest, a_look_that_succeeded_begins_anew) {
    Backoff looks;
    for (int i = 0; i < 1000; ++i) {
        if (looks.is_due(&subjects[0])) looks.failed(&subjects[0]);
    }
    looks.succeeded(&subjects[0]);
    EXPECT_TRUE(looks.is_due(&subjects[0]));
    looks.failed(&subjects[0]);
    EXPECT_FALSE(looks.is_due(&subjects[0]));
    EXPECT_TRUE(looks.is_due(&subjects[0]));
}

TEST(BackoffTest, subjects_do_not_put_each_other_off) {
    Backoff looks;
    looks.failed(&subjects[0]);
    for (int i = 1; i < 256; ++i) EXPECT_TRUE(looks.is_due(&subjects[i])) << i;
    looks.succeeded(&subjects[255]);
    EXPECT_FALSE(looks.is_due(&subjects[0]));
}

}  // namespace
}  // namespace marey
