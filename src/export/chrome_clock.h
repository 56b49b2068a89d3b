// chrome_clock.h: converts timestamps for a Chrome trace: relative to the start of the window and clamped to
// it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include <marey/trace.h>

#include "export/decimal.h"

namespace marey {

class ChromeClock {
  public:
    explicit ChromeClock(const WindowInfo& window)
        : start_ns_(window.start_ns), end_ns_(std::max(window.end_ns, window.start_ns)) {}

    std::int64_t start_ns() const noexcept { return start_ns_; }
    std::int64_t end_ns() const noexcept { return end_ns_; }
    std::uint64_t since_start(std::int64_t ns) const noexcept {
        return static_cast<std::uint64_t>(std::clamp(ns, start_ns_, end_ns_)) -
               static_cast<std::uint64_t>(start_ns_);
    }
    std::string micros(std::int64_t ns) const {
        char text[32];
        return {text, put_micros(text, since_start(ns))};
    }

  private:
    std::int64_t start_ns_;
    std::int64_t end_ns_;
};

}  // namespace marey
