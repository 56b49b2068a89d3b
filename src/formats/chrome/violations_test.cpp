// violations_test.cpp: every rule finds violations, and finds nothing in valid files.
#include "formats/chrome/violations.h"

#include <gtest/gtest.h>

#include <string>

#include <marey/error.h>

#include "formats/chrome/read.h"

namespace marey {
namespace {

std::vector<Violation> find_all(const std::string& text) {
    ViolationList violations;
    const bool is_strict = check_json(text, violations);
    try {
        read_chrome_json("test", memory_source(text), 64, &violations);
    } catch (const Error&) {
        EXPECT_FALSE(is_strict) << text;
    }
    return violations.take();
}

/// The rules that a text violates, with their counts: "row_nesting 1, window 2".
std::string violated_rules(const std::string& text) {
    std::string list;
    for (const Violation& violation : find_all(text)) {
        if (!list.empty()) list += ", ";
        list += violation.rule + " " + std::to_string(violation.count);
        EXPECT_NE(violation.example, "");
    }
    return list;
}

std::string range(const std::string& ts, const std::string& dur, const std::string& tid = "1") {
    return R"({"ph":"X","name":"a","pid":1,"tid":)" + tid + R"(,"ts":)" + ts + R"(,"dur":)" + dur + "}";
}
std::string flow(const std::string& phase, const std::string& id, const std::string& ts,
                 const std::string& category = "c") {
    return R"({"ph":")" + phase + R"(","name":")" + category + R"(","cat":")" + category +
           R"(","pid":1,"tid":1,"id":)" + id + R"(,"ts":)" + ts + "}";
}

TEST(ChromeViolations, AValidFileHasNoViolations) {
    EXPECT_EQ(violated_rules("[]"), "");
    EXPECT_EQ(violated_rules(R"({"traceEvents":[],"x":{"a":[{"a":1}]}})"), "");
    EXPECT_EQ(violated_rules("[" + range("0", "10") + "," + range("2.5", "7.5") + "," + range("10.000", "0") +
                             "," + range("1", "20", "\"other\"") + "," + flow("s", "1", "2") + "," +
                             flow("f", "1", "3") + R"(,{"ph":"M","name":"process_name","pid":1}])"),
              "");
}

TEST(ChromeViolations, InvalidJsonIsOneViolation) {
    for (const char* text :
         {"", "[", "[1,]", "{\"traceEvents\":[NaN]}", "[] x", "['a']", "[\"\x01\"]", "[\"\xFF\"]",
          "[\"\\ud800\"]", "[01]", "[{\"a\" 1}]", "[tru]", "[\"a]", "\xEF\xBB\xBF[]"})
        EXPECT_EQ(violated_rules(text).substr(0, 13), "strict_json 1") << text;
}

TEST(ChromeViolations, DuplicateKeysAreFoundAtEveryDepth) {
    EXPECT_EQ(violated_rules(R"({"traceEvents":[],"a":1,"a":2})"), "unique_keys 1");
    EXPECT_EQ(violated_rules(R"([{"ph":"M","ph":"M"}])"), "unique_keys 1");
    EXPECT_EQ(violated_rules(R"([{"ph":"M","args":{"x":{"k":1,"k":2}}}])"), "unique_keys 1");
    std::string many = R"([{"ph":"M","args":{"k7":0)";
    for (int i = 0; i < 40; ++i) many += ",\"k" + std::to_string(i) + "\":0";
    EXPECT_EQ(violated_rules(many + "}}]"), "unique_keys 1");
}

TEST(ChromeViolations, EventsHavePhaseTimeAndDuration) {
    EXPECT_EQ(violated_rules(R"([{"name":"a"},{"ph":"X","ts":1},{"ph":"i"},{"ph":"i","ts":"1"}])"),
              "event_fields 4");
    EXPECT_EQ(violated_rules("[" + range("5", "-1") + "]"), "event_fields 1");
    EXPECT_EQ(violated_rules("[1,[],{\"ph\":\"M\"}]"), "event_fields 2");
    EXPECT_EQ(violated_rules(R"([{"ph":"s","ts":1}])"), "event_fields 1");
}

