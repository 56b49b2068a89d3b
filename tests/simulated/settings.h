// settings.h: how the simulated device behaves.
#pragma once

#include <cstdint>
#include <string_view>

namespace marey::simulated {

struct Settings {
    double devices = 2;
    double latency_ns = 2000;       ///< from a call to the earliest start of its work
    double call_ns = 0;             ///< minimum duration of a call
    double buffer_records = 256;    ///< records per buffer
    double buffers = 16;            ///< number of buffers; when all are full, records are lost
    double hold_buffers = 0;        ///< not 0: full buffers are delivered only when flushed
    double shuffle = 0;             ///< not 0: the records of a buffer arrive in random order
    double skew_ns = 3e12;          ///< how far the device's clock is ahead
    double drift_ppm = 40;          ///< how much too fast it runs
    double clock_noise_ns = 0;      ///< maximum error of a reading
    double memory_bytes = 1 << 30;  ///< of each device
    double concurrent_graphs = 0;   ///< not 0: kernels of a graph start together
    double refuse = 0;              ///< not 0: another profiler uses the devices
    double absent = 0;              ///< not 0: there is no device

    /// False: unknown setting or invalid value.
    bool set(std::string_view key, double value) noexcept;
};

}  // namespace marey::simulated
