// clocks.h: the clocks of a Perfetto trace, and packet times converted to one of them.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace marey {

/// Each snapshot gives the values of several clocks at the same moment. Times are converted to the trace
/// clock: the primary clock of a snapshot, else the boot clock. Times before a clock's first snapshot use
/// that snapshot; a clock without a snapshot is treated as the trace clock.
class PerfettoClocks {
  public:
    struct Reading {
        std::uint32_t clock = 0;
        std::uint64_t timestamp = 0;
        bool is_incremental = false;
        std::uint64_t unit_ns = 1;
    };
    /// Adds a snapshot from a packet of that sequence. `primary` 0: not given.
    void add_snapshot(std::uint32_t sequence, std::span<const Reading> readings, std::uint32_t primary);

    /// The time of the next packet of a sequence with `timestamp` on `clock` (0: the trace clock). For an
    /// incremental clock, `timestamp` is the time since the previous packet.
    std::int64_t time_of(std::uint32_t sequence, std::uint32_t clock, std::uint64_t timestamp);

    /// Wall-clock time minus trace time; 0: unknown.
    std::int64_t realtime_offset() const { return realtime_offset_; }
    /// The number of packets with a clock that is not in any snapshot.
    std::uint64_t unknown() const { return unknown_; }

  private:
    struct Clock {
        bool is_incremental = false;
        std::uint64_t unit_ns = 1;
        std::uint64_t last_ns = 0;  ///< incremental clock: its current value
        /// Snapshots, sorted: the clock's time, and the trace time minus it.
        std::vector<std::pair<std::uint64_t, std::uint64_t>> points;
    };
    static std::uint64_t key(std::uint32_t sequence, std::uint32_t clock);
    bool convert(const Clock& clock, std::uint64_t time, std::uint64_t& result) const;
    bool find_moment(std::uint32_t sequence, std::span<const Reading> readings, std::uint64_t& moment) const;

    std::unordered_map<std::uint64_t, Clock> clocks_;
    std::uint64_t last_key_ = ~std::uint64_t{0};
    Clock* last_ = nullptr;
    std::uint32_t trace_clock_ = 0;  ///< 0: no snapshot yet
    bool has_realtime_ = false;
    std::int64_t realtime_offset_ = 0;
    std::uint64_t unknown_ = 0;
};

}  // namespace marey
