// compare_test.cpp: matching, sums, counts and verdicts of comparisons.
#include <marey/compare.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <marey/call_tree.h>
#include <marey/error.h>

#include "analyze/gpu/gpu_fixture.h"
#include "analyze/trace_fixture.h"
#include "trace/random_trace_fixture.h"

namespace marey {
namespace {

Comparison compare_traces(const Trace& before, const Trace& after, CompareOptions options = {}) {
    RunComparison comparison(std::move(options));
    comparison.add(before, CompareSide::Old, "old");
    comparison.add(after, CompareSide::New, "new");
    return comparison.compare();
}

Trace trace_of(const std::vector<RangeSpec>& ranges) {
    return TraceFixture().thread("main", ranges).trace();
}
/// The same, for Python functions.
Trace app_trace(const std::vector<RangeSpec>& ranges) {
    TraceFixture fixture;
    fixture.thread("main", ranges);
    for (SiteInfo& site : fixture.data().sites) site.scope = Scope::PythonFunction;
    return fixture.trace();
}

const ComparedRow& row_of(const Comparison& comparison, std::string_view name) {
    const auto found = std::ranges::find(comparison.rows, name, &ComparedRow::name);
    if (found == comparison.rows.end()) throw Error("no row " + std::string(name));
    return *found;
}
const ComparedCount* count_of(const Comparison& comparison, const std::string& name,
                              CountKind kind = CountKind::Calls) {
    const auto found = std::ranges::find_if(comparison.counts, [&](const ComparedCount& count) {
        return count.name == name && count.kind == kind;
    });
    return found == comparison.counts.end() ? nullptr : &*found;
}
bool warns(const Comparison& comparison, const std::string& code) {
    return std::ranges::find(comparison.warnings, code, &CompareWarning::code) != comparison.warnings.end();
}

TEST(Comparison, AddsUpToTheWholeDifference) {
    for (unsigned seed = 1; seed <= 60; ++seed) {
        const Trace before = testing::RandomTrace(seed).make(),
                    after = testing::RandomTrace(seed + 1000).make();
        for (const CompareBy by : {CompareBy::Path, CompareBy::Name, CompareBy::Function, CompareBy::File}) {
            for (const CompareMetric metric :
                 {CompareMetric::Self, CompareMetric::Gpu, CompareMetric::Calls}) {
                const Comparison result = compare_traces(before, after, {.by = by, .metric = metric});
                double sum = 0;
                for (const ComparedRow& row : result.rows) sum += row.value.difference();
                const double rounding = result.per_step ? 1e-3 : 0;  // whole nanoseconds otherwise
                EXPECT_NEAR(sum, result.total.difference(), rounding) << seed << " " << static_cast<int>(by);
            }
        }
        double self = 0;
        for (const CallTreeNode& node : call_tree(after).nodes) {
            if (!node.is_async && !node.is_device) self += static_cast<double>(node.self_ns);
        }
        const Comparison result = compare_traces(before, after);
        if (!result.per_step) {
            EXPECT_EQ(result.total.after, self) << seed;
        }
    }
}

TEST(Comparison, OfATraceWithItselfHasNoDifference) {
    for (unsigned seed = 1; seed <= 20; ++seed) {
        const Trace trace = testing::RandomTrace(seed).make();
        const Comparison result = compare_traces(trace, trace);
        EXPECT_TRUE(warns(result, "same_file"));
        EXPECT_TRUE(result.counts.empty());
        for (const ComparedRow& row : result.rows) {
            EXPECT_EQ(row.match, RowMatch::Path);
            EXPECT_EQ(row.value.difference(), 0);
        }
    }
}

TEST(Comparison, FindsFunctionsOnOtherLines) {
    const Comparison result = compare_traces(
        app_trace({{"app.py(1): <module>", 0, 100, {{"app.py(5): load", 10, 50, {{"x.py(9): f", 20, 10}}}}}}),
        app_trace(
            {{"app.py(1): <module>", 0, 120, {{"app.py(8): load", 10, 70, {{"x.py(9): f", 20, 10}}}}}}));
    const ComparedRow& load = row_of(result, "app.py(8): load");
    EXPECT_EQ(load.match, RowMatch::Function);
    EXPECT_EQ(load.old_name, "app.py(5): load");
    EXPECT_EQ(load.value.difference(), 20);
    EXPECT_EQ(row_of(result, "x.py(9): f").match, RowMatch::Path) << "only its caller is on another line";
    EXPECT_TRUE(result.counts.empty()) << "each is called once, as before";
}

TEST(Comparison, FindsNamesBelowOtherParents) {
    const Comparison result = compare_traces(
        trace_of({{"main", 0, 100, {{"load", 10, 50, {{"read", 20, 10}}}}}}),
        trace_of({{"main", 0, 100, {{"retry", 5, 80, {{"load", 10, 60, {{"read", 20, 10}}}}}}}}));
    EXPECT_EQ(row_of(result, "load").match, RowMatch::Moved);
    EXPECT_EQ(row_of(result, "read").match, RowMatch::Moved);
    EXPECT_EQ(row_of(result, "retry").match, RowMatch::New);
    EXPECT_EQ(row_of(result, "load").value.before, 40);
    EXPECT_EQ(result.path(row_of(result, "load").node), (std::vector<std::string>{"main", "retry", "load"}));
    EXPECT_EQ(result.path(row_of(result, "load").old_node), (std::vector<std::string>{"main", "load"}));
    ASSERT_NE(count_of(result, "retry"), nullptr);
    EXPECT_EQ(count_of(result, "retry")->match, RowMatch::New);
}

TEST(Comparison, GuessesWhatBecameAnotherKernel) {
    const auto trace = [](const std::string& kernel) {
        testing::GpuFixture gpu;
        gpu.range(0, 100, "aten::mm");
        gpu.kernel(200, 50, kernel, gpu.call(10, 5));
        gpu.work(300, 1000, "Context Sync", "cuda_sync");  // waits: it is not work
        return gpu.trace();
    };
    const Comparison result =
        compare_traces(trace("Cijk_Ailk"), trace("sm90_gemm"), {.metric = CompareMetric::Gpu});
    const ComparedRow& row = row_of(result, "sm90_gemm");
    EXPECT_EQ(row.match, RowMatch::Guess);
    EXPECT_EQ(row.old_name, "Cijk_Ailk");
    EXPECT_EQ(result.path(row.node), (std::vector<std::string>{"aten::mm", "sm90_gemm"}));
    EXPECT_EQ(row.value.before, 50);
    EXPECT_EQ(result.total.before, 50);
    const auto launches = std::ranges::find(result.totals, CountKind::Launches, &ComparedCount::kind);
    ASSERT_NE(launches, result.totals.end());
    EXPECT_EQ(launches->new_most, 1);
}

TEST(Comparison, DoesNotGuessIfTheNumbersDiffer) {
    const Comparison result = compare_traces(trace_of({{"main", 0, 100, {{"a", 0, 10}, {"b", 20, 10}}}}),
                                             trace_of({{"main", 0, 100, {{"c", 0, 10}}}}));
    EXPECT_EQ(row_of(result, "c").match, RowMatch::New);
    EXPECT_EQ(row_of(result, "a").match, RowMatch::Gone);
    EXPECT_EQ(result.path(row_of(result, "a").node), std::vector<std::string>());
    EXPECT_EQ(row_of(result, "b").value.after, 0) << "gone is listed, not left out";
}

TEST(Comparison, DoesNotGuessAmongManyNames) {
    const auto trace = [](const std::string& prefix) {
        std::vector<RangeSpec> ranges;
        for (int i = 0; i < 9; ++i) ranges.push_back({prefix + std::to_string(i), i * 10, 5});
        return trace_of(ranges);
    };
    const Comparison result = compare_traces(trace("a"), trace("b"));
    EXPECT_EQ(row_of(result, "b3").match, RowMatch::New);
    EXPECT_FALSE(warns(result, "same_file")) << "the same times, but other names";
}

TEST(Comparison, PutsNewPathsIntoTheOutermost) {
    const Comparison result =
        compare_traces(trace_of({{"main", 0, 100}}),
                       trace_of({{"main", 0, 100, {{"check", 0, 20, {{"parse", 1, 9, {{"read", 2, 3}}}}}}}}));
    EXPECT_EQ(row_of(result, "check").inside, kNoNode);
    EXPECT_EQ(row_of(result, "read").inside, row_of(result, "check").node);
}

TEST(Comparison, HasATreeThatAddsUpWithGonePathsInIt) {
    const Trace before = trace_of({{"main", 0, 100, {{"load", 0, 40, {{"read", 10, 20}}}, {"log", 50, 30}}}});
    const Trace after =
        trace_of({{"main", 0, 110, {{"load", 0, 60, {{"read", 10, 10}, {"parse", 20, 25}}}}}});
    const std::vector<ComparedPath> tree = compared_tree(compare_traces(before, after));
    const auto find = [&](std::string_view name) {
        return *std::ranges::find(tree, name, &ComparedPath::name);
    };
    EXPECT_EQ(find("main").before, 100);
    EXPECT_EQ(find("main").after, 110);
    EXPECT_EQ(find("log").match, RowMatch::Gone);
    EXPECT_EQ(tree[find("log").parent].name, "main");
    EXPECT_EQ(find("log").width, 30);
    EXPECT_EQ(find("load").before, 40);
    EXPECT_EQ(find("load").own_after, 25);
    EXPECT_EQ(find("load").width, 25 + 20 + 25);  // of each part the larger side
    EXPECT_EQ(find("parse").match, RowMatch::New);
    EXPECT_TRUE(compared_tree(compare_traces(before, after, {.by = CompareBy::Name})).empty());

    for (unsigned seed = 1; seed <= 40; ++seed) {
        RunComparison runs({});
        runs.add(testing::RandomTrace(seed).make(), CompareSide::Old, "old");
        runs.add(testing::RandomTrace(seed + 1000).make(), CompareSide::New, "new");
        for (const CompareMetric metric : {CompareMetric::Self, CompareMetric::Calls, CompareMetric::Gpu}) {
            const Comparison result = runs.compare(metric);
            double sides[2] = {0, 0};
            for (const ComparedPath& path : compared_tree(result)) {
                if (path.parent == kNoNode) sides[0] += path.before, sides[1] += path.after;
                EXPECT_GE(path.width + 1e-3, std::max(path.before, path.after));
            }
            EXPECT_NEAR(sides[0], result.total.before, 1e-3) << seed;
            EXPECT_NEAR(sides[1], result.total.after, 1e-3) << seed;
        }
    }
}

TEST(Comparison, PutsMovedPathsWhereTheyAreNow) {
    const std::vector<ComparedPath> tree = compared_tree(compare_traces(
        trace_of({{"main", 0, 100, {{"a", 0, 40, {{"read", 0, 30, {{"gone", 0, 10}}}}}, {"b", 50, 40}}}}),
        trace_of({{"main", 0, 100, {{"a", 0, 40}, {"b", 50, 40, {{"read", 50, 35}}}}}})));
    const auto read = std::ranges::find(tree, "read", &ComparedPath::name);
    EXPECT_EQ(read->match, RowMatch::Moved);
    EXPECT_EQ(tree[read->parent].name, "b");
    const auto gone = std::ranges::find(tree, "gone", &ComparedPath::name);
    EXPECT_EQ(gone->match, RowMatch::Gone);
    EXPECT_EQ(tree[gone->parent].name, "read");
    EXPECT_EQ(std::ranges::count(tree, "read", &ComparedPath::name), 1);
}

TEST(Comparison, FollowsRenames) {
    const Trace before =
        app_trace({{"old.py(1): <module>", 0, 100, {{"old.py(3): load", 0, 10}, {"x", 20, 5}}}});
    const Trace after =
        app_trace({{"new.py(1): <module>", 0, 100, {{"new.py(4): fetch", 0, 10}, {"y", 20, 5}}}});
    const Comparison result = compare_traces(before, after, {.renames = {{"old.py", "new.py"}, {"x", "y"}}});
    EXPECT_EQ(row_of(result, "new.py(1): <module>").match, RowMatch::Path);
    EXPECT_EQ(row_of(result, "y").match, RowMatch::Path);
    EXPECT_EQ(row_of(result, "new.py(4): fetch").match, RowMatch::Guess);
    const Comparison all =
        compare_traces(app_trace({{"a.py(3): load", 0, 10}}), app_trace({{"a.py(4): fetch", 0, 10}}),
                       {.renames = {{"load", "fetch"}}});
    EXPECT_EQ(row_of(all, "a.py(4): fetch").match, RowMatch::Function);
}

TEST(Comparison, FoldsNumbersIfAsked) {
    const Trace before = app_trace({{"job 1", 0, 10}, {"job 2", 20, 10}, {"a.py(7): run2", 40, 5}});
    const Trace after = app_trace({{"job 3", 0, 10}, {"job 4", 20, 15}, {"a.py(7): run2", 40, 5}});
    const Comparison result = compare_traces(before, after, {.fold_numbers = true});
    EXPECT_EQ(row_of(result, "job #").value.difference(), 5);
    EXPECT_EQ(row_of(result, "job #").old_calls, 2);
    EXPECT_EQ(row_of(result, "a.py(7): run#").match, RowMatch::Path) << "the line stays";
}

TEST(Comparison, NamesTheCausesOfCounts) {
    const auto load = [](std::int64_t at, int reads) {
        RangeSpec range{"load", at, 20};
        for (int i = 0; i < reads; ++i) range.inside.push_back({"read", at + i, 1});
        return range;
    };
    const Comparison more_loads = compare_traces(trace_of({{"main", 0, 100, {load(0, 2)}}}),
                                                 trace_of({{"main", 0, 100, {load(0, 2), load(30, 2)}}}));
    EXPECT_EQ(count_of(more_loads, "load")->causes, 1u);
    EXPECT_EQ(count_of(more_loads, "read")->causes, 0u) << "each load still reads twice";
    EXPECT_EQ(count_of(more_loads, "read")->new_least, 4);
    EXPECT_EQ(more_loads.counts.front().name, "load");
    const Comparison more_reads = compare_traces(trace_of({{"main", 0, 100, {load(0, 2)}}}),
                                                 trace_of({{"main", 0, 100, {load(0, 3)}}}));
    EXPECT_EQ(count_of(more_reads, "load"), nullptr);
    EXPECT_EQ(count_of(more_reads, "read")->causes, 1u);
    EXPECT_EQ(more_reads.path(count_of(more_reads, "read")->node),
              (std::vector<std::string>{"main", "load", "read"}));
    const Comparison with_new = compare_traces(
        trace_of({{"main", 0, 100}}), trace_of({{"main", 0, 100, {{"check", 0, 20, {{"parse", 1, 2}}}}}}));
    EXPECT_EQ(count_of(with_new, "check")->inside, kNoNode);
    EXPECT_EQ(with_new.path(count_of(with_new, "parse")->inside),
              (std::vector<std::string>{"main", "check"}));
}

TEST(Comparison, CountsPerStepIfTheNumbersOfStepsDiffer) {
    const auto steps = [](int count, int copies) {
        std::vector<RangeSpec> ranges;
        for (int i = 0; i < count; ++i) {
            ranges.push_back({"ProfilerStep#" + std::to_string(i), i * 100, 90});
            for (int copy = 0; copy < copies; ++copy)
                ranges.back().inside.push_back({"copy", i * 100 + copy, 1});
        }
        return trace_of(ranges);
    };
    const Comparison result = compare_traces(steps(4, 2), steps(5, 3));
    EXPECT_TRUE(result.per_step);
    EXPECT_EQ(count_of(result, "copy")->old_most, 2);
    EXPECT_EQ(count_of(result, "copy")->new_most, 3);
    EXPECT_EQ(count_of(result, "ProfilerStep*"), nullptr);
    EXPECT_EQ(result.total.before, 90);
    EXPECT_EQ(result.steps[1].count, 5u);
    EXPECT_FALSE(compare_traces(steps(4, 2), steps(4, 3)).per_step);
    const Comparison by_step = compare_traces(steps(4, 2), steps(5, 2), {.by = CompareBy::Step});
    EXPECT_EQ(row_of(by_step, "step 4").match, RowMatch::New);
    EXPECT_EQ(row_of(by_step, "step 1").value.before, 90);
    EXPECT_GT(by_step.window.before, 0);
}

TEST(Comparison, CountsTimeOfRecursiveCallsOnceInTotals) {
    const Trace trace = trace_of({{"f", 0, 100, {{"f", 10, 50}, {"g", 70, 10}}}});
    const Comparison result =
        compare_traces(trace, trace, {.by = CompareBy::Name, .metric = CompareMetric::Total});
    EXPECT_EQ(row_of(result, "f").value.after, 100);
    EXPECT_EQ(result.total.after, 100);
}

TEST(Comparison, WarnsOfEmptyAndUnlikeRuns) {
    const Comparison empty = compare_traces(Trace(), Trace());
    EXPECT_TRUE(warns(empty, "empty"));
    EXPECT_TRUE(empty.rows.empty());
    EXPECT_EQ(empty.total.verdict, Verdict::Untested);
    TraceFixture other;
    other.thread("main", {{"f", 0, 10}});
    other.data().processes[0].host = other.string("elsewhere");
    other.data().clock.source = "monotonic_raw";
    other.data().window.finished = false;
    other.data().threads[0].dropped = 3;
    TraceFixture usual;
    usual.thread("main", {{"f", 0, 12}});
    usual.data().processes[0].host = usual.string("here");
    usual.data().clock.source = "tsc";
    const Trace first = usual.trace();
    const Comparison unlike = compare_traces(first, other.trace());
    for (const char* const code : {"host", "clock", "unfinished", "lost"})
        EXPECT_TRUE(warns(unlike, code)) << code;
    TraceFixture cut;
    cut.thread("main", {{"f", 0, 10}});
    cut.data().problems.push_back({"truncated", "The capture is truncated.", 1});
    cut.data().clock.source = "";  // not every format has it
    const Comparison with_cut = compare_traces(first, cut.trace());
    EXPECT_TRUE(warns(with_cut, "lost"));
    EXPECT_FALSE(warns(with_cut, "clock"));
    RunComparison one_side({});
    one_side.add(Trace(), CompareSide::Old, "a");
    EXPECT_THROW(one_side.compare(), Error);
}

/// Runs of a program with twelve functions whose times vary from run to run; `factor`: of function 3.
Trace noisy_run(std::mt19937_64& random, double machine, double factor, int calls = 1) {
    std::normal_distribution<double> normal;
    std::vector<RangeSpec> ranges;
    std::int64_t at = 0;
    for (int i = 0; i < 12; ++i) {
        const double usual = 1e6 * (1 + i % 4);
        const auto time = static_cast<std::int64_t>(usual * machine * std::exp(0.06 * normal(random)) *
                                                    (i == 3 ? factor : 1));
        for (int call = 0; call < (i == 3 ? calls : 1); ++call) {
            ranges.push_back({"f" + std::to_string(i), at, time});
            at += time;
        }
    }
    return TraceFixture().thread("main", ranges).trace();
}

Comparison noisy_comparison(std::mt19937_64& random, std::size_t runs, double factor, int calls = 1) {
    RunComparison comparison({.in_turns = true});
    std::normal_distribution<double> normal;
    double drift = 0;
    for (std::size_t i = 0; i < runs * 2; ++i) {
        drift += 0.03 * normal(random);  // of the machine
        const bool is_new = (i + i / 2) % 2 == 1;
        comparison.add(noisy_run(random, std::exp(drift), is_new ? factor : 1, is_new ? calls : 1),
                       is_new ? CompareSide::New : CompareSide::Old, "run");
    }
    return comparison.compare();
}
bool is_decided(const ComparedValue& value) {
    return value.verdict == Verdict::Slower || value.verdict == Verdict::Faster;
}

TEST(ComparisonOfRuns, SeldomRaisesFalseAlarms) {
    std::mt19937_64 random(1);
    int alarms = 0;
    for (int i = 0; i < 200; ++i) {
        const Comparison result = noisy_comparison(random, 5, 1);
        alarms += is_decided(result.total) || is_decided(result.rows.front().value);
    }
    EXPECT_LE(alarms, 16);
}

TEST(ComparisonOfRuns, FindsWhatBecameSlower) {
    std::mt19937_64 random(2);
    int first = 0, of_five = 0;
    for (int i = 0; i < 50; ++i) {
        const ComparedRow row = noisy_comparison(random, 10, 1.2).rows.front();
        first += row.name == "f3" && row.value.verdict == Verdict::Slower;
        const ComparedRow other = noisy_comparison(random, 5, 1.3).rows.front();
        of_five += other.name == "f3" && other.value.verdict == Verdict::Slower;
    }
    EXPECT_GE(first, 40);
    EXPECT_GE(of_five, 25);
}

TEST(ComparisonOfRuns, AlwaysFindsMoreCalls) {
    std::mt19937_64 random(3);
    for (int i = 0; i < 20; ++i) {
        const Comparison result = noisy_comparison(random, 3, 1, 2);
        ASSERT_NE(count_of(result, "f3"), nullptr);
        EXPECT_EQ(count_of(result, "f3")->new_least, 2);
        EXPECT_EQ(result.counts.size(), 1u);
    }
}

TEST(ComparisonOfRuns, DifferencesOfMeansAddUp) {
    std::mt19937_64 random(4);
    const Comparison result = noisy_comparison(random, 5, 1.1);
    double sum = 0;
    for (const ComparedRow& row : result.rows) sum += row.value.difference();
    EXPECT_NEAR(sum, result.total.difference(), 1e-3);
}

TEST(ComparisonOfRuns, LeavesOutCountsThatVaryByThemselves) {
    RunComparison comparison({});
    const auto run = [](int polls) {
        std::vector<RangeSpec> ranges;
        for (int i = 0; i < polls; ++i) ranges.push_back({"poll", i * 10, 5});
        return trace_of(ranges);
    };
    for (const int polls : {3, 7, 5}) comparison.add(run(polls), CompareSide::Old, "");
    for (const int polls : {4, 9, 6}) comparison.add(run(polls), CompareSide::New, "");
    const Comparison result = comparison.compare();
    EXPECT_EQ(count_of(result, "poll"), nullptr);
    EXPECT_TRUE(result.totals.front().varies());
}

TEST(ComparisonOfRuns, NeedsAsManyRunsOnBothSidesIfTheyArePairs) {
    RunComparison comparison({.in_turns = true});
    comparison.add(trace_of({{"f", 0, 1}}), CompareSide::Old, "");
    comparison.add(trace_of({{"f", 0, 1}}), CompareSide::New, "");
    comparison.add(trace_of({{"f", 0, 1}}), CompareSide::New, "");
    EXPECT_THROW(comparison.compare(), Error);
}

}  // namespace
}  // namespace marey
