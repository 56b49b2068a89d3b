// settings.h: how the simulated device behaves.
#pragma once

#include <cstdint>
#include <string_view>

namespace marey::simulated {

struct Settings {
    double devices = 2;
    double latency_ns = 2000;       ///< from a call to the earliest start of its work
    double call_ns = 0;             ///< a call lasts at least so long
    double buffer_records = 256;    ///< records of a buffer
    double buffers = 16;            ///< there are; what finds them all full is lost
    double hold_buffers = 0;        ///< not 0: full ones are handed over when flushed, not before
    double shuffle = 0;             ///< not 0: a buffer's records come in any order
    double skew_ns = 3e12;          ///< how far the device's clock is ahead
    double drift_ppm = 40;          ///< and by how much it is too fast
    double clock_noise_ns = 0;      ///< a reading of it is off by up to this
    double memory_bytes = 1 << 30;  ///< of each device
    double concurrent_graphs = 0;   ///< not 0: kernels of a graph start together
    double refuse = 0;              ///< not 0: another profiler holds the devices
    double absent = 0;              ///< not 0: there is no device

    /// False: there is no such setting, or it cannot have this value.
    bool set(std::string_view key, double value) noexcept;
};

}  // namespace marey::simulated
