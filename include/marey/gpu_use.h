// gpu_use.h: what devices did, when they were idle, and why: idle gaps, queue times, kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <marey/detail/export.h>
#include <marey/time_statistics.h>
#include <marey/trace.h>

namespace marey {

/// Count and total time of device work. Device work means the ranges on a device's tracks except annotations,
/// waits, events and overhead. Durations are clipped to the window and added up; if pieces of work overlap,
/// the sum is larger than the elapsed time.
struct GpuWorkTotals {
    std::uint64_t count = 0;
    std::int64_t total_ns = 0;
};

/// The times of a device, or of one of its streams.
struct GpuTimes {
    std::int64_t busy_ns = 0;  ///< time with any work running
    std::int64_t idle_ns = 0;  ///< the rest of the window
    GpuWorkTotals kernels, copies, sets;
    GpuWorkTotals others;  ///< other work, such as whole graphs
    TimeStatistics gaps;   ///< all periods of the window without work; their sum is idle_ns

    std::uint64_t count() const noexcept { return kernels.count + copies.count + sets.count + others.count; }
    double utilisation() const noexcept {
        return busy_ns == 0 ? 0 : static_cast<double>(busy_ns) / static_cast<double>(busy_ns + idle_ns);
    }
};

/// One stream (queue) of a device.
struct GpuStream {
    std::int64_t stream = -1;
    std::string name;
    GpuTimes times;
};

/// The activity of a thread during a gap: the innermost range, and the Python function around it.
struct GpuHostWork {
    std::string name;      ///< empty: outside any range
    std::string function;  ///< empty: none, or `name` is that call itself
    std::int64_t time_ns = 0;
};

/// The position of a gap relative to the device's first and last work.
enum class GpuGapPlace : std::uint8_t { BeforeFirst, Between, AfterLast };

/// A period when a device had no work, clipped to the window.
struct GpuGap {
    std::int64_t start_ns = 0;
    std::int64_t duration_ns = 0;
    GpuGapPlace place = GpuGapPlace::Between;
    bool is_starved = false;        ///< the work after it was launched after it began: nothing was queued
    Row thread = kNoRow;            ///< launched the work after it (otherwise before it); kNoRow: unknown
    std::string before;             ///< the work before it; empty at the window's start
    std::string after;              ///< the work after it; empty at the window's end
    std::vector<GpuHostWork> host;  ///< activity of `thread` during the gap, longest first; adds up to it
};

/// The launch parameters of a kernel; -1: unknown.
struct GpuShape {
    std::int64_t grid[3] = {-1, -1, -1};
    std::int64_t block[3] = {-1, -1, -1};
    std::int64_t registers = -1;  ///< per thread
    std::int64_t shared_bytes = -1;
    friend bool operator==(const GpuShape&, const GpuShape&) noexcept = default;
};

/// The estimated occupancy, computed as docs/guide/gpu.md describes; empty if the trace has too few facts
/// about the device.
struct GpuOccupancy {
    std::optional<double> blocks_per_sm;
    std::optional<double> warps_per_sm;
    std::optional<double> occupancy;  ///< 0 to 1
};

/// The launches of one kernel on one device.
struct GpuKernel {
    std::string name;
    TimeStatistics times;               ///< durations of the launches, clipped to the window
    double share = 0;                   ///< share of the time of all work of the device
    std::uint64_t queued = 0;           ///< launches with a known queue time
    double mean_queue_ns = 0;           ///< mean queue time of those
    GpuShape shape;                     ///< the most frequent shape
    std::uint64_t shapes = 0;           ///< number of different shapes
    GpuOccupancy occupancy;             ///< of `shape`
    std::int64_t small_grid_ns = 0;     ///< time of launches with fewer blocks than the device has SMs
    std::int64_t low_occupancy_ns = 0;  ///< time of other launches with an estimate below a quarter
};

/// Ranges of one name, or calls of one Python function, that launched device work.
struct GpuLauncher {
    std::string name;                 ///< empty: outside any range
    std::uint64_t count = 0;          ///< pieces of work launched
    std::int64_t time_ns = 0;         ///< time of that work
    std::uint64_t short_kernels = 0;  ///< kernels under 10 us among that work
};

/// Copies in one direction, or sets.
struct GpuTransfer {
    std::string direction;     ///< "HtoD", "DtoH", ...; "Memset"; the work's name if the direction is unknown
    bool is_pageable = false;  ///< from or to memory that is not pinned
    std::uint64_t count = 0;
    std::uint64_t sized = 0;                ///< transfers with a known size
    std::int64_t bytes = 0;                 ///< sum of those sizes
    std::int64_t sized_ns = 0;              ///< time of those, not clipped
    std::int64_t time_ns = 0;               ///< time of all, clipped to the window
    double bytes_per_ns() const noexcept {  ///< the same number as GB/s
        return sized_ns > 0 ? static_cast<double>(bytes) / static_cast<double>(sized_ns) : 0;
    }
};

/// The use of one device by one process.
struct GpuDevice {
    Row process = 0;
    Device device{};
    std::string name;           ///< model name; empty: unknown
    std::int64_t sm_count = 0;  ///< 0: unknown
    GpuTimes times;
    std::int64_t first_ns = 0;       ///< start of its first work in the window
    std::int64_t last_ns = 0;        ///< end of its last work
    std::vector<GpuStream> streams;  ///< in order of their numbers

