// range_memory.cpp: which range each allocation report happened in, and what ranges took and gave back.
#include "analyze/range_memory.h"

#include <algorithm>
#include <queue>

namespace kymo {
namespace {

/// The innermost open range of one track, for times that do not fall. Starts never fall along a track, so
/// that ranges between two times are jumped over; a range that has ended is climbed past once.
class TrackCursor {
  public:
    TrackCursor(const TrackInfo& track, const RangeColumns& ranges)
        : ranges_(ranges),
          first_(track.first_range),
          end_(track.first_range + track.range_count),
          next_(track.first_range) {}

    Row innermost_at(std::int64_t time_ns) {
        const Row next = first_after(time_ns);
        if (next != next_) {
            next_ = next;
            innermost_ = next - 1;
        }
        while (innermost_ != kNoRow && !is_open(innermost_, time_ns)) innermost_ = outer(innermost_);
        return innermost_;
    }
    void rewind() {
        next_ = first_;
        innermost_ = kNoRow;
    }

  private:
    /// The first range that starts after `time_ns`: looked for in growing steps from where the last one was.
    Row first_after(std::int64_t time_ns) const {
        const std::span<const std::int64_t> starts = ranges_.start_ns.subspan(next_, end_ - next_);
        std::size_t low = 0, step = 1;
        while (step < starts.size() - low && starts[low + step] <= time_ns) {
            low += step;
            step *= 2;
        }
        const std::span<const std::int64_t> near = starts.subspan(low, std::min(step, starts.size() - low));
        const auto after = std::upper_bound(near.begin(), near.end(), time_ns);
        return next_ + static_cast<Row>(low + static_cast<std::size_t>(after - near.begin()));
    }
    bool is_open(Row range, std::int64_t time_ns) const {
        const std::int64_t start = ranges_.start_ns[range], duration = ranges_.duration_ns[range];
        if (start == time_ns) return true;
        // As unsigned numbers: the difference of two times may not fit.
        return static_cast<std::uint64_t>(time_ns) - static_cast<std::uint64_t>(start) <
               static_cast<std::uint64_t>(duration);
    }
    Row outer(Row range) const { return ranges_.depth[range] == 0 ? kNoRow : ranges_.parent[range]; }

    const RangeColumns& ranges_;
    Row first_, end_;
    Row next_;                ///< all before it have begun
    Row innermost_ = kNoRow;  ///< or one inside it that has ended
};

/// The tracks of each thread that hold its calls.
std::vector<std::vector<TrackCursor>> cursors_by_thread(const Trace& trace, const RangeColumns& ranges) {
    std::vector<std::vector<TrackCursor>> cursors(trace.threads().size());
    for (const TrackInfo& track : trace.tracks()) {
        const bool holds_calls = track.kind == TrackKind::Thread ||
                                 (track.kind == TrackKind::Overlap && is_cpu_memory(track.device));
        if (holds_calls && track.range_count > 0) cursors[track.thread].emplace_back(track, ranges);
    }
    return cursors;
}

/// Hostile sums wrap round instead of being undefined.
std::int64_t sum(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

void add(RangeBytes& to, const RangeBytes& from) {
    to.cpu_bytes = sum(to.cpu_bytes, from.cpu_bytes);
    to.device_bytes = sum(to.device_bytes, from.device_bytes);
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
    const RangeColumns ranges = trace.ranges();
    const MemoryColumns reports = trace.memory();
    RangeMemory memory;
    memory.owner.reserve(reports.size());
    if (reports.size() == 0) return memory;
    std::vector<std::vector<TrackCursor>> cursors = cursors_by_thread(trace, ranges);
    for (std::size_t i = 0; i < reports.size(); ++i) {
        const std::int64_t time_ns = reports.time_ns[i];
        std::vector<TrackCursor>& tracks = cursors[reports.thread[i]];
        if (i > 0 && reports.thread[i] == reports.thread[i - 1] && time_ns < reports.time_ns[i - 1]) {
            for (TrackCursor& track : tracks) track.rewind();
        }
        Row owner = kNoRow;
        for (TrackCursor& track : tracks) {
            const Row range = track.innermost_at(time_ns);
            // A child's row is larger than its parent's, so that of two equal starts it is the inner one.
            if (range != kNoRow && (owner == kNoRow || ranges.start_ns[range] > ranges.start_ns[owner] ||
                                    (ranges.start_ns[range] == ranges.start_ns[owner] && range > owner)))
                owner = range;
        }
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
