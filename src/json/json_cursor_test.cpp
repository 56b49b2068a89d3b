// json_cursor_test.cpp: values of every form, complete and cut off.
#include "json/json_cursor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "json/json_members.h"

namespace marey {
namespace {

/// A text followed by the bytes that a cursor may read after it.
class Padded {
  public:
    explicit Padded(std::string text) : size_(text.size()), text_(std::move(text)) {
        text_ += '"';
        text_.append(JsonCursor::kPadding, '\0');
    }
    JsonCursor cursor() const { return {text_.data(), text_.data() + size_}; }

  private:
    std::size_t size_;
    std::string text_;
};

TEST(JsonCursor, NumbersAreReadAsTheyAreWritten) {
    const auto read = [](const std::string& text) {
        const Padded padded(text + ",");
        JsonCursor cursor = padded.cursor();
        JsonNumber number;
        EXPECT_TRUE(cursor.read_number(number)) << text;
        EXPECT_EQ(cursor.peek(), ',') << text;
        return number;
    };
    for (const std::int64_t value :
         {std::int64_t{0}, std::int64_t{7}, std::int64_t{-7}, std::int64_t{1234567}, std::int64_t{12345678},
          std::int64_t{-123456789012345678}, std::numeric_limits<std::int64_t>::max(),
          std::numeric_limits<std::int64_t>::min()}) {
        const JsonNumber number = read(std::to_string(value));
        EXPECT_EQ(number.kind, JsonNumber::Kind::Int);
        EXPECT_EQ(number.integer, value);
    }
    EXPECT_EQ(read("18446744073709551615").magnitude, ~std::uint64_t{0});
    EXPECT_EQ(read("18446744073709551615").kind, JsonNumber::Kind::Unsigned);
    EXPECT_EQ(read("0.1").real, 0.1);
    EXPECT_EQ(read("-12e3").real, -12000.0);
    EXPECT_EQ(read("123456789012345678901234567890").real, 123456789012345678901234567890.0);
    EXPECT_TRUE(std::isinf(read("1e999").real));
    EXPECT_EQ(read("1e-999").real, 0.0);
}

TEST(JsonCursor, OtherTextsAreNotReadAsNumbers) {
    for (const char* const text : {"x", "-", ".", "--1", "1x", "1.2.3", "\"1\"", "[1]", "1e", "+1"}) {
        const Padded padded(std::string(text) + ",");
        JsonCursor cursor = padded.cursor();
        JsonNumber number;
        EXPECT_FALSE(cursor.read_number(number)) << text;
        EXPECT_FALSE(cursor.ran_out()) << text;
    }
}

TEST(JsonCursor, DecimalsAreScaledExactly) {
    const auto scaled = [](const std::string& text) {
        std::int64_t direct = -1, read = -1;
        const bool is_number = scaled_decimal(text, 3, direct);
        const Padded padded(text + " ");
        JsonCursor cursor = padded.cursor();
        EXPECT_EQ(cursor.read_scaled(3, read), is_number) << text;
        if (is_number) {
            EXPECT_EQ(read, direct) << text;
        }
        return is_number ? std::to_string(direct) : "no";
    };
    EXPECT_EQ(scaled("0"), "0");
    EXPECT_EQ(scaled("1.5"), "1500");
    EXPECT_EQ(scaled("-1.5"), "-1500");
    EXPECT_EQ(scaled("1790857026123456.789"), "1790857026123456789");
    EXPECT_EQ(scaled("0.0004"), "0");
    EXPECT_EQ(scaled("0.0005"), "1");
    EXPECT_EQ(scaled("0.00049999999999999999999999"), "0");
    EXPECT_EQ(scaled("12345.67891234567890123456789"), "12345679");
    EXPECT_EQ(scaled("1e3"), "1000000");
    EXPECT_EQ(scaled("1.25E-2"), "13");
    EXPECT_EQ(scaled("25e-4"), "3");
    EXPECT_EQ(scaled("1e-300"), "0");
    EXPECT_EQ(scaled("0e999999999999"), "0");
    EXPECT_EQ(scaled("9223372036854775.807"), "9223372036854775807");
    EXPECT_EQ(scaled("9223372036854775.808"), "no");
    EXPECT_EQ(scaled("1e30"), "no");
    EXPECT_EQ(scaled("99999999999999999999999"), "no");
    EXPECT_EQ(scaled("x"), "no");
    EXPECT_EQ(scaled("1e"), "no");
}

TEST(JsonCursor, EveryPlaceToCutAValueRunsOut) {
    const std::string value = R"({"a\"b":[1,-2.5e3,"x\\\u00e9\ud83d\ude00",{"c":null}],"d":true})";
    for (std::size_t size = 0; size < value.size(); ++size) {
        const Padded padded(value.substr(0, size));
        JsonCursor cursor = padded.cursor();
        EXPECT_FALSE(cursor.skip_value()) << size;
        EXPECT_TRUE(cursor.ran_out()) << size;
    }
    const Padded padded(value + ",");
    JsonCursor cursor = padded.cursor();
    std::string_view text;
    ASSERT_TRUE(cursor.skip_value(text));
    EXPECT_EQ(text, value);
}

