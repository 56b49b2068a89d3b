// averages.cpp: one pass over the ranges tallies their groups; what few ranges have is added to them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include <kymo/analyze.h>
#include <kymo/flops.h>

#include "analyze/device_time.h"
#include "analyze/event_costs.h"
#include "analyze/input_shapes.h"
#include "analyze/name_slots.h"
#include "analyze/range_groups.h"
#include "analyze/range_memory.h"
#include "analyze/stack_of_range.h"
#include "analyze/track_place.h"

namespace kymo {
namespace {

/// What a group gathers in the pass over all ranges; one cache line.
struct alignas(64) Tally {
    std::uint64_t count = 0;
    std::uint32_t unfinished = 0;
    std::uint32_t async = 0;
    Row track = kNoRow;   ///< where it was met last
    Row thread = kNoRow;  ///< likewise
    std::uint32_t threads = 0;
    Row first = kNoRow;  ///< of its ranges, in order of (start, longer first)
    std::int64_t total_ns = 0;
    std::int64_t self_ns = 0;
    std::int64_t min_ns = std::numeric_limits<std::int64_t>::max();
    std::int64_t max_ns = 0;
};

bool starts_before(const RangeColumns& ranges, Row a, Row b) {
    if (ranges.start_ns[a] != ranges.start_ns[b]) return ranges.start_ns[a] < ranges.start_ns[b];
    if (ranges.duration_ns[a] != ranges.duration_ns[b]) return ranges.duration_ns[a] > ranges.duration_ns[b];
    return a < b;
}

std::vector<Tally> tally(const Trace& trace, const RangeGroups& groups) {
    const RangeColumns ranges = trace.ranges();
    const WindowClip clip(trace);
    std::vector<Tally> tallies(groups.size());
    for (const Row index : groups.track_order()) {
        const TrackInfo& track = trace.tracks()[index];
        const bool is_async = track.kind == TrackKind::Async;
        // What only spans time of a device (a wait for it) is no work of it.
        const bool has_total = !is_async || track.device.type == DeviceType::Cpu;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            const std::uint32_t group = groups[row];
            Tally& entry = tallies[group & ~RangeGroups::kMerged];
            entry.self_ns += is_async ? 0 : ranges.self_ns[row];
            if ((group & RangeGroups::kMerged) != 0) continue;
            const std::int64_t duration = clip.duration(ranges.start_ns[row], ranges.duration_ns[row]);
            ++entry.count;
            entry.unfinished += (ranges.flags[row] & kUnfinished) != 0;
            entry.async += is_async;
            entry.total_ns += has_total ? duration : 0;
            entry.min_ns = std::min(entry.min_ns, duration);
            entry.max_ns = std::max(entry.max_ns, duration);
            if (entry.track != index) {  // a track is in order of its starts
                entry.track = index;
                if (entry.first == kNoRow || starts_before(ranges, row, entry.first)) entry.first = row;
                entry.threads += entry.thread != track.thread;
                entry.thread = track.thread;
            }
        }
    }
    return tallies;
}

std::int32_t node_of(const Trace& trace, Row thread) {
    const Row process = thread < trace.threads().size() ? trace.threads()[thread].process : kNoRow;
    return process < trace.processes().size() ? trace.processes()[process].node : -1;
}

/// Makes the rows of an average, one per group, in the order of the groups.
class RowMaker {
  public:
    RowMaker(const Trace& trace, const AverageOptions& options, bool each_range)
        : trace_(trace), options_(options), each_range_(each_range), groups_(trace, options, each_range) {
        const std::vector<Tally> tallies = tally(trace, groups_);
        rows_.resize(tallies.size());
        if (each_range || options.stack_entries > 0) stacks_ = std::make_unique<RangeStacks>(trace);
        for (std::size_t i = 0; i < tallies.size(); ++i) {
            describe(rows_[i], tallies[i]);
            sum(rows_[i], tallies[i]);
        }
    }

