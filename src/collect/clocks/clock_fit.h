// clock_fit.h: converts the counter's ticks to nanoseconds of CLOCK_MONOTONIC_RAW.
#pragma once

#include <cstdint>
#include <vector>

#include <marey/detail/log_format.h>

namespace marey {

/// A continuous, monotone, piecewise-linear map from ticks to nanoseconds through chosen clock pairs (the
/// knots). Exact to the nanosecond for any 64-bit ticks: fixed-point slopes, 128-bit products. Immutable once
/// built.
///
/// Pairs whose reading took much longer than most are left out where better ones are near, and so are those
/// that would make time run backwards. Knots are at least 10 ms apart (each may be off by half its width, so
/// that the slope of a short segment would be noise); a log shorter than that uses the nominal rate. Before
/// the first and after the last knot the neighbouring slope continues. Sources whose ticks are nanoseconds
/// are the identity (Injected: unless there are pairs).
class ClockFit {
  public:
    /// Between two knots: ns = base_ns + ((ticks - first) * multiplier >> shift) for ticks - first < length.
    struct Segment {
        std::uint64_t first = 0;
        std::uint64_t length = 0;
        std::int64_t base_ns = 0;
        std::uint64_t multiplier = 0;
        unsigned shift = 0;
    };

    /// Pairs in any order; those with ticks 0 do not count. `ticks_per_second` is nominal, 0 when unknown.
    ClockFit(detail::ClockSource source, std::uint64_t ticks_per_second,
             std::vector<detail::ClockPair> pairs);

    /// Nanoseconds; saturates at +-2^61, so that differences never overflow. Any thread.
    std::int64_t to_ns(std::uint64_t ticks) const noexcept;

    std::uint32_t pairs_used() const noexcept { return pairs_used_; }
    std::int64_t max_error_ns() const noexcept { return max_error_ns_; }
    /// The offset to nanoseconds since 1970; 0 when there was no pair.
    std::int64_t realtime_offset_ns() const noexcept { return realtime_offset_ns_; }
    /// Over the entire fit.
    double ticks_per_second() const noexcept { return ticks_per_second_; }
    /// The last pair lies more than a millisecond before `end`: times after it are extrapolated.
    bool is_extrapolated_at(std::uint64_t end) const noexcept;

    const std::vector<Segment>& segments() const noexcept { return segments_; }
    std::size_t find_segment(std::uint64_t ticks) const noexcept;
    static std::int64_t apply(const Segment& segment, std::uint64_t ticks) noexcept {
        __extension__ using Wide = unsigned __int128;
        const Wide product = static_cast<Wide>(ticks - segment.first) * segment.multiplier;
        return segment.base_ns + static_cast<std::int64_t>(product >> segment.shift);
    }

  private:
    struct Knot {
        std::uint64_t ticks;
        std::int64_t ns;
    };
    void add_segments(const std::vector<Knot>& knots, std::uint64_t nominal);

    std::vector<Segment>
        segments_;  // ascending; the first reaches back before the first knot, the last has no end
    std::uint64_t last_pair_ticks_ = 0;
    std::uint32_t pairs_used_ = 0;
    std::int64_t max_error_ns_ = 0;
    std::int64_t realtime_offset_ns_ = 0;
    double ticks_per_second_ = 0;
};

/// Converts a stream of times that are close to each other: remembers the segment. One per thread; the fit
/// must outlive it.
class TickConverter {
  public:
    explicit TickConverter(const ClockFit& fit) noexcept : fit_(&fit), segment_(fit.segments().front()) {}

    std::int64_t operator()(std::uint64_t ticks) noexcept {
        if (ticks - segment_.first < segment_.length) [[likely]]
            return ClockFit::apply(segment_, ticks);
        return convert_elsewhere(ticks);
    }

  private:
    std::int64_t convert_elsewhere(std::uint64_t ticks) noexcept;

    const ClockFit* fit_;
    ClockFit::Segment segment_;
};

}  // namespace marey