    std::int64_t kernel_busy_ns = 0;    ///< time with any kernel running
    std::int64_t copy_busy_ns = 0;      ///< time with any copy running
    std::int64_t overlap_ns = 0;        ///< time with a copy and a kernel running
    std::int64_t concurrent_ns = 0;     ///< time with several kernels running
    std::uint64_t most_concurrent = 0;  ///< most kernels running at once
    std::int64_t starved_short_ns = 0;  ///< starved gaps below 100 us, between first_ns and last_ns
    std::uint64_t starved_short_gaps = 0;
    std::int64_t starved_long_ns = 0;  ///< the other starved gaps in that period
    std::uint64_t starved_long_gaps = 0;
    std::vector<GpuGap> longest_gaps;
    std::vector<GpuHostWork> idle_host;  ///< in the gaps between first_ns and last_ns with a known thread

    /// Queue times: from the start (queue_after_call: the end) of each launching call until its first work
    /// began on the device; 0 if the work began earlier. Later work of a graph waits for other work and does
    /// not count.
    TimeStatistics queue, queue_after_call;
    TimeStatistics launch_calls;   ///< durations of the calls that launched work
    std::uint64_t early = 0;       ///< work that began before its call did: the clocks disagree
    std::uint64_t unlaunched = 0;  ///< work without a launching call
    std::uint64_t outside = 0;     ///< work launched outside any range

    GpuWorkTotals short_kernels;     ///< kernels under 10 us
    std::vector<GpuKernel> kernels;  ///< most time first
    /// By the nearest range around the launching call (a Python call only if there is no other range); most
    /// time first.
    std::vector<GpuLauncher> ranges;
    std::vector<GpuLauncher> functions;  ///< by the nearest Python function, most time first
    std::vector<GpuTransfer> transfers;  ///< most time first

    std::int64_t span_ns() const noexcept { return last_ns - first_ns; }
};

/// Host calls of one name into a device's runtime or driver.
struct GpuCall {
    std::string name;
    TimeStatistics times;  ///< clipped to the window
};

/// The time that a thread spent waiting for devices: synchronisations, and copies that return when done.
struct GpuWaits {
    Row thread = kNoRow;
    std::uint64_t count = 0;
    std::int64_t time_ns = 0;
    /// Time that a device was idle from the end of a wait until this thread's next launch.
    std::int64_t idle_after_ns = 0;
    std::vector<GpuLauncher> callers;  ///< the ranges that waited, with count and time of their waits
};

/// One line of evidence for a finding.
struct GpuEvidence {
    std::string what;
    std::uint64_t count = 0;    ///< 0: not a count
    std::int64_t time_ns = -1;  ///< -1: not a time
};

/// A performance problem found by a rule.
struct GpuFinding {
    std::string rule;  ///< "launch_bound", "host_bound", ...: see docs/guide/gpu.md for their thresholds
    Row process = 0;
    Device device{};
    Row thread = kNoRow;  ///< for findings about a thread
    double share = 0;     ///< the number that was compared with the threshold
    /// The time of the device that it is about, at most: that of the gaps, copies or kernels.
    std::int64_t time_ns = 0;
    std::string text;  ///< one sentence for users
    std::vector<GpuEvidence> evidence;
};

/// Options of gpu_use().
struct GpuUseOptions {
    std::optional<std::int32_t> device = {};  ///< only devices with this number
    std::size_t longest_gaps = 5;             ///< number of gaps to list for each device
};

/// The result of gpu_use().
struct GpuUse {
    std::vector<GpuDevice> devices;  ///< in order of process and device
    std::vector<GpuCall> calls;      ///< most time first
    std::vector<GpuWaits> waits;     ///< most time first
    std::vector<GpuFinding> findings;
};

/// The accuracy of the conversion of device times to the host's clock.
struct GpuClock {
    std::int64_t readings = 0;
    std::int64_t median_error_ns = 0;
    std::int64_t worst_error_ns = 0;
};
/// Returns the accuracy of device times; empty if the trace does not contain it.
MAREY_API std::optional<GpuClock> gpu_clock(const Trace& trace);

/// Analyses the use of all devices. Takes O(n log n) in device work and linear time in other ranges.
MAREY_API GpuUse gpu_use(const Trace& trace, const GpuUseOptions& options = {});

}  // namespace marey
