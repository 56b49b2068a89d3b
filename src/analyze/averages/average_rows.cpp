// average_rows.cpp: one pass counts all ranges; further passes add the optional columns.
#include "analyze/averages/average_rows.h"

#include <algorithm>
#include <limits>

#include <marey/flops.h>

#include "analyze/averages/input_shapes.h"
#include "analyze/averages/site_groups.h"
#include "analyze/gpu/device_time.h"
#include "analyze/name_slots.h"
#include "analyze/track_place.h"
#include "trace/program_names.h"

namespace marey {

/// Per-group totals of the pass over all ranges. Two cache lines.
struct alignas(64) AverageRowBuilder::Tally {
    std::uint64_t count = 0;
    std::uint64_t further = 0;  ///< of `count`: parts of calls whose first part is in the trace
    std::uint32_t unfinished = 0;
    std::uint32_t async = 0;
    Row track = kNoRow;   ///< track of the last range counted
    Row thread = kNoRow;  ///< thread of the last range counted
    std::uint32_t threads = 0;
    Row first = kNoRow;  ///< first range in order of (start, longer first)
    std::int64_t total_ns = 0;
    std::int64_t self_ns = 0;
    std::int64_t min_ns = std::numeric_limits<std::int64_t>::max();
    std::int64_t max_ns = 0;
    std::int64_t covered_ns = 0;
    std::uint32_t open = 0;  ///< ranges of the group that enclose the current one
};

namespace {

bool starts_before(const RangeColumns& ranges, Row a, Row b) {
    if (ranges.start_ns[a] != ranges.start_ns[b]) return ranges.start_ns[a] < ranges.start_ns[b];
    if (ranges.duration_ns[a] != ranges.duration_ns[b]) return ranges.duration_ns[a] > ranges.duration_ns[b];
    return a < b;
}

/// The nearest rank (1-based) of a percentile, as an index.
std::size_t rank(std::size_t count, unsigned percent) {
    return (count * percent + 99) / 100 - 1;
}

/// Adds only to an existing sum: rows of devices have no overhead.
void add_known(std::optional<double>& sum, double part) {
    if (sum) *sum += part;
}

}  // namespace

AverageRowBuilder::AverageRowBuilder(const Trace& trace, const AverageOptions& options, bool each_range)
    : trace_(trace), options_(options), each_range_(each_range), groups_(trace, options, each_range) {
    const std::vector<Tally> tallies = tally();
    rows_.resize(tallies.size());
    if (each_range || options.stack_entries > 0) stacks_ = std::make_unique<RangeStacks>(trace);
    for (std::size_t i = 0; i < tallies.size(); ++i) {
        describe(rows_[i], tallies[i]);
        sum(rows_[i], tallies[i]);
    }
}

std::vector<AverageRowBuilder::Tally> AverageRowBuilder::tally() const {
    const RangeColumns ranges = trace_.ranges();
    const WindowClip clip(trace_);
    std::vector<Tally> tallies(groups_.size());
    const bool is_covered = options_.covered || options_.nesting;
    std::vector<Tally*> path(64);  // of the enclosing ranges, `depth` of them
    std::uint32_t depth = 0;
    const auto leave_to = [&](std::uint32_t wanted) {
        while (depth > wanted) --path[--depth]->open;
    };
    for (const Row index : groups_.track_order()) {
        const TrackInfo& track = trace_.tracks()[index];
        const bool is_async = track.kind == TrackKind::Async;
        // A range that only spans device time (such as a wait) is not device work.
        const bool has_total = !is_async || track.device.type == DeviceType::Cpu;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            const std::uint32_t group = groups_[row];
            Tally& entry = tallies[group & ~RangeGroups::kMerged];
            if (!is_async) entry.self_ns += ranges.self_ns[row];
            const std::int64_t duration = clip.duration(ranges.start_ns[row], ranges.duration_ns[row]);
            if (is_covered) {
                leave_to(ranges.depth[row]);
                if (depth == path.size()) path.resize(path.size() * 2);
                path[depth++] = &entry;
                if (entry.open++ == 0) entry.covered_ns += duration;
            }
            if ((group & RangeGroups::kMerged) != 0) continue;
            ++entry.count;
            entry.further += (ranges.flags[row] & kFurtherPart) != 0;
            entry.unfinished += (ranges.flags[row] & kUnfinished) != 0;
            entry.async += is_async;
            entry.total_ns += has_total ? duration : 0;
            entry.min_ns = std::min(entry.min_ns, duration);
            entry.max_ns = std::max(entry.max_ns, duration);
            if (entry.track != index) {  // the ranges of a track are sorted by start
                entry.track = index;
                if (entry.first == kNoRow || starts_before(ranges, row, entry.first)) entry.first = row;
                entry.threads += entry.thread != track.thread;
                entry.thread = track.thread;
            }
        }
        leave_to(0);
    }
    return tallies;
}

