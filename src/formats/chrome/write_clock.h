// write_clock.h: converts timestamps for a Chrome trace: relative to its base time and clamped to the
// window.
#pragma once

#include <algorithm>

#include <marey/trace.h>

#include "formats/decimal.h"

namespace marey {

class ChromeClock {
  public:
    /// `has_torch_base`: the base time is PyTorch's, which traces of several processes share; else the start
    /// of the window.
    ChromeClock(const Trace& trace, bool has_torch_base)
        : start_ns_(trace.window().start_ns), end_ns_(std::max(trace.window().end_ns, start_ns_)) {
        base_ns_ = start_ns_;
        if (!trace.processes().empty()) base_ns_ += trace.processes().front().realtime_offset_ns;
        if (has_torch_base && base_ns_ > 0) {
            offset_ns_ = static_cast<std::uint64_t>(base_ns_ % kTorchBaseStep);
            base_ns_ -= base_ns_ % kTorchBaseStep;
        }
    }

    /// The wall-clock time of timestamp 0, in nanoseconds since 1970.
    std::int64_t base_ns() const noexcept { return base_ns_; }
    std::int64_t start_ns() const noexcept { return start_ns_; }
    std::int64_t end_ns() const noexcept { return end_ns_; }
    std::uint64_t since_base(std::int64_t ns) const noexcept {
        return static_cast<std::uint64_t>(std::clamp(ns, start_ns_, end_ns_)) -
               static_cast<std::uint64_t>(start_ns_) + offset_ns_;
    }
    std::string micros(std::int64_t ns) const {
        char text[32];
        return {text, put_micros(text, since_base(ns))};
    }
    /// The window's end and 2 ns: readers add `ts` and `dur` as doubles, which are up to 1 ns apart, and what
    /// ends with the window must not seem to end after it.
    std::string end_micros() const {
        char text[32];
        return {text, put_micros(text, since_base(end_ns_) + 2)};
    }
    /// The length of the window.
    std::string window_micros() const {
        char text[32];
        return {text, put_micros(text, since_base(end_ns_) - offset_ns_)};
    }

  private:
    /// PyTorch counts from the last multiple of a quarter of a year (in seconds) since 1970.
    static constexpr std::int64_t kTorchBaseStep = 7'889'238'000'000'000;

    std::int64_t start_ns_;
    std::int64_t end_ns_;
    std::int64_t base_ns_;
    std::uint64_t offset_ns_ = 0;  ///< from the base to the start of the window
};

}  // namespace marey