    void add_device_times();
    void add_memory(const RangeMemory& memory);
    void add_flops();
    void add_percentiles();
    void add_covered_times();
    void add_overheads();
    std::vector<AverageRow>& rows() noexcept { return rows_; }

  private:
    AverageRow& row_of(Row range) { return rows_[groups_[range] & ~RangeGroups::kMerged]; }
    void add_overhead(Row range, double ns);
    void add_overheads_of(const TrackInfo& track, RangeCosts& costs);
    bool is_counted(Row range) const noexcept { return (groups_[range] & RangeGroups::kMerged) == 0; }

    void describe(AverageRow& row, const Tally& entry) const {
        const TrackInfo& track = trace_.tracks()[trace_.track_of(entry.first)];
        const SiteInfo& site = trace_.sites()[trace_.ranges().site[entry.first]];
        const std::uint16_t flags = trace_.ranges().flags[entry.first];
        row.name = group_name(trace_.string(site.name));
        row.node = node_of(trace_, track.thread);
        row.device_type = track.device.type;
        row.scope = site.scope;
        row.is_user_annotation = is_user_annotation(site.scope);
        row.is_async = track.kind == TrackKind::Async;
        row.is_remote = (flags & kRemote) != 0;
        row.is_top_level = row.is_async || row.device_type != DeviceType::Cpu ||
                           trace_.ranges().parent[entry.first] == kNoRow;
        row.first_range = entry.first;
        row.thread = track.thread;
        if (options_.by_thread) row.thread_name = trace_.string(trace_.threads()[track.thread].name);
        if (each_range_ || options_.by_overload) row.overload = trace_.string(site.overload);
        if (each_range_ || options_.by_input_shape)
            row.input_shapes = input_shapes_text(trace_, trace_.range_arguments(entry.first));
        if (stacks_) {
            const std::size_t limit =
                each_range_ ? std::numeric_limits<std::size_t>::max() : options_.stack_entries;
            stacks_->visit(entry.first, limit, [&](std::string_view text) { row.stack.emplace_back(text); });
        }
    }

    static void sum(AverageRow& row, const Tally& entry) {
        row.count = entry.count;
        row.unfinished = entry.unfinished;
        row.async_count = entry.async;
        row.threads = entry.threads;
        row.min_ns = entry.min_ns;
        row.max_ns = entry.max_ns;
        if (row.device_type == DeviceType::Cpu) {
            row.cpu_time_total_ns = entry.total_ns;
            row.self_cpu_time_total_ns = entry.self_ns;
        } else {
            row.device_time_total_ns = row.self_device_time_total_ns = entry.total_ns;
        }
    }