void AverageRowBuilder::describe(AverageRow& row, const Tally& entry) const {
    const TrackInfo& track = trace_.tracks()[trace_.track_of(entry.first)];
    const SiteInfo& site = trace_.sites()[trace_.ranges().site[entry.first]];
    const std::uint16_t flags = trace_.ranges().flags[entry.first];
    row.name = options_.group_by == GroupBy::Name || each_range_
                   ? std::string(group_name(trace_.string(site.name)))
               : options_.group_by == GroupBy::Process
                   ? process_label(trace_, trace_.processes()[trace_.threads()[track.thread].process])
                   : site_group(trace_, site, options_.group_by);
    row.node = node_of_thread(trace_, track.thread);
    row.device_type = track.device.type;
    row.scope = site.scope;
    row.is_user_annotation = is_user_annotation(site.scope);
    row.is_async = track.kind == TrackKind::Async;
    row.is_remote = (flags & kRemote) != 0;
    row.is_top_level =
        row.is_async || row.device_type != DeviceType::Cpu || trace_.ranges().parent[entry.first] == kNoRow;
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

void AverageRowBuilder::sum(AverageRow& row, const Tally& entry) {
    row.range_count = entry.count;
    // The first part of a call may be in another row (thread, stack).
    row.count = std::max<std::uint64_t>(entry.count - entry.further, 1);
    row.unfinished = entry.unfinished;
    row.async_count = entry.async;
    row.threads = entry.threads;
    row.min_ns = entry.min_ns;
    row.max_ns = entry.max_ns;
    row.covered_ns = entry.covered_ns;
    if (row.device_type == DeviceType::Cpu) {
        row.cpu_time_total_ns = entry.total_ns;
        row.self_cpu_time_total_ns = entry.self_ns;
    } else {
        row.device_time_total_ns = row.self_device_time_total_ns = entry.total_ns;
    }
}

void AverageRowBuilder::add_device_times() {
    const std::vector<LaunchedTime> launched = launched_times(trace_);
    for (const LaunchedTime& entry : launched) {
        if (entry.is_timed) row_of(entry.owner).is_legacy = true;
    }
    const DeviceTimes times = device_times(trace_, launched);
    for (Row range = 0; range < times.total.size(); ++range) {
        if (times.self[range] != 0) row_of(range).self_device_time_total_ns += times.self[range];
        if (times.total[range] != 0 && is_counted(range))
            row_of(range).device_time_total_ns += times.total[range];
    }
}

void AverageRowBuilder::add_memory(const RangeMemory& memory) {
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

void AverageRowBuilder::add_flops() {
    for (const RangeFlops& entry : all_flops(trace_)) {
        if (!is_counted(entry.range)) continue;
        AverageRow& row = row_of(entry.range);
        row.flops = row.flops.value_or(0) + entry.flops;
        if (entry.is_nested) row.nested_flops += entry.flops;
    }
}

void AverageRowBuilder::add_percentiles() {
    // A counting sort by group, then selections within each group, from the highest rank down.
    std::vector<std::size_t> next(rows_.size() + 1, 0);
    for (std::size_t i = 0; i < rows_.size(); ++i) next[i + 1] = next[i] + rows_[i].range_count;
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
        std::int64_t* const end = first + row.range_count;
        std::int64_t* upper = end;
        const auto select = [&](unsigned percent) {
            std::int64_t* const wanted = first + rank(row.range_count, percent);
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

/// Adds overhead to `range` and to every range that encloses it.
void AverageRowBuilder::add_overhead(Row range, double ns) {
    for (; range != kNoRow; range = trace_.ranges().parent[range]) {
        if (is_counted(range)) add_known(row_of(range).overhead_ns, ns);
    }
}

void AverageRowBuilder::add_overheads() {
    const EventCosts costs(trace_);
    if (!costs.known) return;
    RangeCosts range_costs(trace_, costs);
    for (AverageRow& row : rows_) {
        if (row.device_type == DeviceType::Cpu) row.self_overhead_ns = row.overhead_ns = 0.0;
    }
    for (const TrackInfo& track : trace_.tracks()) {
        if (place_of(track) == Place::Host) add_overheads_of(track, range_costs);
    }
    visit_point_costs(trace_, costs, [&](Row payer, double ns) {
        add_known(row_of(payer).self_overhead_ns, ns);
        add_overhead(payer, ns);
    });
}

/// Attributes the recording cost of a track's ranges to the ranges that enclose them.
void AverageRowBuilder::add_overheads_of(const TrackInfo& track, RangeCosts& costs) {
    const RangeColumns ranges = trace_.ranges();
    struct Open {
        Row range;
        double cost_before;  ///< of all ranges of the track up to and including this one
    };
    std::vector<Open> path;
    double cost = 0;
    const auto close = [&] {
        const Open last = path.back();
        path.pop_back();
        if (is_counted(last.range)) add_known(row_of(last.range).overhead_ns, cost - last.cost_before);
        // The outermost range of a track may be enclosed by a range on another track.
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

}  // namespace marey
