// range_memory.cpp: the range of each allocation report, and the memory that ranges allocated and freed.
#include "analyze/memory/range_memory.h"

#include <algorithm>
#include <numeric>
#include <queue>

#include "analyze/events/innermost_ranges.h"
#include "analyze/memory/live_memory.h"

namespace marey {
namespace {

void add(RangeBytes& to, const RangeBytes& from) {
    to.cpu_bytes = wrapping_sum(to.cpu_bytes, from.cpu_bytes);
    to.device_bytes = wrapping_sum(to.device_bytes, from.device_bytes);
}

/// Merges the rows of the same range.
void merge_equal(std::vector<RangeBytes>& rows) {
    std::ranges::sort(rows, {}, &RangeBytes::range);
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

/// The reports in time order, with prefix sums.
class ReportsByTime {
  public:
    explicit ReportsByTime(const Trace& trace) : reports_(trace.memory()), order_(reports_.size()) {
        std::iota(order_.begin(), order_.end(), std::size_t{0});
        std::ranges::stable_sort(order_, {}, [&](std::size_t a) { return reports_.time_ns[a]; });
        sums_.reserve(order_.size() + 1);
        for (const std::size_t report : order_) {
            RangeBytes sum = sums_.back();
            const bool cpu = is_cpu_memory(reports_.device[report]);
            const std::int64_t bytes = reports_.out_of_memory[report] != 0 ? 0 : reports_.bytes[report];
            add(sum, {kNoRow, cpu ? bytes : 0, cpu ? 0 : bytes});
            sums_.push_back(sum);
        }
    }

    /// The reports from `start_ns` to `end_ns`, both inclusive.
    std::span<const std::size_t> between(std::int64_t start_ns, std::int64_t end_ns) const {
        const auto first = std::ranges::lower_bound(
            order_, start_ns, {}, [&](std::size_t report) { return reports_.time_ns[report]; });
        const auto last = std::upper_bound(
            first, order_.end(), end_ns,
            [&](std::int64_t time, std::size_t report) { return time < reports_.time_ns[report]; });
        return {first, last};
    }
    RangeBytes sum(std::span<const std::size_t> part) const {
        const auto first = static_cast<std::size_t>(part.data() - order_.data());
        RangeBytes result = sums_[first + part.size()];
        result.cpu_bytes = wrapping_difference(result.cpu_bytes, sums_[first].cpu_bytes);
        result.device_bytes = wrapping_difference(result.device_bytes, sums_[first].device_bytes);
        return result;
    }

  private:
    MemoryColumns reports_;
    std::vector<std::size_t> order_;
    std::vector<RangeBytes> sums_ = {RangeBytes()};
};

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

RangeMemory range_memory_by_time(const Trace& trace) {
    const RangeColumns ranges = trace.ranges();
    const ReportsByTime reports(trace);
    RangeMemory memory;
    memory.owner.assign(trace.memory().size(), kNoRow);
    for (const TrackInfo& track : trace.tracks()) {
        if (track.kind == TrackKind::Async || track.device.type != DeviceType::Cpu) continue;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            const std::int64_t start = ranges.start_ns[row];
            const auto inside = reports.between(start, start + ranges.duration_ns[row]);
            if (inside.empty()) continue;
            RangeBytes bytes = reports.sum(inside);
            bytes.range = row;
            memory.self.push_back(bytes);
            const Row parent = ranges.parent[row];
            if (parent == kNoRow) {
                for (const std::size_t report : inside) memory.owner[report] = row;
            } else {
                memory.self.push_back({parent, wrapping_difference(0, bytes.cpu_bytes),
                                       wrapping_difference(0, bytes.device_bytes)});
            }
        }
    }
    merge_equal(memory.self);
    return memory;
}

std::vector<RangeBytes> memory_during(const Trace& trace, std::span<const Row> rows) {
    const RangeColumns ranges = trace.ranges();
    std::vector<RangeBytes> result;
    if (rows.empty()) return result;
    const ReportsByTime reports(trace);
    for (const Row row : rows) {
        const std::int64_t start = ranges.start_ns[row];
        const auto inside = reports.between(start, start + ranges.duration_ns[row]);
        if (inside.empty()) continue;
        result.push_back(reports.sum(inside));
        result.back().range = row;
    }
    return result;
}

std::vector<RangeBytes> total_range_memory(const Trace& trace, std::span<const RangeBytes> self) {
    const RangeColumns ranges = trace.ranges();
    // From the largest row down: all ranges inside a range are processed before it.
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
    std::ranges::reverse(totals);
    return totals;
}

}  // namespace marey
