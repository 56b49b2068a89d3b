// toml_syntax_test.cpp: valid documents have no error, and errors have their line.
#include "cli/toml_syntax.h"

#include <gtest/gtest.h>

namespace marey::cli {
namespace {

TEST(TomlSyntax, FindsNothingInAValidDocument) {
    EXPECT_EQ(toml_syntax_error(""), "");
    EXPECT_EQ(toml_syntax_error("\xEF\xBB\xBF# only a comment"), "");
    EXPECT_EQ(toml_syntax_error(R"toml(
title = "a \"quoted\" text" # comment
'literal key' = 'C:\path'
site."google.com".port = 0x1F
dates = [1979-05-27T07:32:00Z, 1979-05-27 07:32:00.5, 1979-05-27, 07:32:00]
numbers = [+1, -0.5e-3, 1_000, inf, -nan, 0b101, 0o17]
empty = []
lines = [
    "a",  # with a comment
    ["b", 'c'],
]
inline = { x = 1, "y z" = [true, false], deep = { v = "" } }
long = """
several "lines"
with \
  an escape\n"""
raw = '''
\ is nothing special here'''

[tool.marey.report]
rows = 5
[[products]]
name = "x"
[ spaced . "out" ]
)toml"),
              "");
    EXPECT_EQ(toml_syntax_error("a = 1\r\n[b]\r\nc = 2\r\n"), "");
}

TEST(TomlSyntax, NamesTheLineOfTheFirstError) {
    EXPECT_EQ(toml_syntax_error("a = 1\n[tool.marey.report\nrows = 5\n"),
              "line 2: expected ']' after the name of a table");
    EXPECT_EQ(toml_syntax_error("[tool.marey.report]\nrows 5\n"), "line 2: expected '=' after the key");
    EXPECT_EQ(toml_syntax_error("[tool.marey.report]\nrows =\n"), "line 2: expected a value");
    EXPECT_EQ(toml_syntax_error("sort = total\n"),
              "line 1: expected a value (is a text without quotation marks?)");
    EXPECT_EQ(toml_syntax_error("\n\nsort = \"total\nrows = 5\n"),
              "line 3: expected a quotation mark at the end of the text");
    EXPECT_EQ(toml_syntax_error("a = [1, 2\n"), "line 2: expected ',' or ']' in an array");
    EXPECT_EQ(toml_syntax_error("a = [[1]"), "line 1: expected ',' or ']' in an array");
    EXPECT_EQ(toml_syntax_error("a = ["), "line 1: expected ']' at the end of an array");
    EXPECT_EQ(toml_syntax_error("a = { b = 1\n"), "line 1: expected ',' or '}' in a table");
    EXPECT_EQ(toml_syntax_error("a = \"\"\"never closed"),
              "line 1: expected three quotation marks at the end of the text");
    EXPECT_EQ(toml_syntax_error("a = \"\\q\"\n"), "line 1: unknown escape sequence in a text");
    EXPECT_EQ(toml_syntax_error("a = 1 b = 2\n"), "line 1: expected the end of the line");
    EXPECT_EQ(toml_syntax_error("= 1\n"), "line 1: expected a key");
    EXPECT_EQ(toml_syntax_error("a = " + std::string(1000, '[')), "line 1: values are nested too deeply");
}

}  // namespace
}  // namespace marey::cli
