// budget_check_test.cpp: rules, the values that they limit, and what runs tell about them.
#include <marey/budgets.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <marey/error.h>

#include "analyze/gpu/gpu_fixture.h"
#include "analyze/trace_fixture.h"

namespace marey {
namespace {

std::string error_of(const std::string& text) {
    try {
        (void)parse_budgets(text, "rules");
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

/// A run with steps of 100 ns, each with so many calls of "copy", and one before them.
Trace stepped(const std::vector<int>& copies, std::int64_t extra_ns = 0) {
    std::vector<RangeSpec> ranges{{"copy", 0, 1}};
    std::int64_t start = 1000 + extra_ns;
    for (std::size_t i = 0; i < copies.size(); ++i, start += 1000) {
        RangeSpec step{"step#" + std::to_string(i), start, 100 + extra_ns, {}};
        for (int copy = 0; copy < copies[i]; ++copy) step.inside.push_back({"copy", start + 2 * copy, 1});
        ranges.push_back(step);
    }
    return TraceFixture().thread("main", ranges).trace();
}

BudgetReport checked(const std::string& rules, const std::vector<Trace>& runs,
                     const Baseline* baseline = nullptr, bool trusts_machine = false) {
    BudgetCheck check(parse_budgets(rules, "rules"), "step#*");
    for (std::size_t i = 0; i < runs.size(); ++i) check.add(runs[i], "run" + std::to_string(i));
    return check.report(baseline, trusts_machine);
}
std::string error_of(const std::string& rules, const std::vector<Trace>& runs) {
    try {
        (void)checked(rules, runs);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}
BudgetOutcome outcome(const std::string& rule, const std::vector<Trace>& runs) {
    return checked(rule, runs).outcomes.at(0);
}
double value(const std::string& rule, const Trace& trace) {
    return outcome(rule, {trace}).value;
}
/// Runs in which "work" takes these times.
std::vector<Trace> timed(const std::vector<std::int64_t>& times) {
    std::vector<Trace> runs;
    for (const std::int64_t time : times)
        runs.push_back(TraceFixture().thread("main", {{"work", 0, time}}).trace());
    return runs;
}
Baseline baseline_of(const std::string& rules, const std::vector<Trace>& runs) {
    BudgetCheck check(parse_budgets(rules, "rules"), "step#*");
    for (std::size_t i = 0; i < runs.size(); ++i) check.add(runs[i], "run" + std::to_string(i));
    return parse_baseline(baseline_json(check.baseline()), "base");
}

TEST(BudgetRules, AreReadWithTheirUnits) {
    const std::vector<BudgetRule> rules = parse_budgets(
        "\xEF\xBB\xBF# all kinds\r\n"
        "calls  \"aten::copy_\"          <= 12 per step   # exact\r\n"
        "launches device 0 <= 410 per step\n\n"
        "time \"train_step\" p95 <= 120 ms\n"
        "self path \"main/load/*\" <= +10% of baseline\n"
        "memory peak <= 6.5GiB\n"
        "findings == 0 of step.outlier, gpu.starved\n"
        "calls \"a \\\"b\\\"\\n\" median >= 1 per step\n"
        "time steps mean >= 1.5 us\n",
        "rules");
    ASSERT_EQ(rules.size(), 8u);
    EXPECT_EQ(rules[0].measure, "calls \"aten::copy_\" p100 per step");
    EXPECT_EQ(rules[0].text, "calls  \"aten::copy_\"          <= 12 per step");
    EXPECT_EQ(rules[0].line, 2u);
    EXPECT_EQ(rules[1].device, 0);
    EXPECT_EQ(rules[1].limit, 410);
    EXPECT_EQ(rules[2].limit, 120e6);
    EXPECT_EQ(rules[2].percent, 95u);
    EXPECT_TRUE(rules[3].of_baseline);
    EXPECT_NEAR(rules[3].limit, 0.1, 1e-12);
    EXPECT_EQ(rules[4].limit, 6.5 * 0x1p30);
    EXPECT_EQ(rules[5].measure, "findings of gpu.starved, step.outlier");
    EXPECT_EQ(rules[6].pattern, "a \"b\"\n");
    EXPECT_EQ(rules[6].measure, "calls \"a \\\"b\\\"\\n\" p50 per step");
    EXPECT_EQ(rules[7].of, BudgetOf::Steps);
}

TEST(BudgetRules, ErrorsHaveTheirPlaceAndWhatWasExpected) {
    const std::pair<const char*, const char*> cases[] = {
        {"\ncals \"x\" <= 1", "rules:2:1: expected a metric: calls, launches,"},
        {"calls x <= 1",
         "rules:1:7: expected a name in quotes, path, a statistic such as median, <=, >=, ==, got 'x'"},
        {"calls \"x <= 1", "rules:1:7: expected a name that ends with '\"'"},
        {"calls \"\xC3\xA4\" < 1", "rules:1:11: expected <=, >=, ==, got '<'"},
        {"calls \"x\" <= nan", "rules:1:14: expected a number, got 'nan'"},
        {"calls \"x\" <= 1e999", "rules:1:14: expected a number, got '1e999'"},
        {"calls \"x\" <= 1.5", "rules:1:17: expected a whole number before this, got the end of the rule"},
        {"calls \"x\" <= -1", "rules:1:16: expected '% of baseline', got the end of the rule"},
        {"calls \"x\" <= 1 per stop", "rules:1:20: expected 'step', got 'stop'"},
        {"calls \"x\" p95 <= 1", "rules:1:19: expected 'per step'"},
        {"calls \"x\" p101 <= 1 per step", "rules:1:11: expected a percentile"},
        {"time \"x\" <= 5", "rules:1:14: expected a unit: ns, us, ms, s, got the end of the rule"},
        {"time \"x\" <= 10% of baseline", "rules:1:15: expected a unit"},
        {"time \"x\" == 5 ms", "rules:1:10: expected <=, >=, got '=='"},
        {"memory <= 5 GiB", "rules:1:8: expected 'peak', got '<='"},
        {"self path main <= 1 s", "rules:1:11: expected a path in quotes"},
        {"findings == 0 of gpu.starving", "rules:1:18: expected a finding: "},
        {"calls \"x\" <= 1 of baseline", "rules:1:16: expected the end of the rule"},
        {"calls \"\\q\" <= 1", "rules:1:7: expected only escapes such as"},
        {"# nothing\n", "rules: has no rules"},
        {"calls \"x\" <= 2\ncalls \"x\" >= 3", "rules:2:1: contradicts line 1"},
        {"calls \"x\" <= 2 per step\ncalls \"x\" >= 3 per step", "rules:2:1: contradicts line 1"},
        {"calls \"x\" == 2\n\ncalls \"x\" == 3", "rules:3:1: contradicts line 1"},
    };
    for (const auto& [text, expected] : cases)
        EXPECT_TRUE(error_of(text).starts_with(expected)) << text << "\n" << error_of(text);
    EXPECT_EQ(error_of("calls \"x\" min <= 2 per step\ncalls \"x\" max >= 3 per step"), "");
    EXPECT_EQ(error_of("calls \"x\" <= 2 per step\ncalls \"x\" >= 3"), "");
    EXPECT_EQ(error_of("time \"x\" <= +10% of baseline\ntime \"x\" <= 5 ms"), "");
}

TEST(BudgetCheck, CountsInStepsLeaveOutTheRest) {
    const Trace trace = stepped({2, 3, 2});
    EXPECT_EQ(value("calls \"copy\" <= 9", trace), 8);
    EXPECT_EQ(value("calls \"copy\" <= 9 per step", trace), 3);
    EXPECT_EQ(value("calls \"copy\" >= 1 per step", trace), 2);
    EXPECT_EQ(value("calls \"copy\" median <= 9 per step", trace), 2);
    EXPECT_EQ(value("time steps max <= 1 s", trace), 100);
    EXPECT_EQ(value("time steps <= 1 s", trace), 300);
    EXPECT_EQ(value("time \"copy\" <= 1 s per step", trace), 7 / 3.0);
    EXPECT_EQ(outcome("calls \"copy\" <= 2 per step", {trace}).state, BudgetState::Broken);
    EXPECT_EQ(outcome("calls \"copy\" <= 3 per step", {trace}).state, BudgetState::Kept);
    EXPECT_EQ(outcome("calls \"copy\" == 3 per step", {trace}).state, BudgetState::Broken);
    EXPECT_EQ(outcome("calls \"copy\" == 2 per step", {stepped({2, 2})}).state, BudgetState::Kept);
    EXPECT_EQ(outcome("calls \"copy\" >= 3 per step", {trace}).state, BudgetState::Broken);
    const BudgetOutcome two = outcome("calls \"copy\" <= 2 per step", {stepped({2, 2, 2}), trace});
    EXPECT_EQ(two.state, BudgetState::Broken);
    EXPECT_EQ(two.why, "in 1 of 2 runs");
}

TEST(BudgetCheck, WorkOfOtherThreadsIsInTheStepsOfItsProcess) {
    const Trace trace =
        TraceFixture()
            .thread("main", {{"step#0", 0, 10}, {"step#1", 20, 10}})
            .thread("backward", {{"copy", 5, 2}, {"copy", 15, 2}, {"copy", 25, 2}, {"copy", 28, 9}})
            .trace();
    EXPECT_EQ(value("calls \"copy\" <= 9 per step", trace), 2);
    EXPECT_EQ(value("calls \"copy\" min >= 0 per step", trace), 1);
}

TEST(BudgetCheck, NamesAreFunctionsDottedNamesOrPatterns) {
    TraceFixture fixture;
    fixture.thread("main",
                   {{"shop/cart.py(12): Cart.load", 0, 100, {{"aten::copy_", 10, 5}, {"x[0]", 20, 5}}}});
    for (SiteInfo& site : fixture.data().sites) site.scope = Scope::PythonFunction;
    const Trace trace = fixture.trace();
    for (const char* const name : {"shop.cart.Cart.load", "Cart.load", "load", "shop/cart.py(12): Cart.load",
                                   "aten::*", "x[0]", "shop.*.load"})
        EXPECT_EQ(value("calls \"" + std::string(name) + "\" <= 9", trace), 1) << name;
    EXPECT_EQ(value("calls <= 9", trace), 3);
    EXPECT_EQ(value("calls path \"Cart.load/*\" <= 9", trace), 2);
    EXPECT_EQ(value("calls path \"Cart.load/aten::copy_\" <= 9", trace), 1);
    for (const char* const name : {"oad", "cart", "art.load", "aten"})
        EXPECT_NE(error_of("calls \"" + std::string(name) + "\" <= 9", {trace}), "") << name;
}

TEST(BudgetCheck, TotalTimesCountTheOutermostRangeOnly) {
    const Trace trace =
        TraceFixture().thread("main", {{"f", 0, 100, {{"g", 10, 50, {{"f", 20, 10}}}}}}).trace();
    EXPECT_EQ(value("time \"f\" <= 1 s", trace), 100);
    EXPECT_EQ(value("self \"f\" <= 1 s", trace), 60);
    EXPECT_EQ(value("time \"?\" <= 1 s", trace), 100);
    EXPECT_EQ(value("self path \"f/*\" <= 1 s", trace), 50);
    EXPECT_EQ(value("time \"g\" max <= 1 s", trace), 50);
}

TEST(BudgetCheck, DeviceWorkCountsInTheStepThatLaunchedIt) {
    testing::GpuFixture gpu;
    gpu.range(0, 100, "step#0");
    gpu.kernel(90, 50, "add", gpu.call(10, 5));
    gpu.range(200, 100, "step#1");
    gpu.kernel(290, 50, "add", gpu.call(210, 5));
    gpu.kernel(340, 50, "add", gpu.call(220, 5));
    gpu.device(1).kernel(400, 50, "add", gpu.call(230, 5));
    const Trace trace = gpu.trace();
    EXPECT_EQ(value("launches <= 9", trace), 4);
    EXPECT_EQ(value("launches <= 9 per step", trace), 3);
    EXPECT_EQ(value("launches device 0 <= 9 per step", trace), 2);
    EXPECT_EQ(value("gpu \"add\" <= 1 s", trace), 200);
    EXPECT_NE(error_of("launches device 2 <= 9", {trace}), "");
    EXPECT_NE(error_of("copies <= 9", {trace}), "");
}

TEST(BudgetCheck, ARuleThatMatchesNothingIsAnError) {
    const Trace trace = stepped({1});
    EXPECT_TRUE(error_of("calls \"cpy\" <= 9", {trace})
                    .starts_with("rules:1: matches nothing in run0: calls \"cpy\""));
    EXPECT_EQ(outcome("calls \"cpy\" == 0", {trace}).state, BudgetState::Kept);
    EXPECT_NE(error_of("memory peak <= 9 B", {trace}).find("allocations were not recorded"),
              std::string::npos);
    EXPECT_NE(error_of("calls \"copy\" == 0", {Trace()}).find("has no ranges"), std::string::npos);
    EXPECT_NE(error_of("calls \"work\" <= 9 per step", timed({5})).find("has no whole step"),
              std::string::npos);
    EXPECT_NE(error_of("calls \"copy\" <= 9", {trace, trace}).find("is the same recording as run0"),
              std::string::npos);
}

TEST(BudgetCheck, CountsOfRunsThatLackEventsAreNeverKept) {
    const auto with = [](const std::function<void(TraceData&)>& change) {
        TraceFixture fixture;
        fixture.thread("main", {{"step#0", 0, 50, {{"copy", 5, 1}}}, {"copy", 60, 1}});
        change(fixture.data());
        return fixture.trace();
    };
    const Trace lossy = with([](TraceData& data) { data.threads[0].dropped = 3; });
    const Trace sampled = with([](TraceData& data) { data.range_flags[0] = kSampled; });
    const Trace damaged = with([](TraceData& data) { data.problems.push_back({"cut_short", "cut", 1}); });
    for (const Trace& trace : {lossy, sampled, damaged}) {
        for (const char* const rule :
             {"calls \"copy\" <= 9", "calls \"copy\" == 2", "calls \"copy\" >= 1", "calls \"copy\" >= 9",
              "calls \"cpy\" == 0", "calls \"copy\" <= 9 per step", "time \"copy\" <= 1 s",
              "time \"copy\" <= 1 ns", "findings == 0 of step.outlier"})
            EXPECT_EQ(outcome(rule, {stepped({1}), trace}).state, BudgetState::CannotTell) << rule;
        EXPECT_EQ(outcome("calls \"copy\" <= 1", {trace}).state, BudgetState::Broken);
        EXPECT_EQ(outcome("calls \"copy\" == 1", {trace}).state, BudgetState::Broken);
    }
    EXPECT_EQ(outcome("calls \"copy\" <= 9", {lossy}).why, "run0 lost events");
    const Trace killed = with([](TraceData& data) { data.window.finished = false; });
    EXPECT_EQ(outcome("calls \"copy\" <= 9", {killed}).state, BudgetState::CannotTell);
    EXPECT_EQ(outcome("calls \"copy\" <= 9 per step", {killed}).state,
              BudgetState::Kept);  // its steps are whole
    EXPECT_THROW((void)baseline_of("calls \"copy\" <= 9", {lossy}), Error);
}

TEST(BudgetCheck, AFindingInSomeOfTheRunsMayBeChance) {
    const auto steps = [](std::int64_t longest_ns) {
        std::vector<RangeSpec> ranges;
        for (std::int64_t i = 0; i < 40; ++i)
            ranges.push_back(
                {"step#" + std::to_string(i), i * 100'000'000, i == 20 ? longest_ns : 5'000'000});
        return TraceFixture().thread("main", ranges).trace();
    };
    const Trace even = steps(5'000'000), uneven = steps(90'000'000);
    const std::string rule = "findings == 0 of step.outlier";
    EXPECT_EQ(outcome(rule, {even}).state, BudgetState::Kept);
    const BudgetOutcome found = outcome(rule, {uneven});
    EXPECT_EQ(found.state, BudgetState::Broken);
    EXPECT_EQ(found.why, "found step.outlier");
    const BudgetOutcome unsure = outcome(rule, {even, uneven});
    EXPECT_EQ(unsure.state, BudgetState::CannotTell);
    EXPECT_EQ(unsure.why, "found step.outlier; in 1 of 2 runs");
}

TEST(BudgetCheck, TimesBreakARuleOnlyBeyondChance) {
    const auto state = [](const std::string& rule, const std::vector<std::int64_t>& before,
                          const std::vector<std::int64_t>& after) {
        const Baseline baseline = baseline_of(rule, timed(before));
        return checked(rule, timed(after), &baseline).outcomes[0];
    };
    const std::string rule = "time \"work\" <= +10% of baseline";
    const std::vector<std::int64_t> quiet{1000, 1010, 990, 1005, 995}, noisy{1000, 1900, 700, 1100, 1300};
    EXPECT_EQ(state(rule, quiet, {1020, 1010, 1030}).state, BudgetState::Kept);
    EXPECT_EQ(state(rule, quiet, {1300, 1310, 1290}).state, BudgetState::Broken);
    const BudgetOutcome unsure = state(rule, noisy, {1300, 1310, 1700});
    EXPECT_EQ(unsure.state, BudgetState::CannotTell);
    EXPECT_NE(unsure.why.find("more runs would tell"), std::string::npos) << unsure.why;
    EXPECT_EQ(state(rule, {1000, 2000, 3000}, {1200, 2400, 3600}).state,
              BudgetState::CannotTell);                                     // no pairs
    EXPECT_EQ(state(rule, {1000}, {3000}).state, BudgetState::CannotTell);  // one run on each side
    EXPECT_EQ(state(rule, quiet, {2000}).state, BudgetState::Broken);
    EXPECT_EQ(state("time \"work\" >= -10% of baseline", quiet, {500, 510, 490}).state, BudgetState::Broken);
    EXPECT_EQ(outcome("time \"work\" <= 1.1 us", timed({1000, 1010, 990})).state, BudgetState::Kept);
    EXPECT_EQ(outcome("time \"work\" <= 900 ns", timed({1000, 1010, 990})).state, BudgetState::Broken);
    EXPECT_EQ(outcome("time \"work\" <= 1 us", timed({1000, 1010, 990})).state, BudgetState::CannotTell);
    EXPECT_EQ(outcome("time \"work\" <= 900 ns", timed({1000})).state, BudgetState::Broken);
}

TEST(BudgetCheck, TimesOfAnotherMachineBreakNothing) {
    const std::string rules = "time \"work\" <= +10% of baseline\ncalls \"work\" == baseline";
    const std::vector<Trace> slow = timed({3000, 3010, 3020});
    const Baseline same = baseline_of(rules, timed({1000, 1010, 1020}));
    Baseline renamed = same, slower = same;
    renamed.machine.host = "other";
    slower.machine.range_ns = 20;
    EXPECT_EQ(checked(rules, slow, &same).state(), BudgetState::Broken);
    const BudgetReport other = checked(rules, slow, &renamed);
    EXPECT_EQ(other.state(), BudgetState::CannotTell);
    EXPECT_EQ(other.count(BudgetState::Kept), 1u);  // the count
    EXPECT_EQ(other.outcomes[0].why, "another machine: 'box', the baseline is of 'other'");
    EXPECT_EQ(checked(rules, slow, &renamed, true).state(), BudgetState::Broken);
    std::vector<Trace> with_costs;
    for (const std::int64_t time : {3000, 3010, 3020}) {
        TraceFixture fixture;
        fixture.data().costs.push_back({"range", 30});
        with_costs.push_back(fixture.thread("main", {{"work", 0, time}}).trace());
    }
    EXPECT_EQ(checked(rules, with_costs, &slower).outcomes[0].why,
              "the machine is in another state: its reference loop took 150% of the baseline's time");
}

TEST(BudgetCheck, CountsOfABaselineAreExact) {
    const std::string rule = "calls \"copy\" <= +10% of baseline per step";
    const Baseline baseline = baseline_of(rule, {stepped({10, 10}), stepped({10, 10}, 1)});
    EXPECT_EQ(baseline.values.begin()->second, std::vector<double>{10});
    EXPECT_EQ(checked(rule, {stepped({11, 10})}, &baseline).state(), BudgetState::Kept);
    const BudgetReport more = checked(rule, {stepped({12, 10})}, &baseline);
    EXPECT_EQ(more.state(), BudgetState::Broken);
    EXPECT_EQ(more.outcomes[0].why, "the limit is 11");
    EXPECT_THROW((void)checked("calls \"copy\" <= baseline", {stepped({1})}, &baseline),
                 Error);  // not per step
    EXPECT_THROW((void)checked(rule, {stepped({1})}), Error);
}

TEST(Baseline, IsTextThatReadsBackEqual) {
    Baseline baseline{.machine = {"a \"b\"\n", "tsc", 2.1e9, 21.5}, .runs = 3};
    baseline.values["calls \"x\\\"\""] = {12};
    baseline.values["a"] = {1.25, 2, 3e18};
    const std::string text = baseline_json(baseline);
    EXPECT_EQ(baseline_json(parse_baseline(text, "base")), text);
    EXPECT_LT(text.find("\"a\": [1.25,2,"), text.find("\"calls"));
    const std::pair<std::string, std::string> damages[] = {{"\"runs\": 3", "\"runs\": 0"},
                                                           {"1.25", "NaN"},
                                                           {"1.25", "-1"},
                                                           {"1.25", "1e999"},
                                                           {"[12]", "[12, 13]"},
                                                           {"[12]", "\"12\""},
                                                           {"}\n}\n", ""},
                                                           {"_baseline\": 1", "_baseline\": 2"},
                                                           {"marey_baseline", "something"},
                                                           {"1.25", "\"1.25\""}};
    for (const auto& [from, to] : damages) {
        std::string damaged = text;
        damaged.replace(damaged.find(from), from.size(), to);
        try {
            (void)parse_baseline(damaged, "base");
            ADD_FAILURE() << to;
        } catch (const Error& error) {
            EXPECT_TRUE(std::string(error.what()).starts_with("base: is not a baseline: ")) << error.what();
        }
    }
}

TEST(BudgetCheck, SuggestionsAreKept) {
    const std::vector<Trace> runs{stepped({2, 3}), stepped({2, 3}, 5)};
    BudgetCheck measured(candidate_budgets(runs[0], "step#*"), "step#*");
    for (const Trace& run : runs) measured.add(run, "run" + std::to_string(&run - runs.data()));
    const std::string text = measured.suggestion();
    EXPECT_NE(text.find("calls \"copy\" <= 3 per step\n"), std::string::npos) << text;
    EXPECT_NE(text.find("time steps median <= +10% of baseline\n"), std::string::npos) << text;
    const Baseline baseline = baseline_of(text, runs);
    const BudgetReport report = checked(text, runs, &baseline);
    EXPECT_EQ(report.count(BudgetState::Broken), 0u) << text;
}

}  // namespace
}  // namespace marey
