// gpu_tables.cpp: device work by kernel, by launcher and by copy direction; device API
// calls of the host, and the calls that wait for devices.
#include "analyze/gpu/gpu_tables.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include "analyze/time_percentiles.h"
#include "analyze/track_place.h"

namespace marey {
namespace {

class KernelTable {
  public:
    KernelTable(const HostRanges& host, const std::vector<GpuShape>& shapes, const GpuProperties* properties)
        : host_(host),
          shapes_(shapes),
          properties_(properties),
          slot_of_(host.names().names.size(), kNoIndex) {
        if (properties == nullptr) return;
        occupancy_.reserve(shapes.size());
        for (const GpuShape& shape : shapes) occupancy_.push_back(estimate_occupancy(shape, *properties));
    }

    void add(const GpuPiece& piece) {
        const RangeColumns& ranges = host_.ranges();
        const std::uint32_t name = host_.name(piece.range);
        if (slot_of_[name] == kNoIndex) {
            slot_of_[name] = static_cast<std::uint32_t>(kernels_.size());
            kernels_.emplace_back().row.name = host_.names().names[name];
        }
        Kernel& kernel = kernels_[slot_of_[name]];
        kernel.times.push_back(piece.duration_ns());
        ++shape_counts_[std::uint64_t{slot_of_[name]} << 32 | piece.shape];
        if (piece.is_first) {
            ++kernel.row.queued;
            kernel.queue_ns += static_cast<double>(
                std::max<std::int64_t>(ranges.start_ns[piece.range] - ranges.start_ns[piece.call], 0));
        }
        if (properties_ == nullptr) return;
        const GpuOccupancy& estimate = occupancy_[piece.shape];
        if (estimate.blocks_per_sm && *estimate.blocks_per_sm < 1)
            kernel.row.small_grid_ns += piece.duration_ns();
        else if (estimate.occupancy && *estimate.occupancy < kLowOccupancy)
            kernel.row.low_occupancy_ns += piece.duration_ns();
    }

    std::vector<GpuKernel> rows(std::int64_t work_ns) {
        choose_shapes();
        std::vector<GpuKernel> rows;
        for (Kernel& kernel : kernels_) {
            GpuKernel& row = rows.emplace_back(std::move(kernel.row));
            row.times = time_statistics(std::move(kernel.times));
            if (work_ns > 0)
                row.share = static_cast<double>(row.times.total_ns) / static_cast<double>(work_ns);
            if (row.queued > 0) row.mean_queue_ns = kernel.queue_ns / static_cast<double>(row.queued);
        }
        std::ranges::sort(rows, {}, [](const GpuKernel& row) {
            return std::pair(-row.times.total_ns, std::string_view(row.name));
        });
        return rows;
    }

  private:
    struct Kernel {
        GpuKernel row;
        std::vector<std::int64_t> times;
        double queue_ns = 0;
    };

    /// Picks the most frequent shape of each kernel; the first one seen if there are several.
    void choose_shapes() {
        std::vector<std::pair<std::uint64_t, std::uint64_t>> best(kernels_.size());  // count, shape
        for (const auto& [key, count] : shape_counts_) {
            const std::uint64_t slot = key >> 32, shape = key & 0xffffffff;
            ++kernels_[slot].row.shapes;
            auto& [most, chosen] = best[slot];
            if (count > most || (count == most && shape < chosen)) best[slot] = {count, shape};
        }
        for (std::size_t slot = 0; slot < kernels_.size(); ++slot) {
            kernels_[slot].row.shape = shapes_[best[slot].second];
            if (properties_ != nullptr) kernels_[slot].row.occupancy = occupancy_[best[slot].second];
        }
    }