TEST(ChromeViolations, RangesOnOneRowNestToTheNanosecondInAnyOrder) {
    EXPECT_EQ(violated_rules("[" + range("5", "10") + "," + range("0", "10") + "]"), "row_nesting 1");
    EXPECT_EQ(violated_rules("[" + range("0", "10.000") + "," + range("9.999", "1") + "]"), "row_nesting 1");
    EXPECT_EQ(violated_rules("[" + range("0", "10") + "," + range("10", "1") + "]"), "");
    EXPECT_EQ(violated_rules("[" + range("0", "10") + "," + range("5", "10", "2") + "]"), "");
}

TEST(ChromeViolations, BeginEventsHaveEndEvents) {
    const auto mark = [](const char* phase, const char* ts) {
        return std::string(R"({"ph":")") + phase + R"(","name":"m","pid":1,"tid":1,"ts":)" + ts + "}";
    };
    EXPECT_EQ(violated_rules("[" + mark("B", "1") + "," + mark("E", "3") + "," + range("1", "2") + "]"), "");
    EXPECT_EQ(violated_rules("[" + mark("B", "1") + "," + mark("E", "3") + "," + range("2", "5") + "]"),
              "row_nesting 1");
    EXPECT_EQ(violated_rules("[" + mark("B", "1") + "," + mark("B", "2") + "," + mark("E", "3") + "]"),
              "begin_end 1");
    EXPECT_EQ(violated_rules("[" + mark("E", "1") + "]"), "begin_end 1");
    EXPECT_EQ(violated_rules(R"([{"ph":"b","cat":"c","id":1,"ts":1},{"ph":"e","cat":"c","id":2,"ts":1}])"),
              "begin_end 2");
}

TEST(ChromeViolations, AnEventIsIdentifiedByItsOwnNameOnly) {
    const auto example = [](const std::string& first) {
        return find_all("[" + first + R"(,{"ph":"X","name":"zzz","pid":1,"tid":1,"ts":6,"dur":1}])")
            .at(0)
            .example;
    };
    EXPECT_EQ(example(R"({"ph":"E","pid":1,"tid":1,"ts":5})"), "'' at 5.000 us has no begin event");
    EXPECT_EQ(example(R"({"ph":"E","args":{"name":"in"},"pid":1,"tid":1,"ts":5})"),
              "'' at 5.000 us has no begin event");
    EXPECT_EQ(example(R"({"args":{"a":[{"name":"in"}]},"ph":"E","name" : "own","pid":1,"tid":1,"ts":5})"),
              "'own' at 5.000 us has no begin event");
    EXPECT_EQ(example(R"({"args":{"a":")" + std::string(1000, 'x') +
                      R"("},"ph":"E","name":"late","pid":1,"tid":1,"ts":5})"),
              "'late' at 5.000 us has no begin event");
}

TEST(ChromeViolations, FlowsHaveBothEndsOnceAndInOrder) {
    EXPECT_EQ(violated_rules("[" + flow("s", "1", "1") + "]"), "flow_without_end 1");
    EXPECT_EQ(violated_rules("[" + flow("f", "1", "1") + "]"), "flow_without_start 1");
    EXPECT_EQ(violated_rules("[" + flow("s", "1", "1") + "," + flow("s", "1", "2") + "," +
                             flow("f", "1", "3") + "]"),
              "flow_without_end 1, flow_id_repeated 1");
    EXPECT_EQ(violated_rules("[" + flow("s", "1", "2") + "," + flow("f", "1", "1") + "]"),
              "flow_backwards 1");
    EXPECT_EQ(violated_rules("[" + flow("s", "1", "2", "ac2g") + "," + flow("f", "1", "1", "ac2g") + "]"),
              "kernel_before_launch 1");
    EXPECT_EQ(violated_rules("[" + flow("s", "1", "1", "a") + "," + flow("f", "1", "1", "b") + "]"),
              "flow_without_end 1, flow_without_start 1");
}

TEST(ChromeViolations, EventsLieInTheWindow) {
    const std::string end = R"({"ph":"i","s":"g","name":"Record Window End","pid":"","tid":"","ts":10.5})";
    EXPECT_EQ(violated_rules("[" + range("0", "10.5") + "," + end + "]"), "");
    EXPECT_EQ(violated_rules("[" + range("0", "10.501") + "," + end + "]"), "file_window 1");
    EXPECT_EQ(violated_rules("[" + range("-0.001", "1") + "]"), "file_window 1");
}

}  // namespace
}  // namespace marey