    const Trace& trace_;
    const AverageOptions& options_;
    bool each_range_;
    RangeGroups groups_;
    std::unique_ptr<RangeStacks> stacks_;
    std::vector<AverageRow> rows_;
};

void RowMaker::add_device_times() {
    const std::vector<LaunchedTime> launched = launched_times(trace_);
    for (const LaunchedTime& entry : launched)
        row_of(entry.owner).self_device_time_total_ns += entry.duration_ns;
    const std::vector<std::int64_t> totals = total_launched_times(trace_, launched);
    for (Row range = 0; range < totals.size(); ++range) {
        if (totals[range] != 0 && is_counted(range)) row_of(range).device_time_total_ns += totals[range];
    }
}

void RowMaker::add_memory(const RangeMemory& memory) {
    for (const RangeBytes& entry : memory.self) {
        row_of(entry.range).self_cpu_memory_bytes += entry.cpu_bytes;
        row_of(entry.range).self_device_memory_bytes += entry.device_bytes;
    }
    for (const RangeBytes& entry : total_range_memory(trace_, memory.self)) {
        if (!is_counted(entry.range)) continue;
        row_of(entry.range).cpu_memory_bytes += entry.cpu_bytes;
        row_of(entry.range).device_memory_bytes += entry.device_bytes;
    }
}

void RowMaker::add_flops() {
    for (const RangeFlops& entry : all_flops(trace_)) {
        if (!is_counted(entry.range)) continue;
        AverageRow& row = row_of(entry.range);
        row.flops = row.flops.value_or(0) + entry.flops;
        if (entry.is_nested) row.nested_flops += entry.flops;
    }
}

/// The 1-based nearest rank of a percentile, as an index.
std::size_t rank(std::size_t count, unsigned percent) {
    return (count * percent + 99) / 100 - 1;
}

void RowMaker::add_percentiles() {
    // A counting sort by group, then selections in each, the highest first.
    std::vector<std::size_t> next(rows_.size() + 1, 0);
    for (std::size_t i = 0; i < rows_.size(); ++i) next[i + 1] = next[i] + rows_[i].count;
    const RangeColumns ranges = trace_.ranges();
    const WindowClip clip(trace_);
    const std::unique_ptr<std::int64_t[]> durations(new std::int64_t[next.back()]);
    for (Row range = 0; range < ranges.size(); ++range) {
        if (is_counted(range))
            durations[next[groups_[range]]++] =
                clip.duration(ranges.start_ns[range], ranges.duration_ns[range]);
    }
    std::int64_t* first = durations.get();
    for (AverageRow& row : rows_) {
        std::int64_t* const end = first + row.count;
        std::int64_t* upper = end;
        const auto select = [&](unsigned percent) {
            std::int64_t* const wanted = first + rank(row.count, percent);
            if (wanted < upper) std::nth_element(first, wanted, upper);
            upper = wanted;
            return *wanted;
        };
        row.p99_ns = select(99);
        row.p90_ns = select(90);
        row.p50_ns = select(50);
        first = end;
    }
}

void RowMaker::add_covered_times() {
    const RangeColumns ranges = trace_.ranges();
    const WindowClip clip(trace_);
    std::vector<std::uint32_t> open(rows_.size(), 0);  // ranges of each group around the current one
    std::vector<std::uint32_t> path;                   // their groups
    const auto close = [&] {
        --open[path.back()];
        path.pop_back();
    };
    for (const TrackInfo& track : trace_.tracks()) {
        for (Row range = track.first_range; range < track.first_range + track.range_count; ++range) {
            while (path.size() > ranges.depth[range]) close();
            path.push_back(groups_[range] & ~RangeGroups::kMerged);
            if (open[path.back()]++ == 0)
                row_of(range).covered_ns += clip.duration(ranges.start_ns[range], ranges.duration_ns[range]);
        }
        while (!path.empty()) close();
    }
}

/// To a sum that is there: rows of devices have no overhead.
void add_known(std::optional<double>& sum, double part) {
    if (sum) *sum += part;
}

/// Part of the time of `range` and of all around it.
void RowMaker::add_overhead(Row range, double ns) {
    for (; range != kNoRow; range = trace_.ranges().parent[range]) {
        if (is_counted(range)) add_known(row_of(range).overhead_ns, ns);
    }
}

void RowMaker::add_overheads() {
    const EventCosts costs(trace_);
    if (!costs.known) return;
    RangeCosts range_costs(trace_, costs);
    for (AverageRow& row : rows_) {
        if (row.device_type == DeviceType::Cpu) row.self_overhead_ns = row.overhead_ns = 0.0;
    }
    for (const TrackInfo& track : trace_.tracks()) {
        if (place_of(track) == Place::Host) add_overheads_of(track, range_costs);
    }
    visit_loose_costs(trace_, costs, [&](Row payer, double ns) {
        add_known(row_of(payer).self_overhead_ns, ns);
        add_overhead(payer, ns);
    });
}

/// What its ranges cost those around them.
void RowMaker::add_overheads_of(const TrackInfo& track, RangeCosts& costs) {
    const RangeColumns ranges = trace_.ranges();
    struct Open {
        Row range;
        double cost_before;  ///< of all ranges of the track up to it and with it
    };
    std::vector<Open> path;
    double cost = 0;
    const auto close = [&] {
        const Open last = path.back();
        path.pop_back();
        if (is_counted(last.range)) add_known(row_of(last.range).overhead_ns, cost - last.cost_before);
        // Around the outermost range of a track there may be ranges of another one.
        if (path.empty()) add_overhead(ranges.parent[last.range], cost - last.cost_before);
    };
    for (Row range = track.first_range; range < track.first_range + track.range_count; ++range) {
        while (path.size() > ranges.depth[range]) close();
        const double own = costs.of(range);
        cost += own;
        const Row parent = ranges.parent[range];
        if (parent != kNoRow) add_known(row_of(parent).self_overhead_ns, own);
        if (path.empty()) add_overhead(parent, own);
        path.push_back({range, cost});
    }
    while (!path.empty()) close();
}

// ---- allocation reports in no range

/// Rows for what happened in no range: one per report, or one per kind, node and, if wanted, thread; with the
/// times of their first reports.
std::vector<AverageRow> rows_of_loose_reports(const Trace& trace, const RangeMemory& memory,
                                              const AverageOptions& options, bool each_report,
                                              std::vector<std::int64_t>& times) {
    const MemoryColumns reports = trace.memory();
    std::vector<AverageRow> rows;
    for (std::size_t i = 0; i < reports.size(); ++i) {
        const bool is_refused = reports.out_of_memory[i] != 0;
        if (!is_refused && memory.owner[i] != kNoRow) continue;
        const Row thread = reports.thread[i];
        const char* const name = is_refused ? "[OutOfMemory]" : "[memory]";
        const std::int32_t node = node_of(trace, thread);
        const auto is_of_row = [&](const AverageRow& row) {
            return row.name == name && row.node == node && (!options.by_thread || row.thread == thread);
        };
        std::size_t end = rows.size();  // from the back: reports are in order of threads
        while (end > 0 && !is_of_row(rows[end - 1])) --end;
        if (each_report || end == 0) {
            AverageRow& row = rows.emplace_back();
            row.name = name;
            row.node = node;
            if (options.by_thread) row.thread_name = trace.string(trace.threads()[thread].name);
            if (each_report || options.by_input_shape) row.input_shapes = "[]";
            times.push_back(reports.time_ns[i]);
            end = rows.size();
        }
        AverageRow& row = rows[end - 1];
        times[end - 1] = std::min(times[end - 1], reports.time_ns[i]);
        row.threads += row.thread != thread;
        row.thread = thread;
        ++row.count;
        const bool is_cpu = is_cpu_memory(reports.device[i]);
        (is_cpu ? row.cpu_memory_bytes : row.device_memory_bytes) += reports.bytes[i];
        (is_cpu ? row.self_cpu_memory_bytes : row.self_device_memory_bytes) += reports.bytes[i];
    }
    return rows;
}

DeviceType device_of(const Trace& trace) {
    for (const TrackInfo& track : trace.tracks()) {
        if (track.device.type != DeviceType::Cpu && track.range_count > 0) return track.device.type;
    }
    for (const Device device : trace.memory().device) {
        if (device.type != DeviceType::Cpu) return device.type;
    }
    return DeviceType::None;
}

/// The order in which rows appear: by the first ranges, (start, longer first), reports behind ranges.
std::vector<std::size_t> appearance(const Trace& trace, const std::vector<AverageRow>& rows,
                                    const std::vector<std::int64_t>& report_times) {
    const RangeColumns ranges = trace.ranges();
    const std::size_t first_report = rows.size() - report_times.size();
    const auto start = [&](std::size_t i) {
        return i < first_report ? ranges.start_ns[rows[i].first_range] : report_times[i - first_report];
    };
    const auto duration = [&](std::size_t i) {
        return i < first_report ? ranges.duration_ns[rows[i].first_range] : 0;
    };
    std::vector<std::size_t> order(rows.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        if (start(a) != start(b)) return start(a) < start(b);
        if (duration(a) != duration(b)) return duration(a) > duration(b);
        if (a < first_report && b < first_report) return rows[a].first_range < rows[b].first_range;
        return a < b;
    });
    return order;
}