    const HostRanges& host_;
    const std::vector<GpuShape>& shapes_;
    const GpuProperties* properties_;
    std::vector<GpuOccupancy> occupancy_;  ///< per shape
    std::vector<std::uint32_t> slot_of_;   ///< per name
    std::vector<Kernel> kernels_;
    std::unordered_map<std::uint64_t, std::uint64_t> shape_counts_;  ///< by slot and shape
};

/// "HtoD" for "Memcpy HtoD (Pageable -> Device)" and for "MemcpyH2D".
std::string direction_of(std::string_view name) {
    constexpr std::string_view kPlaces = "HDPA";  // host, device, peer, array
    const auto is_place = [&](char c) { return kPlaces.find(c) != std::string_view::npos; };
    for (std::size_t i = 0; i + 3 <= name.size(); ++i) {
        if (!is_place(name[i])) continue;
        if (name[i + 1] == '2' && is_place(name[i + 2])) return {name[i], 't', 'o', name[i + 2]};
        if (i + 4 <= name.size() && name.substr(i + 1, 2) == "to" && is_place(name[i + 3]))
            return std::string(name.substr(i, 4));
    }
    return std::string(name);
}

class TransferTable {
  public:
    explicit TransferTable(const Trace& trace) : trace_(trace), ranges_(trace.ranges()) {}

    void add(const GpuPiece& piece) {
        const std::uint32_t site = ranges_.site[piece.range];
        GpuTransfer*& row = row_of_[{site, piece.is_pageable}];
        if (row == nullptr) {
            const std::string direction =
                piece.kind == GpuWorkKind::Set ? "Memset" : direction_of(trace_.range_name(piece.range));
            row = &rows_[{direction, piece.is_pageable}];
            row->direction = direction;
            row->is_pageable = piece.is_pageable;
        }
        ++row->count;
        row->time_ns += piece.duration_ns();
        if (piece.bytes < 0) return;
        ++row->sized;
        if (__builtin_add_overflow(row->bytes, piece.bytes, &row->bytes))
            row->bytes = std::numeric_limits<std::int64_t>::max();
        row->sized_ns += ranges_.duration_ns[piece.range];
    }
    std::vector<GpuTransfer> rows() const {
        std::vector<GpuTransfer> rows;
        for (const auto& [key, row] : rows_) rows.push_back(row);
        std::ranges::stable_sort(rows, std::greater<>(), &GpuTransfer::time_ns);
        return rows;
    }

  private:
    const Trace& trace_;
    RangeColumns ranges_;
    std::map<std::pair<std::string, bool>, GpuTransfer> rows_;
    std::map<std::pair<std::uint32_t, bool>, GpuTransfer*> row_of_;  ///< by site
};

/// The caller of a call: the enclosing Python function, else the nearest range, else the call itself.
Row caller_of(const HostRanges& host, Row call) {
    const Row function = host.function_around(call);
    if (function != kNoRow) return function;
    const Row range = host.range_around(call);
    return range != kNoRow ? range : call;
}

/// By thread.
std::map<Row, std::vector<Row>> waiting_calls(const HostRanges& host) {
    const Trace& trace = host.trace();
    std::vector<bool> is_wait;
    for (const SiteInfo& site : trace.sites())
        is_wait.push_back(site.scope == Scope::DeviceRuntime && is_wait_call(trace.string(site.name)));
    std::map<Row, std::vector<Row>> calls;
    for (const TrackInfo& track : trace.tracks()) {
        if (place_of(track) != Place::Host) continue;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            if (is_wait[host.ranges().site[row]]) calls[track.thread].push_back(row);
        }
    }
    return calls;
}

/// Sums the time from the first end of a wait in each gap of the thread to the end of the gap. Both inputs
/// are sorted by time.
std::int64_t idle_after(const std::vector<std::int64_t>& ends, const std::vector<ThreadGap>& gaps,
                        Row thread) {
    std::int64_t idle_ns = 0;
    auto end = ends.begin();
    for (const ThreadGap& gap : gaps) {
        if (gap.thread != thread) continue;
        while (end != ends.end() && *end < gap.start_ns) ++end;
        if (end != ends.end() && *end < gap.end_ns) idle_ns += gap.end_ns - *end;
    }
    return idle_ns;
}

}  // namespace

