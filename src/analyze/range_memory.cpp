// range_memory.cpp: which range each allocation report happened in, and what ranges took and gave back.
#include "analyze/range_memory.h"

#include <algorithm>
#include <queue>

#include "analyze/innermost_ranges.h"
#include "analyze/live_memory.h"

namespace kymo {
namespace {

void add(RangeBytes& to, const RangeBytes& from) {
    to.cpu_bytes = wrapping_sum(to.cpu_bytes, from.cpu_bytes);
    to.device_bytes = wrapping_sum(to.device_bytes, from.device_bytes);
}

/// Rows of one range become one.
void merge_equal(std::vector<RangeBytes>& rows) {
    std::sort(rows.begin(), rows.end(),
              [](const RangeBytes& a, const RangeBytes& b) { return a.range < b.range; });
    std::size_t kept = 0;
    for (const RangeBytes& row : rows) {
        if (kept > 0 && rows[kept - 1].range == row.range) {
            add(rows[kept - 1], row);
        } else {
            rows[kept++] = row;
        }
    }
    rows.resize(kept);
}

}  // namespace

RangeMemory range_memory(const Trace& trace) {
    const MemoryColumns reports = trace.memory();
    RangeMemory memory;
    memory.owner.reserve(reports.size());
    InnermostRanges innermost(trace);
    for (std::size_t i = 0; i < reports.size(); ++i) {
        const Row owner = innermost.at(reports.thread[i], reports.time_ns[i]);
        memory.owner.push_back(owner);
        if (owner == kNoRow || reports.out_of_memory[i] != 0) continue;
        const std::int64_t bytes = reports.bytes[i];
        const bool cpu = is_cpu_memory(reports.device[i]);
        memory.self.push_back({owner, cpu ? bytes : 0, cpu ? 0 : bytes});
    }
    merge_equal(memory.self);
    return memory;
}

std::vector<RangeBytes> total_range_memory(const Trace& trace, std::span<const RangeBytes> self) {
    const RangeColumns ranges = trace.ranges();
    // The largest row first: when a row is taken, all that is inside it has been.
    const auto smaller = [](const RangeBytes& a, const RangeBytes& b) { return a.range < b.range; };
    std::priority_queue<RangeBytes, std::vector<RangeBytes>, decltype(smaller)> waiting(
        smaller, std::vector<RangeBytes>(self.begin(), self.end()));
    std::vector<RangeBytes> totals;
    while (!waiting.empty()) {
        RangeBytes row = waiting.top();
        waiting.pop();
        for (; !waiting.empty() && waiting.top().range == row.range; waiting.pop()) add(row, waiting.top());
        totals.push_back(row);
        row.range = ranges.parent[row.range];
        if (row.range != kNoRow) waiting.push(row);
    }
    std::reverse(totals.begin(), totals.end());
    return totals;
}

}  // namespace kymo
