// site_values_test.cpp: the journal's values of sites are shown with their first ranges.
#include "collect/site_values.h"

#include <gtest/gtest.h>

#include <string>

#include "collect/log_fixture.h"
#include "collect/trace_builder.h"
#include "collect/trace_outline_fixture.h"

namespace marey {
namespace {

using namespace detail;
using testing::find_fault;
using testing::LogWriter;

constexpr std::uint32_t kCalls = kOptionStacks;

/// The integers under key "n" of role Site, by row: "0:7 2:8".
std::string placed(const Trace& trace) {
    EXPECT_EQ(find_fault(trace), "");
    std::string text;
    for (Row row = 0; row < trace.ranges().size(); ++row) {
        for (const Argument& value : trace.range_arguments(row)) {
            if (value.role != ArgumentRole::Site || trace.string(value.key) != "n") continue;
            text += (text.empty() ? "" : " ") + std::to_string(row) + ":" + std::to_string(value.integer);
        }
    }
    return text;
}

TEST(SiteValues, AreWithTheFirstRangeOfTheirSiteWhateverValuesWereRequested) {
    LogWriter log;
    log.start(1, 0, {.option_bits = kCalls}).stop(1, 100);
    log.thread(1).range("b", 1, 2, 0).range("a", 10, 20, 0).range("a", 30, 40, 0);
    log.site_values("a", 11, log.values().integer("n", 7).bytes());
    EXPECT_EQ(placed(build_trace(log.raw())), "1:7");
}

TEST(SiteValues, ASessionTakesTheFirstCompleteSetOfItsWindow) {
    LogWriter log;
    log.start(1, 0, {.option_bits = kCalls}).start(2, 25, {.option_bits = kCalls}).stop(1, 100).stop(2, 100);
    log.thread(1).range("a", 10, 20, 0).range("a", 30, 40, 0);
    log.site_values("a", 11, log.values().integer("n", 1).bytes());
    log.site_values("a", 11, log.values().integer("n", 2).bytes());
    log.site_values("a", 31, log.values().integer("n", 3).bytes());
    EXPECT_EQ(placed(build_trace(log.raw(), {.session = 1})), "0:1 0:2");
    EXPECT_EQ(placed(build_trace(log.raw(), {.session = 2})), "0:3");
}

TEST(SiteValues, ASessionWithoutCallsHasNone) {
    LogWriter log;
    log.start(1, 0, {.option_bits = LogWriter::kAllOptions & ~kCalls}).stop(1, 100);
    log.thread(1).range("a", 10, 20, 0);
    log.site_values("a", 11, log.values().integer("n", 7).bytes());
    EXPECT_EQ(placed(build_trace(log.raw())), "");
}

}  // namespace
}  // namespace marey
