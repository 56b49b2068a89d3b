// rank_lives.h: launchers start ranks again after a failure, so that a rank may have run several times.
#pragma once

#include "analyze/ranks/rank_events.h"

namespace marey {

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

}  // namespace marey
