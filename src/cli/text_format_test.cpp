// text_format_test.cpp: numbers, names and tables in readable form.
#include "cli/text_format.h"

#include <gtest/gtest.h>

#include "cli/capture_files.h"
#include "cli/table.h"

namespace marey::cli {
namespace {

TEST(TextFormat, CharactersThatReorderOrHideTextBecomeEscapes) {
    EXPECT_EQ(printable("a\u202Eb"), "a\\u202eb");
    EXPECT_EQ(printable("\u2066\u200B\uFEFF\u061C\u00AD"), "\\u2066\\u200b\\ufeff\\u061c\\u00ad");
    EXPECT_EQ(printable("\U000E0041"), "\\udb40\\udc41");
    EXPECT_EQ(printable("caf\u00E9 \u05D0\u4E2D \U0001F600"), "caf\u00E9 \u05D0\u4E2D \U0001F600");
    EXPECT_EQ(printable("a\nb\tc\r", "\n\t"), "a\nb\tc\\r");
}

TEST(FormatDuration, ShowsThreeDigitsInTheBestUnit) {
    EXPECT_EQ(format_duration(0), "0 ns");
    EXPECT_EQ(format_duration(7), "7 ns");
    EXPECT_EQ(format_duration(7.5), "7.50 ns");
    EXPECT_EQ(format_duration(999), "999 ns");
    EXPECT_EQ(format_duration(1000), "1.00 us");
    EXPECT_EQ(format_duration(12345), "12.3 us");
    EXPECT_EQ(format_duration(123456), "123 us");
    EXPECT_EQ(format_duration(4.56e6), "4.56 ms");
    EXPECT_EQ(format_duration(1.5e9), "1.50 s");
    EXPECT_EQ(format_duration(1234.5e9), "1,234 s");
}

TEST(FormatDuration, RoundingUpGoesToTheNextUnit) {
    EXPECT_EQ(format_duration(999.7), "1.00 us");
    EXPECT_EQ(format_duration(999'600), "1.00 ms");
    EXPECT_EQ(format_duration(99'960), "100 us");
    EXPECT_EQ(format_duration(9'996), "10.0 us");
}

TEST(FormatCount, GroupsDigits) {
    EXPECT_EQ(format_count(0), "0");
    EXPECT_EQ(format_count(999), "999");
    EXPECT_EQ(format_count(1234567), "1,234,567");
    EXPECT_EQ(format_plural(1, "range"), "1 range");
    EXPECT_EQ(format_plural(2000, "range"), "2,000 ranges");
}

TEST(FormatBytes, CountsInPowersOf1024) {
    EXPECT_EQ(format_bytes(512), "512 B");
    EXPECT_EQ(format_bytes(1536), "1.50 KiB");
    EXPECT_EQ(format_bytes(std::uint64_t{5} << 30), "5.00 GiB");
}

TEST(Printable, ControlCharactersBecomeVisible) {
    EXPECT_EQ(printable("a\nb\x1b[31m"), "a\\nb\\x1b[31m");
    EXPECT_EQ(printable("\xC2\x9B"), "\\u009b") << "the C1 escape introducer";
    EXPECT_EQ(printable("\xFF"
                        "a"),
              "\xEF\xBF\xBD"
              "a");
    EXPECT_EQ(printable("\xE6\x97\xA5"), "\xE6\x97\xA5");
}

TEST(FormatShare, NeverShowsASmallShareAsZero) {
    EXPECT_EQ(format_share(0), "0.0%");
    EXPECT_EQ(format_share(1e-9), "<0.1%");
    EXPECT_EQ(format_share(0.0005), "0.1%");
    EXPECT_EQ(format_share(1), "100.0%");
    EXPECT_EQ(format_fine_share(0), "0.00%");
    EXPECT_EQ(format_fine_share(1e-9), "less than 0.01%");
    EXPECT_EQ(format_fine_share(0.00005), "0.01%");
    EXPECT_EQ(format_fine_share(0.0012), "0.12%");
    EXPECT_EQ(format_fine_share(0.012), "1.2%");
    EXPECT_EQ(format_fine_share(0.123), "12%");
    EXPECT_EQ(format_fine_share(1.5), "150%");
}

TEST(DisplayWidth, CountsWideCharactersAndMarks) {
    EXPECT_EQ(display_width("abc"), 3u);
    EXPECT_EQ(display_width("\xC3\xA9"), 1u);
    EXPECT_EQ(display_width("\xE6\x97\xA5\xE6\x9C\xAC"), 4u);
    EXPECT_EQ(display_width("e\xCC\x81"), 1u);
    EXPECT_EQ(display_width("\xF0\x9F\x94\xA5"), 2u);
}

TEST(CutMiddle, KeepsBothEndsAndTheWidth) {
    EXPECT_EQ(cut_middle("short", 5), "short");
    EXPECT_EQ(cut_middle("0123456789", 7),
              "012\xE2\x80\xA6"
              "789");
    EXPECT_EQ(cut_middle("0123456789", 1), "\xE2\x80\xA6");
    for (std::size_t width = 1; width < 12; ++width)
        EXPECT_LE(display_width(cut_middle(
                      "\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E", width)),
                  width);
}

TEST(TableText, AlignsColumnsAndTrimsLineEnds) {
    Table table({{"name", true, true}, {"count"}});
    table.add({"a", "1"});
    table.add({"long name", "1,000"});
    EXPECT_EQ(table.text(Terminal{}), "name       count\na              1\nlong name  1,000\n");
}

TEST(TableText, CutsTheNameOnANarrowTerminalOnly) {
    Table table({{"name", true, true}, {"count"}});
    table.add({"a very long name that does not fit", "1"});
    EXPECT_EQ(table.text({.is_terminal = true, .colour = false, .width = 24}),
              "name               count\na very l\xE2\x80\xA6 not fit      1\n");
    EXPECT_NE(table.text(Terminal{}).find("a very long name that does not fit"), std::string::npos);
}

TEST(TableText, IsColouredOnlyIfTheTerminalSupportsIt) {
    Table table({{"name"}});
    table.add({"a"}, Style::Red);
    EXPECT_EQ(table.text(Terminal{}), "name\n   a\n");
    EXPECT_NE(table.text({.is_terminal = true, .colour = true, .width = 80}).find("\x1b[31m"),
              std::string::npos);
}

TEST(CaptureFiles, ChildCapturesAreRecognizedByTheirNames) {
    EXPECT_TRUE(is_child_capture("app.marey", "app.123.marey"));
    EXPECT_TRUE(is_child_capture("app.marey", "app.123.2.marey"));
    EXPECT_TRUE(is_child_capture("app.marey", "app.rank3.marey"));
    EXPECT_TRUE(is_child_capture("app.marey", "app.rank3.123.marey"));
    EXPECT_FALSE(is_child_capture("app.marey", "app.rank.marey"));
    EXPECT_FALSE(is_child_capture("app.rank3.marey", "app.rank31.marey"));
    for (const char* other : {"app.marey", "app.x.marey", "app.1.2.3.marey", "app.12marey", "apple.1.marey",
                              "app.1.marey.gz", "app..marey"})
        EXPECT_FALSE(is_child_capture("app.marey", other)) << other;
}

TEST(ContainsIgnoringCase, FindsPartsOfNames) {
    EXPECT_TRUE(contains_ignoring_case("Load File", "load"));
    EXPECT_TRUE(contains_ignoring_case("x", ""));
    EXPECT_FALSE(contains_ignoring_case("abc", "abd"));
}

TEST(ParseDuration, TakesTheUsualUnits) {
    EXPECT_EQ(parse_duration("10us"), 10'000u);
    EXPECT_EQ(parse_duration("1.5ms"), 1'500'000u);
    EXPECT_EQ(parse_duration("2s"), 2'000'000'000u);
    EXPECT_EQ(parse_duration("300ns"), 300u);
    EXPECT_EQ(parse_duration("0"), 0u);
    EXPECT_EQ(parse_duration("0us"), 0u);
    for (const char* const text : {"", "us", "-1us", "10 us", "10m", "1e30s", "nan", "300", "0.5"})
        EXPECT_EQ(parse_duration(text), std::nullopt) << text;
}

TEST(CutCall, RemovesFoldersFirstAndTheFunctionLast) {
    const std::string call = "some/deep/folder/file.py(120): Thing.method";
    EXPECT_EQ(cut_call(call, 60), call);
    EXPECT_EQ(cut_call(call, 42), "\u2026/deep/folder/file.py(120): Thing.method");
    EXPECT_EQ(cut_call(call, 34), "\u2026/file.py(120): Thing.method");
    EXPECT_EQ(cut_call(call, 20), "\u2026: Thing.method");
    EXPECT_EQ(cut_call(call, 9), cut_middle("Thing.method", 9));
    EXPECT_EQ(cut_call("    " + call, 36), "    \u2026/file.py(120): Thing.method");
    EXPECT_EQ(cut_call("a name that is not a call", 10), cut_middle("a name that is not a call", 10));
}

}  // namespace
}  // namespace marey::cli
