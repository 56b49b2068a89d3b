// job_findings_test.cpp: findings from the last collectives and open ranges of ranks: who is missing, and
// why.
#include <marey/ranks.h>

#include <gtest/gtest.h>
#include <signal.h>

#include "analyze/ranks/finding_text.h"

namespace marey {
namespace {

constexpr std::int64_t kTenthS = 100'000'000;

/// Rank 1 of 4 hangs in load_batch; the others wait in all_reduce world #3. All were killed.
std::vector<RankState> hung_job() {
    std::vector<RankState> ranks(4);
    for (std::int32_t i = 0; i < 4; ++i) {
        RankState& rank = ranks[static_cast<std::size_t>(i)];
        rank.rank = i;
        rank.world_size = 4;
        rank.host = "node0";
        rank.end = RankEnd::Died;
        rank.end_ns = 300 * kTenthS;
        rank.usual_ns = kTenthS / 10;
        if (i == 1) {
            rank.open_name = "load_batch";
            rank.open_ns = 274 * kTenthS;
            rank.groups = {{"world", 2, {}}};
        } else {
            rank.open_name = "all_reduce";
            rank.open_ns = 249 * kTenthS;
            rank.groups = {{"world", 3, {{"all_reduce", "world #3", 3, 249 * kTenthS, false}}}};
        }
    }
    return ranks;
}

std::string text_of(const std::vector<RankState>& ranks) {
    std::string text;
    for (const RankFinding& finding : job_findings(ranks))
        text += (text.empty() ? "" : "\n") + finding.rule + ": " + finding.text;
    return text;
}

constexpr const char* kHang =
    "hang: all_reduce world #3: ranks 0, 2, 3 wait 24.9 s; rank 1 is missing, in load_batch for 27.4 s";

TEST(JobFindings, AHangNamesTheRankThatIsMissing) {
    std::vector<RankState> ranks = hung_job();
    EXPECT_EQ(text_of(ranks), kHang);
    EXPECT_EQ(job_findings(ranks)[0].rank, 1);
    EXPECT_EQ(job_findings(ranks)[0].host, "node0");
    for (RankState& rank : ranks) rank.exit_signal = SIGKILL;  // somebody has ended the job
    EXPECT_EQ(text_of(ranks), kHang);
    for (RankState& rank : ranks) rank.exit_signal = -1, rank.end = RankEnd::Running;
    EXPECT_EQ(text_of(ranks), kHang);
}

TEST(JobFindings, AWaitThatIsUsualIsNoHang) {
    std::vector<RankState> ranks = hung_job();
    for (RankState& rank : ranks) rank.end = RankEnd::Running, rank.usual_ns = 100 * kTenthS;
    EXPECT_EQ(text_of(ranks), "");
    for (RankState& rank : ranks) rank.end = RankEnd::Died;
    EXPECT_EQ(text_of(ranks), "died: rank 1 died (its capture has no end) in load_batch");
}

TEST(JobFindings, OfSeveralOpenCollectivesTheFirstThatARankMissesCounts) {
    std::vector<RankState> ranks = hung_job();
    // Launched on a device and not known to have ended; all ranks have entered it.
    for (RankState& rank : ranks)
        rank.groups[0].open.insert(rank.groups[0].open.begin(),
                                   {"all_reduce", "world #2", 2, 250 * kTenthS, true});
    for (const std::size_t i : {0u, 2u}) {
        ranks[i].groups[0].open.push_back({"all_gather", "world #4", 4, 248 * kTenthS, false});
        ranks[i].groups[0].entered = 4;
    }
    EXPECT_EQ(text_of(ranks), kHang);
}

TEST(JobFindings, ARankThatEnteredNoCollectiveIsMissingIfThereIsOneGroup) {
    std::vector<RankState> ranks = hung_job();
    ranks[1].groups.clear();
    EXPECT_EQ(text_of(ranks), kHang);
    for (RankState& rank : ranks) rank.end = RankEnd::Running;
    ranks[0].groups.push_back({"pipeline", 0, {}});
    EXPECT_EQ(text_of(ranks), "hang: all_reduce world #3: all 3 ranks have entered it and wait 24.9 s");
}

TEST(JobFindings, ADeadRankIsTheCauseOfTheWait) {
    std::vector<RankState> ranks = hung_job();
    ranks[1].exit_signal = SIGSEGV;
    ranks[1].open_name = "string_at";
    ranks[1].end_ns = 51 * kTenthS;
    for (const std::size_t i : {0u, 2u, 3u}) ranks[i].exit_signal = SIGTERM;
    EXPECT_EQ(
        text_of(ranks),
        "died: rank 1 died of SIGSEGV in string_at\n"
        "hang: all_reduce world #3: ranks 0, 2, 3 wait 24.9 s; rank 1 is missing, it died of SIGSEGV in "
        "string_at");
    // Without signals, it is the one that ended long before the others.
    for (RankState& rank : ranks) rank.exit_signal = -1;
    EXPECT_EQ(job_findings(ranks)[0].text, "rank 1 died (its capture has no end) in string_at");
    // The others fail in the collective that it did not reach, and have left it when they die.
    std::vector<RankState> failed = ranks;
    for (RankState& rank : failed) rank.end_ns = 51 * kTenthS, rank.groups[0].open.clear();
    failed[0].end = RankEnd::Closed;
    EXPECT_EQ(text_of(failed), "died: rank 1 died (its capture has no end) in string_at");
    // A rank that raised an exception, and those that the launcher ended because of it.
    for (RankState& rank : ranks)
        rank.end_ns = 300 * kTenthS, rank.exit_signal = SIGTERM, rank.groups.clear();
    ranks[1].exit_signal = -1;
    ranks[1].exit_code = 1;
    ranks[1].end = RankEnd::Closed;
    ranks[1].open_name.clear();
    EXPECT_EQ(text_of(ranks), "died: rank 1 exited with code 1");
}

TEST(JobFindings, AJobThatWasEndedBlamesNobody) {
    std::vector<RankState> ranks = hung_job();
    for (RankState& rank : ranks) rank.groups.clear();
    EXPECT_EQ(text_of(ranks), "died: all 4 ranks died (their captures have no end)");
    for (RankState& rank : ranks) rank.exit_signal = SIGTERM;
    EXPECT_EQ(text_of(ranks), "died: all 4 ranks died of SIGTERM");
}

TEST(JobFindings, RanksThatAreNotGivenAreListed) {
    std::vector<RankState> ranks(2);
    ranks[0].world_size = ranks[1].world_size = 4;
    ranks[1].rank = 3;
    EXPECT_EQ(text_of(ranks), "absent: ranks 1, 2 of 4 not given");
    ranks[0].world_size = 200;
    EXPECT_EQ(text_of(ranks), "absent: ranks 1-2, 4-199 of 200 not given");
    std::vector<RankState> hung = hung_job();
    hung.erase(hung.begin() + 1);
    EXPECT_EQ(text_of(hung),
              "absent: rank 1 of 4 not given\n"
              "hang: all_reduce world #3: ranks 0, 2, 3 wait 24.9 s; rank 1 is not given");
}

TEST(JobFindings, TwoGroupsThatWaitForEachOtherAreTwoHangs) {
    std::vector<RankState> ranks(2);
    for (std::int32_t i = 0; i < 2; ++i) {
        RankState& rank = ranks[static_cast<std::size_t>(i)];
        rank.rank = i;
        rank.end = RankEnd::Running;
        rank.open_name = i == 0 ? "reduce a" : "reduce b";
        rank.open_ns = 50 * kTenthS;
        rank.groups = {{"a", i == 0 ? 5 : 4, {}}, {"b", i == 1 ? 5 : 4, {}}};
        rank.groups[i == 0 ? 0 : 1].open = {{"reduce", i == 0 ? "a #5" : "b #5", 5, 50 * kTenthS, false}};
    }
    EXPECT_EQ(text_of(ranks),
              "hang: reduce a #5: rank 0 waits 5.0 s; rank 1 is missing, in reduce b for 5.0 s\n"
              "hang: reduce b #5: rank 1 waits 5.0 s; rank 0 is missing, in reduce a for 5.0 s");
}

TEST(FindingText, ListsRanksAndTimes) {
    EXPECT_EQ(ranks_text({7}), "rank 7");
    EXPECT_EQ(ranks_text({0, 1, 2, 3, 4, 5, 6, 8, 9, 12}), "ranks 0-6, 8-9, 12");
    EXPECT_EQ(time_text(24.94e9), "24.9 s");
    EXPECT_EQ(time_text(3e6), "3.0 ms");
    EXPECT_EQ(time_text(-5), "0.0 us");
}

}  // namespace
}  // namespace marey
