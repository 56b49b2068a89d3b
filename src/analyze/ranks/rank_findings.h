// rank_findings.h: which ranks are slow, and why.
#pragma once

#include <marey/ranks.h>

namespace marey {

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
