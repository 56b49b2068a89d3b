// event_order.h: ranges and allocation reports in order of time.
#pragma once

#include <algorithm>

#include <marey/trace.h>

namespace marey {

/// Compares nodes: range rows, followed by report rows. Order: start, longer first, then number. The trace
/// must outlive this.
class EventOrder {
  public:
    explicit EventOrder(const Trace& trace)
        : ranges_(trace.ranges()), reports_(trace.memory()), range_count_(ranges_.size()) {}

    bool operator()(std::uint32_t a, std::uint32_t b) const noexcept {
        if (start(a) != start(b)) return start(a) < start(b);
        if (duration(a) != duration(b)) return duration(a) > duration(b);
        return a < b;
    }

    /// Sorts nodes that are mostly sorted already (the tracks one after another).
    void sort(std::vector<std::uint32_t>& nodes) const {
        std::vector<std::size_t> runs{0};
        for (std::size_t i = 1; i < nodes.size(); ++i) {
            if ((*this)(nodes[i], nodes[i - 1])) runs.push_back(i);
        }
        runs.push_back(nodes.size());
        const auto at = [&](std::size_t run) {
            return nodes.begin() + static_cast<std::ptrdiff_t>(runs[run]);
        };
        while (runs.size() > 2) {
            std::vector<std::size_t> merged;
            for (std::size_t run = 0; run + 1 < runs.size(); run += 2) {
                merged.push_back(runs[run]);
                if (run + 2 < runs.size()) std::inplace_merge(at(run), at(run + 1), at(run + 2), *this);
            }
            merged.push_back(nodes.size());
            runs = std::move(merged);
        }
    }

  private:
    std::int64_t start(std::uint32_t node) const noexcept {
        return node < range_count_ ? ranges_.start_ns[node] : reports_.time_ns[node - range_count_];
    }
    std::int64_t duration(std::uint32_t node) const noexcept {
        return node < range_count_ ? ranges_.duration_ns[node] : 0;
    }

    RangeColumns ranges_;
    MemoryColumns reports_;
    std::size_t range_count_;
};

}  // namespace marey
