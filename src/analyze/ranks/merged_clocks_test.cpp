// merged_clocks_test.cpp: merging the traces of a job on several hosts.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include <marey/merge.h>
#include <marey/ranks.h>

#include "analyze/ranks/job_fixture.h"

namespace marey {
namespace {

/// Merges a job and checks that every range is where it belongs, within the error of its host's clock.
Trace merged_job(const JobSettings& settings, std::uint64_t seed) {
    SimulatedJob job(settings, seed);
    const std::vector<Trace> traces = job.traces();
    const Trace merged = merge_traces({traces.begin(), traces.end()});
    std::map<std::string, const HostClockInfo*, std::less<>> clocks;
    for (const HostClockInfo& clock : merged.host_clocks()) clocks.emplace(merged.string(clock.host), &clock);
    const std::string reference(merged.string(merged.host_clocks()[0].reference));
    const int reference_rank = std::stoi(reference.substr(4)) * settings.ranks_per_host;
    for (const TrackInfo& track : merged.tracks()) {
        const ProcessInfo& process = merged.processes()[merged.threads()[track.thread].process];
        const Trace& own = traces[static_cast<std::size_t>(process.node)];
        const std::int64_t error = clocks.find(merged.string(process.host))->second->error_ns;
        for (Row row = 0; row < track.range_count; ++row) {
            const double truth = job.true_ns(process.node, own.ranges().start_ns[row]);
            const std::int64_t moved = merged.ranges().start_ns[track.first_range + row];
            const std::int64_t off = std::abs(moved - job.local(reference_rank, truth));
            EXPECT_LE(off, error) << "seed " << seed << " rank " << process.node;
            if (off > error) return merged;
        }
    }
    return merged;
}

TEST(MergedClocks, ExchangesAndCollectivesPlaceEveryRange) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const Trace merged = merged_job({.ranks = 16, .ranks_per_host = 2, .steps = 6}, seed);
        ASSERT_EQ(merged.host_clocks().size(), 8U);
        EXPECT_TRUE(merged.problems().empty());
        for (const HostClockInfo& clock : merged.host_clocks()) {
            if (merged.string(clock.method) == "reference") continue;
            EXPECT_EQ(merged.string(clock.method), "exchange");
            EXPECT_EQ(merged.string(clock.evidence), "16 exchanges, 18 collectives");
            EXPECT_LT(clock.error_ns, 60'000);
        }
    }
}

TEST(MergedClocks, CollectivesAloneDoWithALargerBound) {
    const Trace merged =
        merged_job({.ranks = 4, .ranks_per_host = 1, .steps = 20, .has_exchanges = false}, 3);
    for (const HostClockInfo& clock : merged.host_clocks()) {
        if (merged.string(clock.method) == "reference") continue;
        EXPECT_EQ(merged.string(clock.method), "collective");
        EXPECT_LT(clock.error_ns, 1'000'000);
    }
}

TEST(MergedClocks, TwoJobsWithTheSameRanksAreNotMatched) {
    std::vector<Trace> traces =
        SimulatedJob({.ranks = 2, .ranks_per_host = 1, .has_exchanges = false}, 1).traces();
    const std::vector<Trace> others =
        SimulatedJob({.ranks = 2, .ranks_per_host = 1, .has_exchanges = false}, 2).traces();
    traces.insert(traces.end(), others.begin(), others.end());
    const Trace merged = merge_traces(std::move(traces));
    for (const HostClockInfo& clock : merged.host_clocks()) EXPECT_EQ(merged.string(clock.evidence), "");
}

TEST(MergedClocks, RanksOfAMergedTraceAreThoseOfTheirFiles) {
    const JobSettings settings{
        .ranks = 8, .ranks_per_host = 2, .cause = PlantedCause::HostCode, .slow_rank = 5, .delay_ns = 3e6};
    RankReader apart, together;
    for (const Trace& trace : SimulatedJob(settings, 7).traces()) apart.add(trace);
    together.add(merge_traces(SimulatedJob(settings, 7).traces()));
    const RankReport first = apart.report(), second = together.report();
    ASSERT_FALSE(first.findings.empty());
    ASSERT_EQ(second.findings.size(), first.findings.size());
    EXPECT_EQ(second.findings[0].rank, 5);
    EXPECT_EQ(second.findings[0].rule, first.findings[0].rule);
    EXPECT_EQ(second.collectives, first.collectives);
    EXPECT_EQ(second.disagreeing, 0U);
}

}  // namespace
}  // namespace marey
