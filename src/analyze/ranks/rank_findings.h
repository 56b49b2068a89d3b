// rank_findings.h: rules that find performance problems in a report about ranks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <marey/ranks.h>

namespace marey {

/// `late_steps`: for each rank, in how many of its steps it kept the others waiting for certain.
std::vector<RankFinding> rank_findings(const RankReport& report, std::span<const std::uint64_t> late_steps);

}  // namespace marey