Averages average(const Trace& trace, const AverageOptions& options, bool each_range) {
    Averages averages;
    averages.options = options;
    averages.is_list = each_range;
    averages.device = device_of(trace);
    averages.has_memory = trace.memory().size() > 0;
    averages.range_count = trace.ranges().size();
    averages.window_ns = std::max<std::int64_t>(0, trace.window().end_ns - trace.window().start_ns);

    RowMaker maker(trace, options, each_range);
    maker.add_device_times();
    if (options.flops) maker.add_flops();
    if (options.percentiles && !each_range) maker.add_percentiles();
    if (options.nesting) {
        maker.add_covered_times();
        maker.add_overheads();
    }
    std::vector<AverageRow> rows;
    std::vector<std::int64_t> report_times;
    if (averages.has_memory) {
        const RangeMemory memory = range_memory(trace);
        maker.add_memory(memory);
        rows = std::move(maker.rows());
        for (AverageRow& row : rows_of_loose_reports(trace, memory, options, each_range, report_times))
            rows.push_back(std::move(row));
    } else {
        rows = std::move(maker.rows());
    }
    averages.rows.reserve(rows.size());
    for (const std::size_t index : appearance(trace, rows, report_times)) {
        averages.recorded_ns += rows[index].self_cpu_time_total_ns;
        averages.rows.push_back(std::move(rows[index]));
    }
    return averages;
}

}  // namespace

