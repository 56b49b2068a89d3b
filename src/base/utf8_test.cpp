// utf8_test.cpp: valid UTF-8 is unchanged, everything else is replaced.
#include "base/utf8.h"

#include <gtest/gtest.h>

namespace marey {
namespace {

std::string valid(std::string_view bytes) {
    std::string out;
    append_utf8(out, bytes);
    return out;
}

TEST(Utf8, KeepsWellFormedText) {
    for (const std::string_view text : {"", "plain", "\xC3\xA9", "\xE2\x82\xAC x", "\xF0\x9F\x98\x80"})
        EXPECT_EQ(valid(text), text);
}

TEST(Utf8, ReplacesEachBrokenPartOnce) {
    EXPECT_EQ(valid("a\xFFz"), "a\xEF\xBF\xBDz");
    EXPECT_EQ(valid("\xE2\x82"), "\xEF\xBF\xBD");
    EXPECT_EQ(valid("\xE2\x82x"), "\xEF\xBF\xBDx");
    EXPECT_EQ(valid("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // a surrogate
    EXPECT_EQ(valid("\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD");                  // overlong
}

}  // namespace
}  // namespace marey
