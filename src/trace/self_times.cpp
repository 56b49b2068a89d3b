// self_times.cpp: one pass: each range adds to its own row and subtracts from its parent's.
#include "trace/self_times.h"

#include <algorithm>

namespace marey {

std::vector<std::int64_t> self_times(const TraceData& data) {
    const std::size_t count = data.range_start_ns.size();
    std::vector<std::uint64_t> self(count);
    const auto wrap = [](std::int64_t time) { return static_cast<std::uint64_t>(time); };
    for (std::size_t row = 0; row < count; ++row) {
        const auto true_end =
            static_cast<std::int64_t>(wrap(data.range_start_ns[row]) + wrap(data.range_duration_ns[row]));
        const std::int64_t start = std::max(data.range_start_ns[row], data.window.start_ns);
        const std::int64_t end = std::min(true_end, data.window.end_ns);
        if (end <= start) continue;
        const std::uint64_t clipped = wrap(end) - wrap(start);
        self[row] += clipped;
        if (data.range_parent[row] != kNoRow) self[data.range_parent[row]] -= clipped;
    }
    return {self.begin(), self.end()};
}

}  // namespace marey
