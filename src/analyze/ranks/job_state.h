// job_state.h: what the ranks of a job did last, where they got out of step, how often they were started, and
// which are slow.
#pragma once

#include <optional>

#include <marey/ranks.h>

#include "analyze/ranks/matched_collectives.h"
#include "analyze/ranks/rank_events.h"

namespace marey {

/// The last collectives and the open range of a rank. `end_ns` is on its host's clock.
RankState state_of(const RankEvents& rank, const TextNumbers& texts);

/// Ranks that call different collectives where they should meet.
struct Disagreement {
    std::optional<RankFinding> finding;  ///< none if collectives without numbers may be of several groups
    std::uint64_t collectives = 0;       ///< from the first one of its group on
};
/// Marks the collectives from the first disagreement on as partial: they do not belong together.
Disagreement find_disagreement(std::span<RankEvents> ranks, const MatchedCollectives& collectives,
                               const TextNumbers& texts);

/// Ranks that took different numbers of steps although none of them was cut off.
std::optional<RankFinding> unequal_steps(std::span<const RankEvents> ranks);

/// Whether two processes of the same rank cannot belong to one job: both communicate, and they did so at the
/// same time or in different runs of `marey run`.
bool are_of_two_jobs(const RankEvents& a, const RankEvents& b, const TextNumbers& texts);

struct RankLives {
    std::size_t ranks = 0;              ///< the number of ranks
    std::vector<RankFinding> restarts;  ///< one for each earlier run
};
/// Moves the process of each rank that is compared to the front, in the order of ranks: that of its last run.
/// Child processes, such as a data loader's workers, have the rank of their parents.
RankLives find_last_lives(std::vector<RankEvents>& processes, const TextNumbers& texts);

/// A rank in the steps that count for findings: those of at least two ranks, without the first one of
/// several, because ranks start at different times and warm up.
struct RankLateness {
    std::int64_t delayed_ns = 0;         ///< time for which only this rank kept the others waiting
    std::int64_t waiting_ns = 0;         ///< for others
    std::int64_t time_ns = 0;            ///< of its steps
    std::uint64_t late_steps = 0;        ///< steps, of all, in which it kept the others waiting for certain
    std::uint64_t late_collectives = 0;  ///< likewise, if there are no steps
};
struct JobLateness {
    std::vector<RankLateness> ranks;
    double steps_ns = 0;  ///< of the slowest rank in each of these steps
    std::uint64_t steps = 0;
    std::uint64_t waiting_steps = 0;  ///< in which ranks wait for kImbalanceShare of the time or more
    bool has_steps = false;           ///< otherwise the whole recording is one
};
constexpr double kDelayShare = 0.02;      // of the time of all steps
constexpr double kImbalanceShare = 0.10;  // of the time of all ranks, spent waiting

std::vector<RankFinding> rank_findings(const RankReport& report, const JobLateness& lateness);

}  // namespace marey
