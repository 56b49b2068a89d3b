// perfetto_clocks.h: the clocks of a Perfetto trace, and the times of its packets in one of them.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace marey {

/// Each snapshot tells what several clocks showed at the same moment. Times are given in the trace's clock:
/// the one that a snapshot calls primary, else the boot clock. Times before a clock's first snapshot use that
/// one; a clock in no snapshot is taken for the trace's.
class PerfettoClocks {
  public:
    struct Reading {
        std::uint32_t clock = 0;
        std::uint64_t timestamp = 0;
        bool is_incremental = false;
        std::uint64_t unit_ns = 1;
    };
    /// Of a packet of that sequence. `primary` 0: not told.
    void add_snapshot(std::uint32_t sequence, std::span<const Reading> readings, std::uint32_t primary);

    /// The time of the next packet of a sequence that shows `timestamp` of `clock` (0: the trace's own). Of
    /// an incremental clock it is the time since the packet before.
    std::int64_t time_of(std::uint32_t sequence, std::uint32_t clock, std::uint64_t timestamp);

    /// Wall-clock time minus the trace's; 0: no snapshot tells.
    std::int64_t realtime_offset() const { return realtime_offset_; }
    /// Packets with a clock that no snapshot had told.
    std::uint64_t unknown() const { return unknown_; }

  private:
    struct Clock {
        bool is_incremental = false;
        std::uint64_t unit_ns = 1;
        std::uint64_t last_ns = 0;  ///< incremental: what it shows
        /// Where it was compared: its time, and the trace's time minus it. In order of the former.
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
