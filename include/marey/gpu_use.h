// gpu_use.h: what devices did and when they had nothing to do, and why: idle gaps, queue times, kernels.
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

/// Work of a device is what stands on its tracks and is no annotation, no wait, no event and no overhead.
/// Durations are clipped to the window and added up; where some ran at the same time, the sum is more than
/// the time.
struct GpuWorkTotals {
    std::uint64_t count = 0;
    std::int64_t total_ns = 0;
};

/// Of a device, or of one of its streams.
struct GpuTimes {
    std::int64_t busy_ns = 0;  ///< some work ran
    std::int64_t idle_ns = 0;  ///< the rest of the window
    GpuWorkTotals kernels, copies, sets;
    GpuWorkTotals others;  ///< whole graphs and the like
    TimeStatistics gaps;   ///< all stretches of the window without work; their sum is idle_ns

    std::uint64_t count() const noexcept { return kernels.count + copies.count + sets.count + others.count; }
    double utilisation() const noexcept {
        return busy_ns == 0 ? 0 : static_cast<double>(busy_ns) / static_cast<double>(busy_ns + idle_ns);
    }
};

struct GpuStream {
    std::int64_t stream = -1;
    std::string name;
    GpuTimes times;
};

/// What a thread did during a gap: the innermost range, and the Python function that it lies in.
struct GpuHostWork {
    std::string name;      ///< "": in no range
    std::string function;  ///< "": none, or it is that call itself
    std::int64_t time_ns = 0;
};

enum class GpuGapPlace : std::uint8_t { BeforeFirst, Between, AfterLast };

/// A time when a device had no work, cut to the window.
struct GpuGap {
    std::int64_t start_ns = 0;
    std::int64_t duration_ns = 0;
    GpuGapPlace place = GpuGapPlace::Between;
    bool is_starved = false;  ///< what ended it was launched after it had begun: nothing was queued
    Row thread = kNoRow;      ///< that launched what ended it (else what came before it); kNoRow: not known
    std::string before;       ///< the work that ended when it began; "" at the window's start
    std::string after;        ///< the work that ended it; "" at the window's end
    std::vector<GpuHostWork> host;  ///< what that thread did meanwhile, the longest first; adds up to it
};

/// How a kernel was launched; -1: not told.
struct GpuShape {
    std::int64_t grid[3] = {-1, -1, -1};
    std::int64_t block[3] = {-1, -1, -1};
    std::int64_t registers = -1;  ///< per thread
    std::int64_t shared_bytes = -1;
    friend bool operator==(const GpuShape&, const GpuShape&) noexcept = default;
};

/// As docs/guide/gpu.md computes it; nothing where the trace does not tell enough of the device.
struct GpuOccupancy {
    std::optional<double> blocks_per_sm;
    std::optional<double> warps_per_sm;
    std::optional<double> occupancy;  ///< 0 to 1
};

/// The launches of one kernel on one device.
struct GpuKernel {
    std::string name;
    TimeStatistics times;               ///< of the launches, clipped to the window
    double share = 0;                   ///< of the time of all work of the device
    std::uint64_t queued = 0;           ///< launches whose queue time is known
    double mean_queue_ns = 0;           ///< of those
    GpuShape shape;                     ///< the most frequent one
    std::uint64_t shapes = 0;           ///< how many different ones
    GpuOccupancy occupancy;             ///< of that shape
    std::int64_t small_grid_ns = 0;     ///< time of launches with fewer blocks than the device has SMs
    std::int64_t low_occupancy_ns = 0;  ///< time of others whose estimate is below a quarter
};

/// Ranges of one name, or calls of one Python function, that launched work of a device.
struct GpuLauncher {
    std::string name;                 ///< "": in no range
    std::uint64_t count = 0;          ///< of the work
    std::int64_t time_ns = 0;         ///< of the work
    std::uint64_t short_kernels = 0;  ///< of the work: kernels under 10 us
};

/// Copies of one direction, or sets.
struct GpuTransfer {
    std::string direction;     ///< "HtoD", "DtoH", ...; "Memset"; the work's name where it does not tell
    bool is_pageable = false;  ///< from or to memory that is not pinned
    std::uint64_t count = 0;
    std::uint64_t sized = 0;                ///< how many of them tell their bytes
    std::int64_t bytes = 0;                 ///< of those
    std::int64_t sized_ns = 0;              ///< how long those took, not clipped
    std::int64_t time_ns = 0;               ///< of all, clipped to the window
    double bytes_per_ns() const noexcept {  ///< the same number as GB/s
        return sized_ns > 0 ? static_cast<double>(bytes) / static_cast<double>(sized_ns) : 0;
    }
};

