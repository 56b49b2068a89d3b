// json_document_test.cpp: values are found by their paths, whatever their kinds.
#include "json/json_document.h"

#include <gtest/gtest.h>

namespace marey {
namespace {

TEST(JsonDocument, FindsMembersAndItemsAfterNestedOnes) {
    const JsonDocument document(
        R"({"a": {"b": [1, {"c": []}, "x\u00e9\n"], "d": true}, "e": -2.5e1, "f": "7"})");
    ASSERT_EQ(document.error(), "");
    const JsonDocument::Value root = document.root();
    const auto items = root["a"]["b"].items();
    ASSERT_EQ(items.size(), 3u);
    EXPECT_EQ(items[0].integer(), 1);
    EXPECT_TRUE(items[1]["c"].is_array());
    EXPECT_EQ(items[2].text(), "x\xc3\xa9\n");
    EXPECT_TRUE(root["a"]["d"].is_true());
    EXPECT_EQ(root["e"].number(), -25.0);
    EXPECT_EQ(root["e"].scaled(3), -25000);
    EXPECT_EQ(root["f"].integer(), 7);
}

TEST(JsonDocument, EveryQuestionHasAnAnswerForEveryKind) {
    const JsonDocument document(R"([null, {}, [], "text", 1.5, 99999999999999999999])");
    for (const JsonDocument::Value& value : document.root().items()) {
        EXPECT_TRUE(value["missing"]["deeper"].is_null());
        EXPECT_TRUE(value.items().empty());
        EXPECT_FALSE(value.integer());
    }
    EXPECT_FALSE(document.root().items()[5].scaled(9));
    EXPECT_TRUE(JsonDocument::Value().is_null());
}

TEST(JsonDocument, InvalidTextsAreNull) {
    for (const char* const text : {"", "{", "[1,]", "{\"a\":1} x", "\"\xff\"", "nul"}) {
        const JsonDocument document(text);
        EXPECT_NE(document.error(), "") << text;
        EXPECT_TRUE(document.root().is_null());
    }
}

}  // namespace
}  // namespace marey