TEST(JsonCursor, StringsAreUnescaped) {
    const auto read = [](const std::string& text) {
        const Padded padded(text + ",");
        JsonCursor cursor = padded.cursor();
        std::string_view value;
        return cursor.read_string(value) ? std::string(value) : "(none)";
    };
    EXPECT_EQ(read(R"("")"), "");
    EXPECT_EQ(read(R"("a\"\\\/\b\f\n\r\t")"), "a\"\\/\b\f\n\r\t");
    EXPECT_EQ(read(R"("\u0041\u00e9\u20ac\ud83d\ude00")"), "A\u00e9\u20ac\U0001F600");
    EXPECT_EQ(read(R"("\ud83dx")"), "\uFFFDx");
    EXPECT_EQ(read(R"("\ude00\ud83d\u0041")"), "\uFFFD\uFFFDA");
    EXPECT_EQ(read(R"("\uZZZZ\q")"), "\\uZZZZ\\q");
    EXPECT_EQ(read(R"("a\u")"), "a\\u") << "however much text follows";
    EXPECT_EQ(read("no string"), "(none)");
    const std::string whole = R"("a\n\u00e9\ud83d\ude00\q")";
    for (std::size_t size = 0; size < whole.size(); ++size) {
        const Padded padded(whole.substr(0, size));
        JsonCursor cursor = padded.cursor();
        std::string_view value;
        EXPECT_FALSE(cursor.read_string(value)) << size;
        EXPECT_TRUE(cursor.ran_out()) << size;
    }
}

TEST(JsonMembers, KeysAreFoundWhetherGuessedOrNot) {
    JsonMembers members;
    const auto keys = [&](const std::string& text) {
        const Padded padded(text);
        JsonCursor cursor = padded.cursor();
        EXPECT_TRUE(cursor.take('{'));
        std::string all;
        std::uint32_t index = JsonMembers::kStart;
        while (true) {
            index = members.next(cursor, index, 0, [](std::string_view key) {
                return static_cast<std::uint32_t>(1 + key[0] - 'a');
            });
            if (index == JsonMembers::kEnd) return all;
            if (index == JsonMembers::kFailed) return all + (cursor.ran_out() ? " ran out" : " failed");
            all += static_cast<char>('a' + index - 1);
            std::string_view value;
            if (!cursor.skip_value(value)) return all + " no value";
            all += value;
        }
    };
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(keys(R"({"a":1, "b": 2,"c":3} )"), "a1b2c3");
        EXPECT_EQ(keys(R"({"a":1, "b": 2,"d":3} )"), "a1b2d3");
        EXPECT_EQ(keys(R"({ "b":[1], "a":{}, } )"), "b[1]a{}");
        EXPECT_EQ(keys("{} "), "");
        EXPECT_EQ(keys(R"({"a":1 "b":2})"), "a1 failed");
    }
    const std::string whole = R"({"a":1, "b": 2,"c":3})";
    for (std::size_t size = 1; size < whole.size(); ++size) {
        const std::string read = keys(whole.substr(0, size));
        EXPECT_TRUE(read.ends_with("ran out") || read.ends_with("no value")) << size << ": " << read;
    }
}

}  // namespace
}  // namespace marey
