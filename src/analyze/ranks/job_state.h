// job_state.h: what the ranks of a job did last, and where they got out of step.
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

}  // namespace marey
