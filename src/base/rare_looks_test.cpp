// rare_looks_test.cpp: what putting looks off promises.
#include "base/rare_looks.h"

#include <cstddef>

#include <gtest/gtest.h>

namespace marey {
namespace {

int subjects[256];

TEST(RareLooksTest, most_questions_about_one_subject_need_no_look) {
    RareLooks looks;
    std::size_t count = 0;
    for (int i = 0; i < 100'000; ++i) {
        if (!looks.is_due(&subjects[0])) continue;
        ++count;
        looks.was_in_vain(&subjects[0]);
    }
    EXPECT_LE(count, 11 + 100'000 / RareLooks::kMostLeftOut);
    EXPECT_GE(count, 100'000 / (RareLooks::kMostLeftOut + 1));
}

TEST(RareLooksTest, a_look_that_succeeded_begins_anew) {
    RareLooks looks;
    for (int i = 0; i < 1000; ++i) {
        if (looks.is_due(&subjects[0])) looks.was_in_vain(&subjects[0]);
    }
    looks.succeeded(&subjects[0]);
    EXPECT_TRUE(looks.is_due(&subjects[0]));
    looks.was_in_vain(&subjects[0]);
    EXPECT_FALSE(looks.is_due(&subjects[0]));
    EXPECT_TRUE(looks.is_due(&subjects[0]));
}

TEST(RareLooksTest, subjects_do_not_put_each_other_off) {
    RareLooks looks;
    looks.was_in_vain(&subjects[0]);
    for (int i = 1; i < 256; ++i) EXPECT_TRUE(looks.is_due(&subjects[i])) << i;
    looks.succeeded(&subjects[255]);
    EXPECT_FALSE(looks.is_due(&subjects[0]));
}

}  // namespace
}  // namespace marey
