// sick_jobs_test.cpp: 100 simulated jobs of each kind: what is wrong with them is found, and nothing else.
#include <marey/ranks.h>

#include <gtest/gtest.h>

#include "analyze/ranks/sick_job_fixture.h"

namespace marey {
namespace {

constexpr std::uint64_t kJobs = 100;

std::string all_texts(const RankReport& report) {
    std::string text;
    for (const RankFinding& finding : report.findings) text += finding.rule + ": " + finding.text + "\n";
    return text.empty() ? "no findings\n" : text;
}

/// Holds for every job, however sick it is.
void check_sums(const RankReport& report) {
    for (const RankInfo& rank : report.ranks) {
        EXPECT_GE(rank.waiting_ns, 0);
        EXPECT_LE(rank.waiting_ns, rank.step_times.total_ns);
        EXPECT_LE(rank.communication_ns, rank.step_times.total_ns);
        EXPECT_GE(rank.exposed_ns(), 0);
        EXPECT_GE(rank.delayed_ns, 0);
        EXPECT_LE(rank.delayed_ns, rank.step_times.total_ns);
    }
    for (const RankFinding& finding : report.findings) {
        EXPECT_GE(finding.share, 0);
        EXPECT_LE(finding.share, 1);
    }
    EXPECT_GE(report.step_without_worst_ns, 0);
    EXPECT_LE(report.step_without_worst_ns, report.mean_step_ns);
}

/// Calls check(job, report) for jobs of a kind, and names the seed of a job that fails.
template <class Check>
void for_jobs(JobKind kind, Check check) {
    for (std::uint64_t seed = 0; seed < kJobs; ++seed) {
        SickJob job(kind, 1000 * static_cast<std::uint64_t>(kind) + seed);
        const std::vector<Trace> traces = job.traces();
        const RankReport report = rank_report(traces);
        SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(job.ranks) + " ranks, victim " +
                     std::to_string(job.victim) + (job.is_numbered ? ", numbered" : "") +
                     (job.has_steps ? ", steps" : "") + ":\n" + all_texts(report));
        check_sums(report);
        check(job, report);
        if (::testing::Test::HasFailure()) return;
    }
}

TEST(SickJobs, ABalancedJobIsSilentHoweverItsRanksWereLaunched) {
    for_jobs(JobKind::Balanced, [](const SickJob&, const RankReport& report) {
        EXPECT_TRUE(report.findings.empty());
        EXPECT_EQ(report.worst_rank, -1);
    });
}

TEST(SickJobs, AStragglerIsFound) {
    for_jobs(JobKind::Straggler, [](const SickJob& job, const RankReport& report) {
        ASSERT_EQ(report.findings.size(), 1u);
        EXPECT_EQ(report.findings[0].rule, "straggler");
        EXPECT_EQ(report.findings[0].rank, job.victim);
        EXPECT_EQ(report.worst_rank, job.victim);
    });
}

TEST(SickJobs, SlowLoadingIsTheCauseInsideAndBetweenSteps) {
    for_jobs(JobKind::SlowInput, [](const SickJob& job, const RankReport& report) {
        ASSERT_EQ(report.findings.size(), 1u);
        EXPECT_EQ(report.findings[0].rule, "late_input");
        EXPECT_EQ(report.findings[0].rank, job.victim);
        std::int64_t in_no_range = 0, loading = 0, total = 0;
        for (const CriticalPart& part : report.critical_path) {
            total += part.time_ns;
            if (part.name.empty()) in_no_range += part.time_ns;
            if (part.name.find("DataLoader") != part.name.npos) loading += part.time_ns;
        }
        EXPECT_EQ(in_no_range, 0);
        EXPECT_LT(loading, total);
        // Each piece of the path has the name of its longest work: aten::mm takes 2 ms.
        if (job.delay_ns * job.collectives > 2e6) {
            EXPECT_GT(loading, 0);
        }
    });
}

TEST(SickJobs, TheRankThatOthersWaitForInAHangIsNamed) {
    for_jobs(JobKind::Hang, [](const SickJob& job, const RankReport& report) {
        ASSERT_EQ(report.findings.size(), 1u);
        const RankFinding& finding = report.findings[0];
        EXPECT_EQ(finding.rule, "hang");
        EXPECT_EQ(finding.rank, job.victim);
        EXPECT_TRUE(finding.text.starts_with("all_reduce " + job.fault_place() + ": rank"));
        EXPECT_NE(
            finding.text.find("; rank " + std::to_string(job.victim) + " is missing, in load_batch for "),
            finding.text.npos);
        EXPECT_GT(report.unfinished, 0u);
        EXPECT_EQ(report.collectives, static_cast<std::uint64_t>(job.fault_number()));
    });
}

TEST(SickJobs, TheRankThatDiedIsNamedAndNoOther) {
    for_jobs(JobKind::Crash, [](const SickJob& job, const RankReport& report) {
        const std::string rank = "rank " + std::to_string(job.victim);
        ASSERT_FALSE(report.findings.empty());
        EXPECT_EQ(report.findings[0].rule, "died");
        EXPECT_EQ(report.findings[0].text,
                  rank + (job.knows_signals ? " died of SIGSEGV in string_at"
                                            : " died (its capture has no end) in string_at"));
        for (const RankFinding& finding : report.findings) EXPECT_EQ(finding.rank, job.victim);
        if (report.findings.size() > 1) {
            EXPECT_EQ(report.findings[1].rule, "hang");
        }
        EXPECT_LE(report.findings.size(), 2u);
    });
}

TEST(SickJobs, RanksThatCallDifferentCollectivesDisagree) {
    for_jobs(JobKind::Disagreement, [](const SickJob& job, const RankReport& report) {
        ASSERT_EQ(report.findings.size(), 1u);
        const RankFinding& finding = report.findings[0];
        EXPECT_EQ(finding.rule, "disagreement");
        const std::string number =
            job.is_numbered || !job.has_steps
                ? std::to_string(job.fault_number())
                : std::to_string(job.fault_part) + " of step " + std::to_string(job.fault_step);
        EXPECT_TRUE(finding.text.starts_with("ranks disagree from collective " + number + " on: "));
        EXPECT_NE(finding.text.find("all_gather on rank " + std::to_string(job.victim)), finding.text.npos);
        if (job.ranks > 2) {
            EXPECT_TRUE(finding.text.ends_with("all_reduce on others"));
        }
        EXPECT_EQ(report.collectives, static_cast<std::uint64_t>(job.fault_number()));
    });
}

TEST(SickJobs, ARankThatIsNotGivenIsNamed) {
    for_jobs(JobKind::AbsentRank, [](const SickJob& job, const RankReport& report) {
        ASSERT_EQ(report.findings.size(), 1u);
        EXPECT_EQ(report.findings[0].rule, "absent");
        EXPECT_EQ(report.findings[0].rank, job.victim);
        EXPECT_EQ(report.findings[0].text,
                  "rank " + std::to_string(job.victim) + " of " + std::to_string(job.ranks) + " not given");
    });
}

TEST(SickJobs, UnequalNumbersOfStepsAreFound) {
    for_jobs(JobKind::UnequalSteps, [](const SickJob& job, const RankReport& report) {
        ASSERT_EQ(report.findings.size(), 1u);
        EXPECT_EQ(report.findings[0].rule, "unequal_steps");
        EXPECT_NE(report.findings[0].text.find(std::to_string(job.fault_step) + " on rank " +
                                               std::to_string(job.victim)),
                  std::string::npos);
    });
}

TEST(SickJobs, RanksThatNeverWaitedForEachOtherAreNotCompared) {
    for_jobs(JobKind::NotSynchronised, [](const SickJob&, const RankReport& report) {
        EXPECT_TRUE(report.findings.empty());
        EXPECT_EQ(report.worst_rank, -1);
    });
}

}  // namespace
}  // namespace marey
