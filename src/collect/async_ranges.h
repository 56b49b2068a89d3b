// async_ranges.h: movable ranges: joining their begins and ends, and deciding which of them nest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <unordered_map>
#include <vector>

#include "collect/log_scan.h"

namespace marey {

/// A marey::Range: a begin in one thread's log, an end in the same or another one's.
struct AsyncRange {
    std::uint64_t start = 0;  ///< ticks; without a begin: the start that the end states, 0 if it states none
    std::uint64_t end = 0;
    std::uint64_t shown_from = 0;  ///< of a step: the end of the last scope that it began in and outlived
    const std::byte* payload = nullptr;
    std::uint32_t payload_bytes = 0;
    std::uint32_t site = 0;
    std::uint32_t begin_thread = 0;
    std::uint32_t end_thread = 0;
    std::uint32_t begin_depth = 0;  ///< scopes open at its begin
    std::uint32_t end_depth = 0;
    std::uint8_t flags = 0;  ///< RecordFlags of its begin
    bool has_begin = false;
    bool has_end = false;
    bool nests = false;     ///< fits between the scopes of its thread: shown among them
    bool is_kept = false;   ///< it passes the filter; set by the replay of the thread that it began on
    bool on_stack = false;  ///< likewise

    /// Whether it is shortened to nest with the scopes that cross it.
    bool is_step() const noexcept { return (flags & detail::kRecordCrosses) != 0; }
};

/// An AsyncBegin or AsyncEnd record, in the order of its thread's log.
struct AsyncEvent {
    static constexpr std::uint32_t kNone = ~0u;
    std::uint32_t range = kNone;  ///< index into AsyncRanges::ranges; kNone: a second begin or end of one id
    bool is_begin = false;
};

/// All movable ranges of a log. Add the threads one by one, then decide for each thread which of its ranges
/// nest.
class AsyncRanges {
  public:
    /// Reads the async records of one thread (`pieces` in order). Returns them in log order.
    std::vector<AsyncEvent> add_thread(std::uint32_t thread, std::span<const LogPiece* const> pieces);

    /// After all threads were added: decides `nests` for the ranges that began on this thread. A range nests
    /// when it ended on its own thread (or not at all) with as many scopes open as at its begin, none of
    /// those closed in between, and it does not cross another one. A step that ended on its own thread nests.
    void decide_nesting(std::uint32_t thread, std::span<const LogPiece* const> pieces,
                        std::span<const AsyncEvent> events);

    std::vector<AsyncRange>& ranges() noexcept { return ranges_; }

  private:
    AsyncRange& find(std::uint64_t id, std::uint32_t& index);

    std::unordered_map<std::uint64_t, std::uint32_t> by_id_;
    std::vector<AsyncRange> ranges_;
};

/// Places ranges that overlap on as few rows as possible, without overlaps within a row: `starts` ascending.
/// Returns the row of each.
std::vector<std::uint32_t> place_on_rows(std::span<const std::int64_t> starts,
                                         std::span<const std::int64_t> ends);

/// Ranges in the order of their async tracks: `order` lists them track by track, by start within each.
struct AsyncOrder {
    std::vector<std::uint32_t> places;  ///< the track of each range
    std::vector<std::uint32_t> order;
};
/// Sorts `ranges` (anything with start_ns and end_ns) by their times, then places them.
template <class Range>
AsyncOrder arrange_async(std::vector<Range>& ranges) {
    std::stable_sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
        return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns < b.end_ns;
    });
    std::vector<std::int64_t> starts, ends;
    for (const Range& range : ranges) {
        starts.push_back(range.start_ns);
        ends.push_back(range.end_ns);
    }
    AsyncOrder arranged{place_on_rows(starts, ends), std::vector<std::uint32_t>(ranges.size())};
    std::iota(arranged.order.begin(), arranged.order.end(), 0u);
    std::stable_sort(arranged.order.begin(), arranged.order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return arranged.places[a] < arranged.places[b];
    });
    return arranged;
}

}  // namespace marey