void add_gpu_tables(const HostRanges& host, const GpuDeviceWork& work, const std::vector<GpuShape>& shapes,
                    const GpuProperties* properties, GpuDevice& device) {
    KernelTable kernels(host, shapes, properties);
    TransferTable transfers(host.trace());
    LauncherTable ranges(host.names()), functions(host.names());
    std::int64_t work_ns = 0;
    for (const GpuPiece& piece : work.pieces) {
        work_ns += piece.duration_ns();
        const bool is_kernel = piece.kind == GpuWorkKind::Kernel;
        const bool is_short = is_kernel && piece.duration_ns() < kShortKernelNs;
        if (is_kernel) kernels.add(piece);
        if (is_short) {
            ++device.short_kernels.count;
            device.short_kernels.total_ns += piece.duration_ns();
        }
        if (piece.kind == GpuWorkKind::Copy || piece.kind == GpuWorkKind::Set) transfers.add(piece);
        if (piece.call == kNoRow) {
            ++device.unlaunched;
            continue;
        }
        const Row range = host.marked_range_around(piece.call);
        const Row function = host.function_around(piece.call);
        if (range == kNoRow) ++device.outside;
        ranges.add(range == kNoRow ? kNoIndex : host.name(range), piece.duration_ns(), is_short);
        if (function != kNoRow) functions.add(host.name(function), piece.duration_ns(), is_short);
    }
    device.kernels = kernels.rows(work_ns);
    device.transfers = transfers.rows();
    device.ranges = ranges.rows();
    device.functions = functions.rows();
}

std::vector<GpuCall> gpu_calls(const HostRanges& host) {
    const Trace& trace = host.trace();
    std::vector<std::vector<std::int64_t>> times(host.names().names.size());
    for (const TrackInfo& track : trace.tracks()) {
        if (place_of(track) != Place::Host) continue;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            if (host.scope(row) == Scope::DeviceRuntime)
                times[host.name(row)].push_back(host.clipped_ns(row));
        }
    }
    std::vector<GpuCall> calls;
    for (std::size_t name = 0; name < times.size(); ++name) {
        if (times[name].empty()) continue;
        calls.push_back({std::string(host.names().names[name]), time_statistics(std::move(times[name]))});
    }
    std::ranges::sort(calls, {}, [](const GpuCall& call) {
        return std::pair(-call.times.total_ns, std::string_view(call.name));
    });
    return calls;
}

std::vector<GpuWaits> gpu_waits(const HostRanges& host, const std::vector<std::vector<ThreadGap>>& gaps) {
    const RangeColumns& ranges = host.ranges();
    std::vector<GpuWaits> all;
    for (auto& [thread, rows] : waiting_calls(host)) {
        std::ranges::stable_sort(rows, [&](Row a, Row b) { return ranges.start_ns[a] < ranges.start_ns[b]; });
        GpuWaits waits;
        waits.thread = thread;
        LauncherTable callers(host.names());
        std::vector<std::int64_t> ends;
        for (const Row row : rows) {
            // A wait inside another one (driver API inside runtime API) is the same wait.
            const std::int64_t end = ranges.start_ns[row] + ranges.duration_ns[row];
            if (!ends.empty() && end <= ends.back()) continue;
            ends.push_back(end);
            const std::int64_t time_ns = host.clipped_ns(row);
            ++waits.count;
            waits.time_ns += time_ns;
            callers.add(host.name(caller_of(host, row)), time_ns);
        }
        for (const std::vector<ThreadGap>& of_device : gaps)
            waits.idle_after_ns += idle_after(ends, of_device, thread);
        waits.callers = callers.rows();
        all.push_back(std::move(waits));
    }
    std::ranges::stable_sort(all, std::greater<>(), &GpuWaits::time_ns);
    return all;
}

}  // namespace marey
