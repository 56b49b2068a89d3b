// json_scanner_test.cpp: the scanner accepts strict JSON only, and returns its contents.
#include "json/json_scanner.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "json/json_writer.h"

namespace marey {
namespace {

TEST(JsonScanner, AcceptsCompleteValues) {
    for (const char* text :
         {"null", " true ", "0", "-0.5e+10", "\"\"", "[]", "{}", "[[],{}]",
          "{\"a\":[1,{\"b\":null}],\"c\":\"\"}", "\"\\u00e9\\ud83d\\ude00\\n\"", "\"\xC3\xA9\""})
        EXPECT_EQ(json_error(text), "") << text;
}

TEST(JsonScanner, DistinguishesALoneSurrogateFromAnUnknownEscape) {
    for (const char* text :
         {R"("\ud800")", R"("\udc00")", R"("\ud800x")", R"("\ud800\u0041")", R"("\ud800\n")"})
        EXPECT_NE(json_error(text).find("lone surrogate"), std::string::npos) << json_error(text);
    for (const char* text : {R"("\q")", R"("\u12")", R"("\ud800\u12")"})
        EXPECT_NE(json_error(text).find("unknown escape"), std::string::npos) << json_error(text);
}

TEST(JsonScanner, RejectsInvalidJson) {
    for (const char* text : {"",
                             " ",
                             "nul",
                             "01",
                             "1.",
                             ".5",
                             "+1",
                             "1e",
                             "-",
                             "[1,]",
                             "[,1]",
                             "{,}",
                             "{\"a\"}",
                             "{\"a\":}",
                             "{a:1}",
                             "{\"a\":1,}",
                             "[1 2]",
                             "1 2",
                             "]",
                             "[}",
                             "\"",
                             "\"\\x\"",
                             "\"\\u12\"",
                             "\"\\ud800\"",
                             "\"\\ud800\\u0041\"",
                             "\"\\udc00\"",
                             "\"\n\"",
                             "\"\xFF\"",
                             "\"\xC0\x80\"",
                             "NaN",
                             "'a'",
                             "// c"})
        EXPECT_NE(json_error(text), "") << text;
    EXPECT_NE(json_error(std::string("\"\0\"", 3)), "");
    EXPECT_NE(json_error(std::string(100'000, '[')), "");
    EXPECT_FALSE(is_json(std::string_view("1\0", 2)));
}

TEST(JsonScanner, AcceptsAsManyShortTextsAsPythonsReader) {
    constexpr std::string_view kLetters = "[]{},:\"01-.e ";
    int accepted = 0;
    std::vector<std::string> texts = {""};
    for (std::size_t i = 0; i < texts.size(); ++i) {
        accepted += is_json(texts[i]);
        if (texts[i].size() == 5) continue;
        for (const char letter : kLetters) texts.push_back(texts[i] + letter);
    }
    EXPECT_EQ(accepted, 2815);  // of all texts of these letters, json.loads() of Python 3.11 accepts so many
}

TEST(JsonScanner, UnescapesStrings) {
    JsonScanner scanner(R"({"k\u0041":"a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"})");
    EXPECT_EQ(scanner.next(), JsonToken::BeginObject);
    EXPECT_EQ(scanner.next(), JsonToken::Key);
    EXPECT_EQ(scanner.text(), "kA");
    EXPECT_EQ(scanner.next(), JsonToken::String);
    EXPECT_EQ(scanner.text(), "a\"\\/\b\f\n\r\t\xC3\xA9\xF0\x9F\x98\x80");
    EXPECT_EQ(scanner.next(), JsonToken::EndObject);
    EXPECT_EQ(scanner.next(), JsonToken::End);
}

TEST(JsonScanner, ReadsTheWritersOutputForAnyBytes) {
    std::mt19937 random(3);
    for (int round = 0; round < 2000; ++round) {
        std::string bytes(random() % 20, '\0');
        for (char& c : bytes) c = static_cast<char>(random());
        std::string text;
        append_json_string(text, bytes);
        std::string expected;
        append_utf8(expected, bytes);
        JsonScanner scanner(text);
        ASSERT_EQ(scanner.next(), JsonToken::String) << scanner.error();
        EXPECT_EQ(scanner.text(), expected);
        EXPECT_EQ(scanner.next(), JsonToken::End);
    }
}

TEST(JsonScanner, SkipsAnEntireValue) {
    JsonScanner scanner(R"([{"a":[1,2,{"b":3}]},4])");
    EXPECT_EQ(scanner.next(), JsonToken::BeginArray);
    EXPECT_TRUE(scanner.skip(scanner.next()));
    EXPECT_EQ(scanner.next(), JsonToken::Number);
    EXPECT_EQ(scanner.raw(), "4");
}

}  // namespace
}  // namespace marey
