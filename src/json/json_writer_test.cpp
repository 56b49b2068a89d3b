// json_writer_test.cpp: JSON text is strict whatever the input.
#include "json/json_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "json/strict_json_fixture.h"

namespace marey {
namespace {

std::string as_json(std::string_view bytes) {
    std::string out;
    append_json_string(out, bytes);
    return out;
}

TEST(JsonString, PlainTextIsKept) {
    EXPECT_EQ(as_json("load file"), "\"load file\"");
    EXPECT_EQ(as_json(""), "\"\"");
}

TEST(JsonString, QuotesBackslashesAndControlCharactersAreEscaped) {
    EXPECT_EQ(as_json("a\"b\\c\n\t\r"), "\"a\\\"b\\\\c\\n\\t\\r\"");
    EXPECT_EQ(as_json(std::string_view("\0\x1b\x7f", 3)), "\"\\u0000\\u001b\\u007f\"");
}

TEST(JsonString, ValidUtf8IsKept) {
    const std::string text = "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x94\xA5 \xF4\x8F\xBF\xBF";
    EXPECT_EQ(as_json(text), "\"" + text + "\"");
}

TEST(JsonString, InvalidUtf8BecomesOneReplacementPerMaximalPart) {
    const std::string r = "\xEF\xBF\xBD";
    EXPECT_EQ(as_json("\xFF"), "\"" + r + "\"");
    EXPECT_EQ(as_json("a\x80z"), "\"a" + r + "z\"");
    EXPECT_EQ(as_json("\xC0\xAF"), "\"" + r + r + "\"") << "overlong";
    EXPECT_EQ(as_json("\xED\xA0\x80"), "\"" + r + r + r + "\"") << "surrogate";
    EXPECT_EQ(as_json("\xF0\x9F\x94"), "\"" + r + "\"") << "cut off";
    EXPECT_EQ(as_json("\xF0\x9F\x94z"), "\"" + r + "z\"");
    EXPECT_EQ(as_json("\xF4\x90\x80\x80"), "\"" + r + r + r + r + "\"") << "above U+10FFFF";
}

TEST(JsonString, RandomBytesParseBackAsStrictJson) {
    std::mt19937 random(7);
    for (int round = 0; round < 20000; ++round) {
        std::string bytes(random() % 24, '\0');
        // Bytes near the limits of UTF-8 more often than others.
        static constexpr unsigned char kEdges[] = {0x00, 0x1F, 0x22, 0x5C, 0x7F, 0x80, 0xBF, 0xC1, 0xC2,
                                                   0xE0, 0xA0, 0xED, 0x9F, 0xEF, 0xF0, 0x90, 0xF4, 0x8F};
        for (char& c : bytes)
            c = static_cast<char>(random() % 3 ? kEdges[random() % std::size(kEdges)] : random() % 256);
        const std::string text = as_json(bytes);
        StrictJson::Value value;
        ASSERT_EQ(StrictJson::parse(text, value), "") << "round " << round;
        ASSERT_EQ(value.kind, StrictJson::Kind::String);
        // Valid text is unchanged.
        std::string again = as_json(value.text);
        ASSERT_EQ(again, text);
    }
}

TEST(JsonNumber, ReadsBackEqual) {
    for (const double value : {0.0, -0.0, 1.0, 0.1, 1e300, -2.5e-308, 5e-324, 123456789.125}) {
        std::string out;
        append_json_number(out, value);
        EXPECT_EQ(std::strtod(out.c_str(), nullptr), value) << out;
    }
    std::string out;
    append_json_number(out, std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(out, "-9223372036854775808");
}

TEST(JsonNumber, NotANumberAndInfinityBecomeStrings) {
    std::string out;
    append_json_number(out, std::nan(""));
    append_json_number(out, HUGE_VAL);
    append_json_number(out, -HUGE_VAL);
    EXPECT_EQ(out, "\"NaN\"\"Infinity\"\"-Infinity\"");
}

TEST(JsonWriterClass, PutsCommasAndBracketsInPlace) {
    std::string out;
    JsonWriter json(out);
    json.begin_object().member("a", 1).key("list").begin_array().value(true).value("x").null().end_array();
    json.key("empty").begin_object().end_object().member("last", 2.5).end_object();
    EXPECT_EQ(out, R"({"a":1,"list":[true,"x",null],"empty":{},"last":2.5})");
}

TEST(JsonWriterClass, IndentsForPeople) {
    std::string out;
    JsonWriter json(out, 2);
    json.begin_object().member("a", 1).key("b").begin_array().end_array().end_object();
    EXPECT_EQ(out, "{\n  \"a\": 1,\n  \"b\": []\n}");
}

}  // namespace
}  // namespace marey
