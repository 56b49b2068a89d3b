// ranks_test.cpp: who waits for whom, planted stragglers and their causes, silence where nothing is proven.
#include <marey/ranks.h>

#include <gtest/gtest.h>

#include <marey/error.h>

#include "analyze/ranks/collective_name.h"
#include "analyze/ranks/interval_union.h"
#include "analyze/ranks/job_fixture.h"

namespace marey {
namespace {

constexpr std::int64_t kMs = 1'000'000;

/// Two steps of 10 ms on one host: rank 1 computes 2 ms longer, so that rank 0 waits.
Trace small_rank(int rank) {
    TraceFixture fixture;
    fixture.data().processes[0].node = rank;
    fixture.site("aten::mm", Scope::Function);
    std::vector<RangeSpec> steps;
    for (int step = 0; step < 2; ++step) {
        const std::int64_t start = step * 10 * kMs, compute = (rank == 0 ? 5 : 7) * kMs;
        steps.push_back({"ProfilerStep#" + std::to_string(step),
                         start,
                         10 * kMs,
                         {{"enumerate(DataLoader)", start, kMs},
                          {"aten::mm", start + kMs, compute},
                          {"gloo:all_reduce", start + kMs + compute, 9 * kMs - compute}}});
    }
    fixture.thread("main", steps);
    return fixture.trace();
}

TEST(Ranks, TimesOfASmallJobAddUp) {
    const std::vector<Trace> traces = {small_rank(1), small_rank(0)};
    const RankReport report = rank_report(traces);
    ASSERT_EQ(report.ranks.size(), 2u);
    const RankInfo &first = report.ranks[0], &second = report.ranks[1];
    EXPECT_EQ(first.rank, 0);
    EXPECT_EQ(first.steps, 2u);
    EXPECT_EQ(first.compute_ns, 10 * kMs);
    EXPECT_EQ(second.compute_ns, 14 * kMs);
    EXPECT_EQ(first.input_ns, 2 * kMs);
    EXPECT_EQ(first.communication_ns, 8 * kMs);
    EXPECT_EQ(first.exposed_ns(), 8 * kMs);
    EXPECT_EQ(first.waiting_ns, 4 * kMs);
    EXPECT_EQ(second.waiting_ns, 0);
    EXPECT_EQ(first.times_last, 0u);
    EXPECT_EQ(second.times_last, 2u);
    EXPECT_EQ(second.delayed_ns, 4 * kMs);
    EXPECT_EQ(report.collectives, 2u);
    EXPECT_EQ(report.unmatched, 0u);
    EXPECT_EQ(report.agreeing, 2u);
    EXPECT_EQ(report.disagreeing, 0u);
    ASSERT_EQ(report.steps.size(), 2u);
    EXPECT_EQ(report.steps[0].slowest, 1);
    EXPECT_EQ(report.steps[0].most_work_ns, 10 * kMs);
    EXPECT_EQ(report.steps[0].median_work_ns, 8 * kMs);
    EXPECT_NEAR(report.steps[0].imbalance, 10.0 / 9 - 1, 1e-9);
    EXPECT_EQ(report.worst_rank, 1);
    EXPECT_EQ(report.mean_step_ns, 10e6);
    EXPECT_EQ(report.step_without_worst_ns, 8e6);
    // From the last collective back to the first: rank 1 computed, then both communicated.
    ASSERT_EQ(report.critical_path.size(), 2u);
    EXPECT_EQ(report.critical_path[0].name, "aten::mm");
    EXPECT_EQ(report.critical_path[0].rank, 1);
    EXPECT_EQ(report.critical_path[0].time_ns, 8 * kMs);
    EXPECT_TRUE(report.critical_path[1].is_collective);
    EXPECT_EQ(report.critical_path[1].time_ns, 4 * kMs);
    EXPECT_EQ(second.critical_ns, 12 * kMs);
    ASSERT_EQ(report.findings.size(), 1u);
    EXPECT_EQ(report.findings[0].rule, "slow_kernels");
    EXPECT_EQ(report.findings[0].rank, 1);
}

TEST(Ranks, AChildProcessDoesNotReplaceItsRank) {
    std::vector<Trace> traces;
    for (int rank = 0; rank < 2; ++rank) {
        TraceFixture fixture;
        fixture.data().processes[0].node = rank;
        fixture.thread("main", {{"ProfilerStep#0", 0, 100}, {"ProfilerStep#1", 100, 100}});
        traces.push_back(fixture.trace());
    }
    TraceFixture child;
    child.data().processes[0].node = 1;
    child.thread("main", {{"load", 20, 30}});
    traces.push_back(child.trace());
    EXPECT_EQ(rank_report(traces).ranks[1].steps, 2u);
}

TEST(Ranks, OverlapIsTheTimeInWhichBothRan) {
    std::vector<Trace> traces;
    for (int rank = 0; rank < 2; ++rank) {
        TraceFixture fixture;
        fixture.data().processes[0].node = rank;
        fixture.site("aten::mm", Scope::Function);
        fixture.thread("main", {{"ProfilerStep#0", 0, 100, {{"aten::mm", 0, 40}, {"aten::mm", 50, 40}}}});
        fixture.async("communication", {{"gloo:all_reduce", 30, 50}});
        traces.push_back(fixture.trace());
    }
    const RankReport report = rank_report(traces);
    EXPECT_EQ(report.ranks[0].compute_ns, 80);
    EXPECT_EQ(report.ranks[0].communication_ns, 50);
    EXPECT_EQ(report.ranks[0].overlap_ns, 40);
    EXPECT_EQ(report.ranks[0].exposed_ns(), 10);
}

TEST(Ranks, CollectivesAreMatchedByGroupAndSequence) {
    // Rank 1 was not recorded when the first collective of the group took place.
    std::vector<Trace> traces;
    for (int rank = 0; rank < 2; ++rank) {
        TraceFixture fixture;
        fixture.data().processes[0].node = rank;
        for (std::int64_t i = rank; i < 3; ++i) {
            fixture.thread("thread", {{"sync all_reduce", 1000 * i + 100 * rank, 500 - 100 * rank}});
            Argument number;
            number.kind = ValueKind::Int;
            number.integer = 40 + i;
            fixture.value("sequence", number);
            Argument group;
            group.kind = ValueKind::String;
            group.string = fixture.string("data");
            fixture.value("group", group);
        }
        traces.push_back(fixture.trace());
    }
    const RankReport report = rank_report(traces);
    EXPECT_EQ(report.collectives, 2u);
    EXPECT_EQ(report.unmatched, 1u);
    EXPECT_EQ(report.ranks[1].times_last, 2u);
    EXPECT_EQ(report.ranks[0].waiting_ns, 200);
}

struct Outcome {
    int right = 0, wrong = 0, silent = 0;
};

Outcome outcome_of(PlantedCause cause, const std::string& rule, int jobs, std::uint64_t first_seed) {
    Outcome outcome;
    for (int i = 0; i < jobs; ++i) {
        std::mt19937_64 random(first_seed + static_cast<std::uint64_t>(i));
        JobSettings settings;
        settings.cause = cause;
        settings.slow_rank = static_cast<int>(random() % 64);
        settings.delay_ns = 0.6e6 + static_cast<double>(random() % 1'000'000);  // 8 to 20 % of a step
        const RankReport report = rank_report(SimulatedJob(settings, random()).traces());
        EXPECT_EQ(report.disagreeing, 0u) << rule;
        if (report.findings.empty()) {
            ++outcome.silent;
        } else if (report.findings.size() == 1 && report.findings[0].rule == rule &&
                   report.findings[0].rank == settings.slow_rank &&
                   report.findings[0].host == "node" + std::to_string(settings.slow_rank / 8)) {
            ++outcome.right;
        } else {
            ++outcome.wrong;
            ADD_FAILURE() << rule << " seed " << i << ": " << report.findings[0].rule << " "
                          << report.findings[0].text;
        }
    }
    return outcome;
}

TEST(Ranks, PlantedStragglersAreFoundWithTheirCause) {
    int right = 0;
    right += outcome_of(PlantedCause::Input, "late_input", 25, 100).right;
    right += outcome_of(PlantedCause::Kernels, "slow_kernels", 25, 200).right;
    right += outcome_of(PlantedCause::HostCode, "straggler", 25, 300).right;
    right += outcome_of(PlantedCause::Link, "slow_link", 25, 400).right;
    EXPECT_GE(right, 99);
}

TEST(Ranks, BalancedJobsHaveNoFindings) {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        JobSettings settings;
        settings.has_exchanges = seed % 2 == 0;
        const RankReport report = rank_report(SimulatedJob(settings, seed).traces());
        EXPECT_TRUE(report.findings.empty()) << seed << " " << report.findings[0].text;
    }
}

TEST(Ranks, WorkThatDiffersFromStepToStepIsAnImbalance) {
    JobSettings settings;
    settings.cause = PlantedCause::Imbalance;
    const RankReport report = rank_report(SimulatedJob(settings, 5).traces());
    ASSERT_EQ(report.findings.size(), 1u);
    EXPECT_EQ(report.findings[0].rule, "imbalance");
    EXPECT_EQ(report.findings[0].rank, -1);
}

TEST(Ranks, AStragglerIsFoundWithoutClocksByItsShortStays) {
    JobSettings settings;
    settings.cause = PlantedCause::Kernels;
    settings.slow_rank = 9;
    settings.delay_ns = 1.5e6;
    settings.has_exchanges = false;
    const RankReport report = rank_report(SimulatedJob(settings, 6).traces());
    ASSERT_EQ(report.findings.size(), 1u);
    EXPECT_EQ(report.findings[0].rule, "slow_kernels");
    EXPECT_EQ(report.findings[0].rank, 9);
    EXPECT_EQ(report.hosts[1].clock.method, "collective");
}

TEST(Ranks, FindingsAreSilentWhereTheBoundIsLargerThanTheLag) {
    // A late leave is seen by the clocks only; the longest links make their bound larger than the delay.
    JobSettings settings;
    settings.cause = PlantedCause::Link;
    settings.slow_rank = 20;
    settings.delay_ns = 1.2e6;
    settings.transfer_ns = 2e6;
    EXPECT_EQ(rank_report(SimulatedJob(settings, 7).traces()).findings.size(), 1u);
    settings.link_ns = 500e3;
    EXPECT_TRUE(rank_report(SimulatedJob(settings, 7).traces()).findings.empty());
}

TEST(Ranks, AStragglerIsFoundInARecordingWithoutSteps) {
    std::vector<Trace> traces;
    for (int rank = 0; rank < 3; ++rank) {
        TraceFixture fixture;
        fixture.data().processes[0].node = rank;
        std::vector<RangeSpec> ranges;
        for (int i = 0; i < 10; ++i) {
            const std::int64_t start = i * 10 * kMs, late = (rank == 2 ? 5 : 1) * kMs;
            ranges.push_back({"prepare", start, kMs / 2});
            ranges.push_back({"gloo:all_reduce", start + late, 6 * kMs - late});
        }
        fixture.window(0, 100 * kMs).thread("main", ranges);
        traces.push_back(fixture.trace());
    }
    const RankReport report = rank_report(traces);
    ASSERT_EQ(report.findings.size(), 1u);
    EXPECT_EQ(report.findings[0].rule, "straggler");
    EXPECT_EQ(report.findings[0].rank, 2);
    EXPECT_NE(report.findings[0].text.find("last in 10 of 10 collectives"), std::string::npos)
        << report.findings[0].text;
    // Rank 2 spent most of the time outside its ranges.
    ASSERT_FALSE(report.critical_path.empty());
    EXPECT_EQ(report.critical_path[0].name, "");
    EXPECT_EQ(report.critical_path[0].rank, 2);
}

TEST(Ranks, WithoutStepsOtherThreadsThatWaitAreNotTheWork) {
    std::vector<Trace> traces;
    for (int rank = 0; rank < 2; ++rank) {
        TraceFixture fixture;
        fixture.data().processes[0].node = rank;
        std::vector<RangeSpec> work, waits;
        for (int i = 0; i < 5; ++i) {
            const std::int64_t start = i * 10 * kMs, duration = (rank == 0 ? 3 : 8) * kMs;
            work.push_back({"compute", start, duration});
            work.push_back({"gloo:all_reduce", start + duration, 9 * kMs - duration});
            waits.push_back({"wait", start, 9 * kMs});
        }
        fixture.thread("main", work, 100);  // the process id
        fixture.thread("timer", waits);
        traces.push_back(fixture.trace());
    }
    const RankReport report = rank_report(traces);
    ASSERT_FALSE(report.critical_path.empty());
    EXPECT_EQ(report.critical_path[0].name, "compute");
    EXPECT_EQ(report.critical_path[0].rank, 1);
}

TEST(Ranks, AreOnTheClockOfOneHost) {
    JobSettings settings;
    settings.ranks = 16;
    const RankReport report = rank_report(SimulatedJob(settings, 8).traces());
    ASSERT_EQ(report.hosts.size(), 2u);
    const HostClock& clock = report.hosts[1 - report.reference_host].clock;
    EXPECT_EQ(clock.method, "exchange");
    EXPECT_EQ(clock.evidence[0], 32u);
    EXPECT_LT(clock.error_ns, 60'000);
}

TEST(Ranks, RefusesTracesThatCannotBeCompared) {
    TraceFixture plain;
    plain.thread("main", {{"a", 0, 1}});
    RankReader reader;
    EXPECT_THROW(reader.add(plain.trace()), Error);
    reader.add(small_rank(0));
    EXPECT_THROW(static_cast<void>(reader.report()), Error);
    EXPECT_THROW(reader.add(small_rank(0)), Error);
    reader.add(small_rank(1));
    EXPECT_EQ(reader.report().ranks.size(), 2u);
}

TEST(Ranks, AChildProcessWithItsParentsRankDoesNotCount) {
    TraceFixture worker;
    worker.data().processes[0].node = 1;
    worker.thread("loader", {{"decode", 0, 5}});
    RankReader reader;
    reader.add(worker.trace());
    for (const int rank : {1, 0}) reader.add(small_rank(rank));
    TraceFixture other;
    other.data().processes[0].node = 0;
    other.thread("loader", {{"decode", 0, 5}});
    reader.add(other.trace());
    EXPECT_EQ(reader.report().ranks[1].collectives, 2u);
}

/// The same rank of a job that was started again after some time.
Trace life_of(int rank, std::int64_t from_ns, std::int64_t pid, int exit_code, const char* tree = "run") {
    TraceFixture fixture;
    ProcessInfo& process = fixture.data().processes[0];
    process.node = rank;
    process.pid = pid;
    process.start = static_cast<std::uint64_t>(pid);
    process.exit_code = exit_code;
    process.tree = fixture.string(tree);
    fixture.thread("main", {{"gloo:all_reduce", from_ns, kMs}, {"gloo:all_reduce", from_ns + 2 * kMs, kMs}});
    fixture.data().window.start_ns = from_ns;
    fixture.data().window.end_ns = from_ns + 4 * kMs;
    return fixture.trace();
}

TEST(Ranks, OfARankThatWasStartedAgainTheLastLifeIsCompared) {
    for (const bool is_reversed : {false, true}) {
        std::vector<Trace> traces = {life_of(0, 0, 10, -1), life_of(1, 0, 11, 7), life_of(0, 9 * kMs, 20, 0),
                                     life_of(1, 9 * kMs, 21, 0)};
        if (is_reversed) std::reverse(traces.begin(), traces.end());
        const RankReport report = rank_report(traces);
        ASSERT_EQ(report.ranks.size(), 2u);
        EXPECT_EQ(report.ranks[0].pid, 20);
        EXPECT_EQ(report.ranks[1].pid, 21);
        EXPECT_EQ(report.collectives, 2u);
        ASSERT_EQ(report.findings.size(), 1u);
        EXPECT_EQ(report.findings[0].rule, "restarted");
        EXPECT_EQ(report.findings[0].text,
                  "ranks 0, 1 (processes 10, 11) ran before: rank 1 exited with code 7; compared: ranks 0, 1 "
                  "(processes 20, 21)");
    }
}

TEST(Ranks, OneOfTheRanksMayBeStartedAgain) {
    const std::vector<Trace> traces = {life_of(0, 0, 10, 0), life_of(1, 0, 11, 1), life_of(1, 5 * kMs, 12, 1),
                                       life_of(1, 10 * kMs, 13, 0)};
    const RankReport report = rank_report(traces);
    ASSERT_EQ(report.ranks.size(), 2u);
    EXPECT_EQ(report.ranks[1].pid, 13);
    ASSERT_GE(report.findings.size(), 2u);
    EXPECT_EQ(report.findings[0].rank, 1);
    EXPECT_EQ(report.findings[0].text.substr(0, 30), "rank 1 (process 11) ran before");
    EXPECT_EQ(report.findings[1].text.substr(0, 30), "rank 1 (process 12) ran before");
}

TEST(Ranks, TwoJobsAreNotComparedAsOne) {
    RankReader reader;
    reader.add(life_of(0, 0, 10, 0));
    EXPECT_THROW(reader.add(life_of(0, 9 * kMs, 20, 0, "another run")), Error);
    EXPECT_THROW(reader.add(life_of(0, 2 * kMs, 30, 0)), Error);  // at the same time
}

TEST(CollectiveNames, AreRecognised) {
    using enum CommunicationKind;
    EXPECT_EQ(communication_kind("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
              Kernel);
    EXPECT_EQ(communication_kind("gloo:all_reduce"), Collective);
    EXPECT_EQ(communication_kind("nccl:all_reduce"), Call);
    EXPECT_EQ(communication_kind("record_param_comms"), Call);
    EXPECT_EQ(communication_kind("MPI_Allreduce"), Collective);
    EXPECT_EQ(communication_kind("MPI_Iallreduce"), Call);
    EXPECT_EQ(communication_kind("MPI_Send"), Call);
    EXPECT_EQ(communication_kind("aten::mm"), None);
    EXPECT_TRUE(is_synchronising("ncclDevKernel_ReduceScatter_Sum"));
    EXPECT_TRUE(is_synchronising("gloo:_allgather_base"));
    EXPECT_TRUE(is_synchronising("MPI_Barrier"));
    EXPECT_FALSE(is_synchronising("gloo:broadcast"));
    EXPECT_FALSE(is_synchronising("MPI_Iallreduce"));
    EXPECT_FALSE(is_synchronising("gloo:reduce"));
}

TEST(IntervalUnion, KeepsLengths) {
    const Intervals a = united({{5, 9}, {0, 3}, {2, 4}, {9, 10}, {7, 7}});
    EXPECT_EQ(a.size(), 2u);
    EXPECT_EQ(length_between(a, 0, 100), 9);
    EXPECT_EQ(length_between(a, 3, 6), 2);
    EXPECT_EQ(length_between(intersection(a, united({{3, 8}, {9, 20}})), 0, 100), 5);
}

}  // namespace
}  // namespace marey
