// matched_collectives.h: the collectives of a job: which ranks took part, who came last, who waited.
#pragma once

#include <functional>

#include "analyze/ranks/rank_events.h"

namespace marey {

/// One rank's part in a collective.
struct CollectiveMember {
    std::uint32_t rank;   ///< index in the job
    std::uint32_t index;  ///< in its collectives
};

/// The collectives of all ranks, by number. Members of collective i are
/// members[first[i], first[i + 1]), in order of their ranks.
struct MatchedCollectives {
    std::vector<std::uint32_t> first;
    std::vector<CollectiveMember> members;
    std::vector<std::vector<std::uint32_t>> number;  ///< of each rank's collectives

    std::size_t size() const noexcept { return first.size() - 1; }
    std::span<const CollectiveMember> of(std::size_t collective) const noexcept {
        return std::span(members).subspan(first[collective], first[collective + 1] - first[collective]);
    }
};
MatchedCollectives match_collectives(std::span<const RankEvents> ranks);

/// The hosts of a job and their clocks. `host_of` has the host of each rank.
struct JobClocks {
    std::vector<std::uint32_t> host_of;
    std::vector<std::uint32_t> host_names;  ///< texts
    HostClocks clocks;
};
/// Fits the clocks from the exchanges of ranks and from the collectives that no rank can leave before all
/// have entered (`is_synchronising`, by text). `host_name`: for problems, by RankEvents::host. `more` is
/// other evidence; its hosts are indexes of ranks.
JobClocks fit_clocks(std::span<const RankEvents> ranks, const MatchedCollectives& collectives,
                     const std::vector<bool>& is_synchronising,
                     const std::function<std::string(std::uint32_t)>& host_name,
                     std::vector<ClockEvidence> more = {});

/// Who came last to a collective.
struct Arrival {
    std::uint32_t last = 0;      ///< index in the members
    std::int64_t lag_ns = 0;     ///< until it entered, after all others had
    std::int64_t bound_ns = 0;   ///< possible error of `lag_ns`
    bool is_by_clock = false;    ///< otherwise it is the one that stayed shortest
    bool disagrees = false;      ///< both answers differ by more than the clocks' error
    bool is_impossible = false;  ///< a rank left before another one entered, by more than the clocks' error
    bool is_certain() const noexcept { return lag_ns > bound_ns; }
};

}  // namespace marey