struct GpuDevice {
    Row process = 0;
    Device device{};
    std::string name;           ///< of its model; "": not told
    std::int64_t sm_count = 0;  ///< 0: not told
    GpuTimes times;
    std::int64_t first_ns = 0;       ///< when its first work in the window began
    std::int64_t last_ns = 0;        ///< when its last one ended
    std::vector<GpuStream> streams;  ///< in order of their numbers

    std::int64_t kernel_busy_ns = 0;    ///< some kernel ran
    std::int64_t copy_busy_ns = 0;      ///< some copy ran
    std::int64_t overlap_ns = 0;        ///< a copy and a kernel ran
    std::int64_t concurrent_ns = 0;     ///< several kernels ran
    std::uint64_t most_concurrent = 0;  ///< kernels at once
    std::int64_t starved_short_ns = 0;  ///< starved gaps below 100 us, between first_ns and last_ns
    std::uint64_t starved_short_gaps = 0;
    std::int64_t starved_long_ns = 0;  ///< the other starved gaps there
    std::uint64_t starved_long_gaps = 0;
    std::vector<GpuGap> longest_gaps;
    std::vector<GpuHostWork> idle_host;  ///< over the gaps between first_ns and last_ns whose thread is known

    /// Of the first work of each launching call, from the call's start (its end) until it began on the
    /// device; 0 where it began before. The work that follows in a graph waits for other work.
    TimeStatistics queue, queue_after_call;
    TimeStatistics launch_calls;   ///< durations of the calls that launched work
    std::uint64_t early = 0;       ///< work that began before its call did: the clocks disagree
    std::uint64_t unlaunched = 0;  ///< work without a launching call
    std::uint64_t outside = 0;     ///< work whose call lies in no range

    GpuWorkTotals short_kernels;     ///< those under 10 us
    std::vector<GpuKernel> kernels;  ///< the most time first
    /// The nearest range around the call, a call of Python only where there is no other; the most time first.
    std::vector<GpuLauncher> ranges;
    std::vector<GpuLauncher> functions;  ///< the nearest Python function, likewise
    std::vector<GpuTransfer> transfers;  ///< the most time first

    std::int64_t span_ns() const noexcept { return last_ns - first_ns; }
};

/// Host calls of one name that drive devices.
struct GpuCall {
    std::string name;
    TimeStatistics times;  ///< clipped to the window
};

/// What a thread spent waiting for devices: synchronisations and copies that return when they are done.
struct GpuWaits {
    Row thread = kNoRow;
    std::uint64_t count = 0;
    std::int64_t time_ns = 0;
    std::int64_t idle_after_ns =
        0;  ///< a device had nothing to do from a wait's end until this thread's next launch
    std::vector<GpuLauncher> callers;  ///< who waited: count and time are of the waits
};

/// One row that a finding rests on.
struct GpuEvidence {
    std::string what;
    std::uint64_t count = 0;    ///< 0: it is no number of things
    std::int64_t time_ns = -1;  ///< -1: it is no time
};

struct GpuFinding {
    std::string rule;  ///< "launch_bound", "host_bound", ...: docs/guide/gpu.md lists them with their thresholds
    Row process = 0;
    Device device{};
    Row thread = kNoRow;  ///< of findings about a thread
    double share = 0;     ///< what was compared with the threshold
    std::string text;     ///< a sentence
    std::vector<GpuEvidence> evidence;
};

struct GpuUseOptions {
    std::optional<std::int32_t> device = {};  ///< only those of this number
    std::size_t longest_gaps = 5;             ///< of each device
};

struct GpuUse {
    std::vector<GpuDevice> devices;  ///< in order of process and device
    std::vector<GpuCall> calls;      ///< the most time first
    std::vector<GpuWaits> waits;     ///< the most time first
    std::vector<GpuFinding> findings;
};

/// How well times of devices were brought onto the host's clock: by how much they can be off.
struct GpuClock {
    std::int64_t readings = 0;
    std::int64_t median_error_ns = 0;
    std::int64_t worst_error_ns = 0;
};
/// Nothing: the trace does not tell.
MAREY_API std::optional<GpuClock> gpu_clock(const Trace& trace);

/// n log n in the work of devices, linear in other ranges.
MAREY_API GpuUse gpu_use(const Trace& trace, const GpuUseOptions& options = {});

}  // namespace marey
