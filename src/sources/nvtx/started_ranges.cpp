// started_ranges.cpp: a map in parts, each with a lock.
#include "sources/nvtx/started_ranges.h"

#include <mutex>
#include <utility>

namespace marey {

void StartedRanges::add(std::uint64_t number, Range range) {
    Part& own = part(number);
    const std::lock_guard lock(own.mutex);
    own.ranges.emplace(number, std::move(range));
}

Range StartedRanges::take(std::uint64_t number) noexcept {
    Part& own = part(number);
    const std::lock_guard lock(own.mutex);
    const auto found = own.ranges.find(number);
    if (found == own.ranges.end()) return {};
    Range range = std::move(found->second);
    own.ranges.erase(found);
    return range;
}

}  // namespace marey
