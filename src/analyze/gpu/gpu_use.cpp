// gpu_use.cpp: device work, idle gaps, and thread activity during the gaps.
#include <algorithm>
#include <map>
#include <numeric>

#include <marey/gpu_use.h>

#include "analyze/gpu/gpu_tables.h"
#include "analyze/gpu/gpu_work.h"
#include "analyze/time_percentiles.h"

namespace marey {
namespace {

struct IdleGap {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::uint32_t before = kNoIndex;  ///< the piece that ended then; kNoIndex: start of the window
    std::uint32_t after = kNoIndex;   ///< the piece that began then; kNoIndex: end of the window
};

struct BusyTimes {
    std::int64_t busy_ns = 0;
    std::int64_t kernel_ns = 0;      ///< at least one kernel ran
    std::int64_t copy_ns = 0;        ///< at least one copy ran
    std::int64_t overlap_ns = 0;     ///< a kernel and a copy ran
    std::int64_t concurrent_ns = 0;  ///< several kernels ran
    std::uint64_t most_concurrent = 0;
    std::vector<IdleGap> gaps;  ///< in order of time; never zero-length
};

struct Edge {
    std::int64_t time_ns;
    std::uint32_t piece;
    GpuWorkKind kind;
};

class Sweep {
  public:
    explicit Sweep(std::int64_t from_ns) : now_ns_(from_ns) {}

    void begin(const Edge& edge) {
        advance(edge.time_ns, edge.piece);
        ++running_;
        if (edge.kind == GpuWorkKind::Kernel)
            times.most_concurrent = std::max<std::uint64_t>(times.most_concurrent, ++kernels_);
        if (edge.kind == GpuWorkKind::Copy) ++copies_;
    }
    void end(const Edge& edge) {
        advance(edge.time_ns, kNoIndex);
        last_ = edge.piece;
        --running_;
        if (edge.kind == GpuWorkKind::Kernel) --kernels_;
        if (edge.kind == GpuWorkKind::Copy) --copies_;
    }
    void advance(std::int64_t time_ns, std::uint32_t next) {
        const std::int64_t passed = time_ns - now_ns_;
        if (passed <= 0) return;
        if (running_ == 0) {
            times.gaps.push_back({now_ns_, time_ns, last_, next});
        } else {
            times.busy_ns += passed;
            if (kernels_ > 0) times.kernel_ns += passed;
            if (copies_ > 0) times.copy_ns += passed;
            if (kernels_ > 0 && copies_ > 0) times.overlap_ns += passed;
            if (kernels_ > 1) times.concurrent_ns += passed;
        }
        now_ns_ = time_ns;
    }

    BusyTimes times;

  private:
    std::int64_t now_ns_;
    std::uint64_t running_ = 0, kernels_ = 0, copies_ = 0;
    std::uint32_t last_ = kNoIndex;
};

/// Busy times of the `chosen` pieces (indices in order of start) between two times that enclose them.
/// Zero-length pieces do not fill gaps.
BusyTimes busy_times(const std::vector<GpuPiece>& pieces, std::span<const std::uint32_t> chosen,
                     std::int64_t from_ns, std::int64_t to_ns) {
    std::vector<Edge> begins, ends;
    begins.reserve(chosen.size());
    ends.reserve(chosen.size());
    for (const std::uint32_t i : chosen) {
        const GpuPiece& piece = pieces[i];
        if (piece.end_ns <= piece.start_ns) continue;
        begins.push_back({piece.start_ns, i, piece.kind});
        ends.push_back({piece.end_ns, i, piece.kind});
    }
    const auto is_before = [](const Edge& a, const Edge& b) { return a.time_ns < b.time_ns; };
    if (!std::ranges::is_sorted(ends, is_before)) std::ranges::sort(ends, is_before);
    Sweep sweep(from_ns);
    auto end = ends.begin();
    for (const Edge& begin : begins) {
        for (; end->time_ns <= begin.time_ns; ++end) sweep.end(*end);  // one ends after this begin
        sweep.begin(begin);
    }
    for (; end != ends.end(); ++end) sweep.end(*end);
    sweep.advance(to_ns, kNoIndex);
    return std::move(sweep.times);
}

class DeviceReport {
  public:
    DeviceReport(const HostRanges& host, const GpuDeviceWork& work, GpuDevice& device)
        : host_(host), trace_(host.trace()), work_(work), device_(device) {}

