// clocks.cpp: offsets between clocks. All arithmetic wraps around, so any timestamp is safe.
#include "formats/perfetto/clocks.h"

#include <algorithm>

#include "formats/perfetto/fields.h"

namespace marey {

using namespace perfetto;

std::uint64_t PerfettoClocks::key(std::uint32_t sequence, std::uint32_t clock) {
    const bool is_of_sequence = clock >= kFirstSequenceClock && clock <= kLastSequenceClock;
    return (is_of_sequence ? std::uint64_t{sequence} << 32 : 0) | clock;
}

bool PerfettoClocks::convert(const Clock& clock, std::uint64_t time, std::uint64_t& result) const {
    if (clock.points.empty()) return false;
    auto after = std::upper_bound(clock.points.begin(), clock.points.end(), time,
                                  [](std::uint64_t at, const auto& point) { return at < point.first; });
    if (after != clock.points.begin()) --after;
    result = time + after->second;
    return true;
}

/// Finds the trace time of a snapshot.
bool PerfettoClocks::find_moment(std::uint32_t sequence, std::span<const Reading> readings,
                                 std::uint64_t& moment) const {
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

void PerfettoClocks::add_snapshot(std::uint32_t sequence, std::span<const Reading> readings,
                                  std::uint32_t primary) {
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

std::int64_t PerfettoClocks::time_of(std::uint32_t sequence, std::uint32_t clock, std::uint64_t timestamp) {
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

}  // namespace marey
