// watch_condition_test.cpp: texts of conditions, and what is wrong with others.
#include "cli/watch_condition.h"

#include <gtest/gtest.h>

#include <marey/error.h>

namespace marey::cli {
namespace {

std::string error_of(const std::string& text) {
    try {
        parse_watch_condition(text);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

TEST(WatchCondition, NamesARangeAndATime) {
    const WatchCondition condition = parse_watch_condition("handle > 250ms");
    EXPECT_EQ(condition.kind, WatchKind::Range);
    EXPECT_EQ(condition.name, "handle");
    EXPECT_EQ(condition.limit, 250e6);
    EXPECT_EQ(condition.of_usual, 0);
    EXPECT_EQ(condition.limit_text, "250ms");
    EXPECT_EQ(parse_watch_condition("  handle>2s ").limit, 2e9);
}

TEST(WatchCondition, NamesMayHaveBlanksAndAnglesAndTheWordsOfOthers) {
    EXPECT_EQ(parse_watch_condition("GET /user > 1s").name, "GET /user");
    EXPECT_EQ(parse_watch_condition("std::vector<int> push > 1s").name, "std::vector<int> push");
    EXPECT_EQ(parse_watch_condition("stalled > 1s").name, "stalled");
    EXPECT_EQ(parse_watch_condition("steps > 1s").name, "steps");
    const WatchCondition quoted = parse_watch_condition("\"died\" > 1s");
    EXPECT_EQ(quoted.kind, WatchKind::Range);
    EXPECT_EQ(quoted.name, "died");
}

TEST(WatchCondition, ALimitMayBeAQuantile) {
    const WatchCondition condition = parse_watch_condition("handle > p99*3");
    EXPECT_EQ(condition.of_usual, 0.99);
    EXPECT_EQ(condition.limit, 3);
    EXPECT_EQ(parse_watch_condition("handle > p99.5").of_usual, 0.995);
    EXPECT_EQ(parse_watch_condition("handle > p99.5").limit, 1);
    const WatchCondition step = parse_watch_condition("step > 1.5x");
    EXPECT_EQ(step.kind, WatchKind::Step);
    EXPECT_EQ(step.of_usual, 0.5);
    EXPECT_EQ(step.limit, 1.5);
}

TEST(WatchCondition, HasTheOtherKinds) {
    EXPECT_EQ(parse_watch_condition("stall > 30s").kind, WatchKind::Stall);
    EXPECT_EQ(parse_watch_condition("stall > 30s").name, "");
    EXPECT_EQ(parse_watch_condition("stall:handle > 30s").name, "handle");
    EXPECT_EQ(parse_watch_condition("exception").kind, WatchKind::Exception);
    EXPECT_EQ(parse_watch_condition("exception:ValueError").name, "ValueError");
    EXPECT_EQ(parse_watch_condition("counter queue length > 1e3").name, "queue length");
    EXPECT_EQ(parse_watch_condition("counter queue length > 1e3").limit, 1000);
    EXPECT_EQ(parse_watch_condition("memory > 4GB").limit, 4.0 * (1ull << 30));
    EXPECT_EQ(parse_watch_condition("memory > 512MiB").limit, 512.0 * (1 << 20));
    EXPECT_EQ(parse_watch_condition("memory > 100").limit, 100);
    EXPECT_EQ(parse_watch_condition("gap > 50ms").kind, WatchKind::Gap);
    EXPECT_EQ(parse_watch_condition("gap cuda > 50ms").name, "cuda");
    EXPECT_EQ(parse_watch_condition("missing rank > 30s").kind, WatchKind::MissingRank);
    EXPECT_EQ(parse_watch_condition("died").kind, WatchKind::Died);
}

TEST(WatchCondition, AnErrorNamesTheColumn) {
    EXPECT_EQ(error_of(""), "condition '', column 1: expected a name");
    EXPECT_EQ(error_of("handle"), "condition 'handle', column 7: expected '>' and a limit");
    EXPECT_EQ(error_of("handle > 250"),
              "condition 'handle > 250', column 10: expected a time such as "
              "250ms, or a quantile such as p99*3");
    EXPECT_EQ(error_of("handle > p0"),
              "condition 'handle > p0', column 10: expected a time such as 250ms, or "
              "a quantile such as p99*3");
    EXPECT_EQ(error_of("step > 0x"),
              "condition 'step > 0x', column 8: expected a time such as 250ms, or a factor such as 1.5x");
    EXPECT_EQ(error_of("stall > soon"), "condition 'stall > soon', column 9: expected a time such as 30s");
    EXPECT_EQ(error_of("memory > 4XB"), "condition 'memory > 4XB', column 10: expected a size such as 4GB");
    EXPECT_EQ(error_of("counter > 4"), "condition 'counter > 4', column 9: expected the name of a counter");
    EXPECT_EQ(error_of("counter q > x"), "condition 'counter q > x', column 13: expected a number");
    EXPECT_EQ(error_of("died > 3s"),
              "condition 'died > 3s', column 6: expected nothing after this condition");
    EXPECT_EQ(error_of("handle > 3s soon"),
              "condition 'handle > 3s soon', column 13: expected the end of the condition");
    EXPECT_EQ(error_of("\"handle > 3s"), "condition '\"handle > 3s', column 1: expected a closing quote");
}

}  // namespace
}  // namespace marey::cli
