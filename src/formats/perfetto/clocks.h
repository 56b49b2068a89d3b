// clocks.h: the clocks of a Perfetto trace, and packet times converted to one of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/perfetto/fields.h"

namespace marey {

using namespace perfetto;

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
    void add_snapshot(std::uint32_t sequence, std::span<const Reading> readings, std::uint32_t primary) {
        if (readings.empty()) return;
        if (trace_clock_ == 0) trace_clock_ = primary != 0 ? primary : kBootClock;
        std::uint64_t moment = 0;
        if (!find_moment(sequence, readings, moment))
            moment = readings.front().timestamp * readings.front().unit_ns;
        for (const Reading& reading : readings) {
            Clock& clock = clocks_[key(sequence, reading.clock)];
            const std::uint64_t time = reading.timestamp * reading.unit_ns;
            clock.is_incremental = reading.is_incremental;
            clock.unit_ns = reading.unit_ns;
            clock.last_ns = time;
            // Points with a later clock time are from before the clock was set back.
            while (!clock.points.empty() && clock.points.back().first >= time) clock.points.pop_back();
            clock.points.emplace_back(time, moment - time);
            if (reading.clock == kRealtimeClock && !has_realtime_) {
                has_realtime_ = true;
                realtime_offset_ = static_cast<std::int64_t>(time - moment);
            }
        }
        last_ = nullptr;
        last_key_ = ~std::uint64_t{0};
    }

    /// The time of the next packet of a sequence with `timestamp` on `clock` (0: the trace clock). For an
    /// incremental clock, `timestamp` is the time since the previous packet.
    std::int64_t time_of(std::uint32_t sequence, std::uint32_t clock, std::uint64_t timestamp) {
        if (clock == 0 || clock == trace_clock_) return static_cast<std::int64_t>(timestamp);
        const std::uint64_t wanted = key(sequence, clock);
        if (wanted != last_key_) {
            const auto found = clocks_.find(wanted);
            last_ = found == clocks_.end() ? nullptr : &found->second;
            last_key_ = wanted;
        }
        if (last_ == nullptr) {
            // Without any snapshot the boot clock is the trace clock.
            if (trace_clock_ != 0 || clock != kBootClock) ++unknown_;
            return static_cast<std::int64_t>(timestamp);
        }
        std::uint64_t time = timestamp * last_->unit_ns;
        if (last_->is_incremental) time = last_->last_ns += time;
        std::uint64_t result = time;
        convert(*last_, time, result);
        return static_cast<std::int64_t>(result);
    }

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
    static std::uint64_t key(std::uint32_t sequence, std::uint32_t clock) {
        const bool is_of_sequence = clock >= kFirstSequenceClock && clock <= kLastSequenceClock;
        return (is_of_sequence ? std::uint64_t{sequence} << 32 : 0) | clock;
    }
    bool convert(const Clock& clock, std::uint64_t time, std::uint64_t& result) const {
        if (clock.points.empty()) return false;
        auto after = std::upper_bound(clock.points.begin(), clock.points.end(), time,
                                      [](std::uint64_t at, const auto& point) { return at < point.first; });
        if (after != clock.points.begin()) --after;
        result = time + after->second;
        return true;
    }
    /// Finds the trace time of a snapshot.
    bool find_moment(std::uint32_t sequence, std::span<const Reading> readings, std::uint64_t& moment) const {
        for (const Reading& reading : readings) {
            if (reading.clock != trace_clock_) continue;
            moment = reading.timestamp * reading.unit_ns;
            return true;
        }
        for (const Reading& reading : readings) {
            const auto found = clocks_.find(key(sequence, reading.clock));
            if (found == clocks_.end() || found->second.is_incremental) continue;
            if (convert(found->second, reading.timestamp * reading.unit_ns, moment)) return true;
        }
        return false;
    }

    std::unordered_map<std::uint64_t, Clock> clocks_;
    std::uint64_t last_key_ = ~std::uint64_t{0};
    Clock* last_ = nullptr;
    std::uint32_t trace_clock_ = 0;  ///< 0: no snapshot yet
    bool has_realtime_ = false;
    std::int64_t realtime_offset_ = 0;
    std::uint64_t unknown_ = 0;
};

}  // namespace marey
