// cupti_clock.h: converts the recorder's ticks to nanoseconds for CUPTI, and back.
#pragma once

#include <cstdint>

namespace marey::cuda {

/// CUPTI uses timestamps that we provide for the host, and converts GPU times to them; it expects
/// nanoseconds. They are ticks times a fixed factor, so that the conversion back is exact whatever the
/// counter's true rate is.
class CuptiClock {
    __extension__ using Wide = unsigned __int128;

  public:
    explicit CuptiClock(std::uint64_t ticks_per_second) noexcept
        : factor_(static_cast<std::uint64_t>((static_cast<Wide>(1'000'000'000) << kShift) /
                                             (ticks_per_second != 0 ? ticks_per_second : 1'000'000'000))) {}

    std::uint64_t to_ns(std::uint64_t ticks) const noexcept {
        return static_cast<std::uint64_t>((static_cast<Wide>(ticks) * factor_) >> kShift);
    }
    std::uint64_t to_ticks(std::uint64_t ns) const noexcept {
        return static_cast<std::uint64_t>(((static_cast<Wide>(ns) << kShift) + factor_ / 2) / factor_);
    }

  private:
    static constexpr unsigned kShift = 32;
    std::uint64_t factor_;
};

}  // namespace marey::cuda