    void add_times() {
        std::vector<std::uint32_t> all(work_.pieces.size());
        std::iota(all.begin(), all.end(), 0);
        const BusyTimes busy = fill(device_.times, all);
        device_.kernel_busy_ns = busy.kernel_ns;
        device_.copy_busy_ns = busy.copy_ns;
        device_.overlap_ns = busy.overlap_ns;
        device_.concurrent_ns = busy.concurrent_ns;
        device_.most_concurrent = busy.most_concurrent;
        device_.first_ns = work_.pieces.front().start_ns;
        device_.last_ns = device_.first_ns;
        for (const GpuPiece& piece : work_.pieces) device_.last_ns = std::max(device_.last_ns, piece.end_ns);
        gaps_ = busy.gaps;

        std::vector<std::vector<std::uint32_t>> of_stream(work_.streams.size());
        for (const std::uint32_t piece : all) of_stream[work_.pieces[piece].stream].push_back(piece);
        for (std::size_t i = 0; i < work_.streams.size(); ++i) {
            GpuStream& stream = device_.streams.emplace_back();
            stream.stream = work_.streams[i].stream;
            stream.name = trace_.string(work_.streams[i].name);
            fill(stream.times, of_stream[i]);
        }
    }

    void add_queue_times() {
        const RangeColumns& ranges = host_.ranges();
        std::vector<std::int64_t> queue, after, calls;
        std::map<Row, std::uint64_t> launches;
        for (std::vector<std::int64_t>* const times : {&queue, &after, &calls})
            times->reserve(work_.pieces.size());
        for (const GpuPiece& piece : work_.pieces) {
            if (!piece.is_first) continue;
            const std::int64_t waited = ranges.start_ns[piece.range] - ranges.start_ns[piece.call];
            const std::int64_t duration = ranges.duration_ns[piece.call];
            if (waited < 0) ++device_.early;
            queue.push_back(std::max<std::int64_t>(waited, 0));
            after.push_back(std::max<std::int64_t>(waited - duration, 0));
            calls.push_back(duration);
            ++launches[host_.thread(piece.call)];
        }
        device_.queue = time_statistics(std::move(queue));
        device_.queue_after_call = time_statistics(std::move(after));
        device_.launch_calls = time_statistics(std::move(calls));
        std::uint64_t most = 0;
        for (const auto& [thread, count] : launches) {
            if (count > most) std::tie(most, main_thread_) = std::tuple(count, thread);
        }
    }

    /// Adds the gaps with the threads that caused them. Requires the times and the queue times.
    std::vector<ThreadGap> add_gaps(std::size_t longest) {
        std::vector<ThreadGap> due;
        due.reserve(gaps_.size());
        for (const IdleGap& gap : gaps_) {
            due.push_back({gap.start_ns, gap.end_ns, thread_of(gap)});
            if (gap.before == kNoIndex || !is_starved(gap)) continue;
            const std::int64_t duration = gap.end_ns - gap.start_ns;
            const bool is_short = duration < kShortGapNs;
            (is_short ? device_.starved_short_ns : device_.starved_long_ns) += duration;
            ++(is_short ? device_.starved_short_gaps : device_.starved_long_gaps);
        }
        const std::vector<std::uint32_t> chosen = longest_gaps(longest);
        HostTimes all;
        std::map<std::uint32_t, HostTimes> own;
        std::map<Row, std::vector<HostGap>> of_thread;
        for (const std::uint32_t gap : chosen) own[gap];
        for (std::uint32_t i = 0; i < due.size(); ++i) {
            if (due[i].thread == kNoRow) continue;
            const auto found = own.find(i);
            const bool is_between = gaps_[i].before != kNoIndex && gaps_[i].after != kNoIndex;
            of_thread[due[i].thread].push_back({due[i].start_ns, due[i].end_ns, is_between ? &all : nullptr,
                                                found != own.end() ? &found->second : nullptr});
        }
        for (const auto& [thread, gaps] : of_thread) add_host_times(host_, thread, gaps);
        device_.idle_host = all.rows(host_.names());
        for (const std::uint32_t i : chosen) add_gap(gaps_[i], due[i].thread, own[i]);
        return due;
    }

