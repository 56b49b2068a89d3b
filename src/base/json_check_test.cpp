// json_check_test.cpp: what is JSON and what is not, also by another reader's judgement.
#include "base/json_check.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "base/strict_json.h"

namespace kymo {
namespace {

TEST(JsonCheck, AcceptsStrictJson) {
    for (const char* const text :
         {"0", "-1.5e+7", " [ ] ", "{}", R"({"a": [1, {"b": null}], "": "\u00e9\n"})", "true", "\"\xC3\xA9\"",
          "[[[]]]", "1E5"})
        EXPECT_TRUE(is_json(text)) << text;
}

TEST(JsonCheck, RefusesEverythingElse) {
    for (const char* const text :
         {"",       " ",        "01",    "1.",         ".5",  "+1",  "-",        "1e",          "[1,]",
          "[,1]",   "{\"a\"}",  "{a:1}", "{\"a\":1,}", "'x'", "nul", "\"\\x\"",  "\"\\u12g4\"", "\"a",
          "\"\n\"", "\"\xFF\"", "1 2",   "[1",         "]",   "NaN", "Infinity", "//"})
        EXPECT_FALSE(is_json(text)) << text;
    EXPECT_FALSE(is_json(std::string(100'000, '[')));
    EXPECT_FALSE(is_json(std::string_view("1\0", 2)));
}

TEST(JsonCheck, AgreesWithTheReaderOnRandomTexts) {
    std::mt19937 random(3);
    constexpr std::string_view kLetters = "[]{},:\"01-.eE+ \\untrfalsx";
    int accepted = 0;
    for (int round = 0; round < 200'000; ++round) {
        std::string text(random() % 7, ' ');
        for (char& c : text) c = kLetters[random() % kLetters.size()];
        StrictJson::Value value;
        const std::string complaint = StrictJson::parse(text, value);
        ASSERT_EQ(is_json(text), complaint.empty()) << text << ": " << complaint;
        accepted += complaint.empty();
    }
    EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace kymo
