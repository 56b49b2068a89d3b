// json_check_test.cpp: tests of json_check.h.
#include "base/json_check.h"

#include <gtest/gtest.h>

#include <string>

namespace kymo {
namespace {

TEST(JsonCheckTest, WholeValuesAreJson) {
    for (const char* text : {"null", " true ", "-0.5e+10", "0", "\"\\u00fc\\n\xc3\xbc\"", "[]", "{}",
                             "{\"a\":[1,2,{\"b\":null}]}", "[[[]]]"})
        EXPECT_TRUE(is_json(text)) << text;
}

TEST(JsonCheckTest, AnythingElseIsNot) {
    for (const char* text :
         {"",      "nul", "01",      "1.",        "-",      "1e",       "[1,]",         "{\"a\"}",
          "{a:1}", "\"",  "\"\\x\"", "\"\\u12\"", "\"\n\"", "\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"",
          "1 2",   "[",   "NaN",     "'a'"})
        EXPECT_FALSE(is_json(text)) << text;
    EXPECT_FALSE(is_json(std::string("\"\\\0\"", 4)));
}

TEST(JsonCheckTest, DepthIsBounded) {
    EXPECT_TRUE(is_json(std::string(200, '[') + std::string(200, ']')));
    EXPECT_FALSE(is_json(std::string(100000, '[')));
}

}  // namespace
}  // namespace kymo