  private:
    BusyTimes fill(GpuTimes& times, std::span<const std::uint32_t> pieces) const {
        const WindowInfo& window = trace_.window();
        BusyTimes busy = busy_times(work_.pieces, pieces, window.start_ns, window.end_ns);
        times.busy_ns = busy.busy_ns;
        std::vector<std::int64_t> gaps;
        gaps.reserve(busy.gaps.size());
        for (const IdleGap& gap : busy.gaps) gaps.push_back(gap.end_ns - gap.start_ns);
        times.gaps = time_statistics(std::move(gaps));
        times.idle_ns = times.gaps.total_ns;
        for (const std::uint32_t i : pieces) {
            const GpuPiece& piece = work_.pieces[i];
            GpuWorkTotals& totals = piece.kind == GpuWorkKind::Kernel ? times.kernels
                                    : piece.kind == GpuWorkKind::Copy ? times.copies
                                    : piece.kind == GpuWorkKind::Set  ? times.sets
                                                                      : times.others;
            ++totals.count;
            totals.total_ns += piece.duration_ns();
        }
        return busy;
    }

    Row launching_thread(std::uint32_t piece) const {
        if (piece == kNoIndex || work_.pieces[piece].call == kNoRow) return kNoRow;
        return host_.thread(work_.pieces[piece].call);
    }
    Row thread_of(const IdleGap& gap) const {
        for (const std::uint32_t piece : {gap.after, gap.before}) {
            const Row thread = launching_thread(piece);
            if (thread != kNoRow) return thread;
        }
        return main_thread_;
    }
    bool is_starved(const IdleGap& gap) const {
        if (gap.after == kNoIndex || work_.pieces[gap.after].call == kNoRow) return false;
        return host_.ranges().start_ns[work_.pieces[gap.after].call] > gap.start_ns;
    }

    std::vector<std::uint32_t> longest_gaps(std::size_t count) const {
        std::vector<std::uint32_t> order(gaps_.size());
        std::iota(order.begin(), order.end(), 0);
        const auto middle = order.begin() + static_cast<std::ptrdiff_t>(std::min(count, order.size()));
        std::partial_sort(order.begin(), middle, order.end(), [&](std::uint32_t a, std::uint32_t b) {
            const std::int64_t length_a = gaps_[a].end_ns - gaps_[a].start_ns;
            const std::int64_t length_b = gaps_[b].end_ns - gaps_[b].start_ns;
            return length_a != length_b ? length_a > length_b : a < b;
        });
        order.erase(middle, order.end());
        return order;
    }

    void add_gap(const IdleGap& from, Row thread, const HostTimes& host) {
        const auto name = [&](std::uint32_t piece) {
            return piece == kNoIndex ? std::string()
                                     : std::string(trace_.range_name(work_.pieces[piece].range));
        };
        GpuGap& gap = device_.longest_gaps.emplace_back();
        gap.start_ns = from.start_ns;
        gap.duration_ns = from.end_ns - from.start_ns;
        gap.place = from.before == kNoIndex  ? GpuGapPlace::BeforeFirst
                    : from.after == kNoIndex ? GpuGapPlace::AfterLast
                                             : GpuGapPlace::Between;
        gap.is_starved = is_starved(from);
        gap.thread = thread;
        gap.before = name(from.before);
        gap.after = name(from.after);
        gap.host = host.rows(host_.names());
    }

    const HostRanges& host_;
    const Trace& trace_;
    const GpuDeviceWork& work_;
    GpuDevice& device_;
    std::vector<IdleGap> gaps_;
    Row main_thread_ = kNoRow;  ///< the thread that launches most
};

}  // namespace

GpuUse gpu_use(const Trace& trace, const GpuUseOptions& options) {
    GpuUse use;
    const GpuWork work = collect_gpu_work(trace, options.device);
    const std::map<std::int64_t, GpuProperties> properties = gpu_properties(trace);
    const HostRanges host(trace);
    std::vector<std::vector<ThreadGap>> gaps;
    for (const GpuDeviceWork& one : work.devices) {
        GpuDevice& device = use.devices.emplace_back();
        device.process = one.process;
        device.device = one.device;
        const auto known = properties.find(one.device.index);
        const GpuProperties* const device_properties = known != properties.end() ? &known->second : nullptr;
        if (device_properties != nullptr) {
            device.name = device_properties->name;
            device.sm_count = device_properties->sm_count;
        }
        DeviceReport report(host, one, device);
        report.add_times();
        report.add_queue_times();
        gaps.push_back(report.add_gaps(options.longest_gaps));
        add_gpu_tables(host, one, work.shapes, device_properties, device);
    }
    if (use.devices.empty()) return use;
    use.calls = gpu_calls(host);
    use.waits = gpu_waits(host, gaps);
    use.findings = gpu_findings(trace, use);
    return use;
}

}  // namespace marey