Averages key_averages(const Trace& trace, const AverageOptions& options) {
    return average(trace, options, false);
}

Averages list_ranges(const Trace& trace, const AverageOptions& options) {
    AverageOptions plain;
    plain.merge_repeated = options.merge_repeated;
    plain.flops = options.flops;
    plain.nesting = options.nesting;
    return average(trace, plain, true);
}

AverageRow total_average(const Averages& averages) {
    AverageRow total;
    const auto add = [](std::optional<double>& sum, const std::optional<double>& part) {
        if (part) sum = sum.value_or(0) + *part;
    };
    for (const AverageRow& row : averages.rows) {
        if (row.first_range != kNoRow) {
            total.min_ns = total.first_range == kNoRow ? row.min_ns : std::min(total.min_ns, row.min_ns);
            total.max_ns = std::max(total.max_ns, row.max_ns);
            if (total.first_range == kNoRow) total.first_range = row.first_range;
        }
        total.count += row.count;
        total.unfinished += row.unfinished;
        total.async_count += row.async_count;
        total.cpu_time_total_ns += row.cpu_time_total_ns;
        total.self_cpu_time_total_ns += row.self_cpu_time_total_ns;
        total.device_time_total_ns += row.device_time_total_ns;
        total.self_device_time_total_ns += row.self_device_time_total_ns;
        total.covered_ns += row.covered_ns;
        total.cpu_memory_bytes += row.cpu_memory_bytes;
        total.self_cpu_memory_bytes += row.self_cpu_memory_bytes;
        total.device_memory_bytes += row.device_memory_bytes;
        total.self_device_memory_bytes += row.self_device_memory_bytes;
        if (row.flops) add(total.flops, *row.flops - row.nested_flops);
        add(total.self_overhead_ns, row.self_overhead_ns);
        add(total.overhead_ns, row.overhead_ns);
    }
    total.name = "Total";
    return total;
}

void subtract_overhead(Averages& averages) {
    averages.recorded_ns = 0;
    const auto reduce = [](std::int64_t& time, const std::optional<double>& cost) {
        if (cost) time = std::max<std::int64_t>(0, time - std::llround(*cost));
    };
    for (AverageRow& row : averages.rows) {
        reduce(row.self_cpu_time_total_ns, row.self_overhead_ns);
        reduce(row.cpu_time_total_ns, row.overhead_ns);
        averages.recorded_ns += row.self_cpu_time_total_ns;
    }
}

}  // namespace kymo
