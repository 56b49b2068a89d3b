// average_rows.cpp: one pass counts all ranges; further passes add the optional columns.
#include "analyze/averages/average_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

#include <marey/flops.h>

#include "analyze/averages/site_groups.h"
#include "analyze/gpu/device_time.h"
#include "analyze/name_slots.h"
#include "analyze/time_percentiles.h"
#include "analyze/track_place.h"
#include "base/parallel.h"
#include "trace/part_flags.h"
#include "trace/program_names.h"

namespace marey {

/// Per-group totals of the pass over all ranges. The members that every range needs share a cache line.
struct alignas(64) AverageRowBuilder::Tally {
    std::uint64_t count = 0;
    std::uint64_t further = 0;  ///< of `count`: parts of calls whose first part is in the trace
    std::int64_t total_ns = 0;
    std::int64_t self_ns = 0;
    std::int64_t min_ns = std::numeric_limits<std::int64_t>::max();
    std::int64_t max_ns = 0;
    std::uint32_t unfinished = 0;
    std::uint32_t async = 0;
    Row track = kNoRow;  ///< track of the last range counted
    Row first = kNoRow;  ///< first range in order of (start, longer first)
    std::uint32_t threads = 0;
    Row first_thread = kNoRow;  ///< thread of the first range counted
    Row thread = kNoRow;        ///< thread of the last range counted
    std::uint32_t open = 0;     ///< ranges of the group that enclose the current one
    std::int64_t covered_ns = 0;
    std::int64_t more_calls = 0;  ///< calls of imported sums, less the ranges

    void add(const Tally& next, const RangeColumns& ranges);
};

namespace {

bool starts_before(const RangeColumns& ranges, Row a, Row b) {
    if (ranges.start_ns[a] != ranges.start_ns[b]) return ranges.start_ns[a] < ranges.start_ns[b];
    if (ranges.duration_ns[a] != ranges.duration_ns[b]) return ranges.duration_ns[a] > ranges.duration_ns[b];
    return a < b;
}

constexpr std::uint64_t kLeastRowsPerPart = 1 << 18;
constexpr std::uint64_t kPartsPerCore = 4;
constexpr std::uint32_t kMostGroupsInParts = 1 << 15;  // each part has all of them

/// The number of a duration's bucket. Buckets of larger durations have larger numbers; none is wider than a
/// 32nd of its durations.
std::size_t bucket_of(std::int64_t duration) noexcept {
    const auto value = static_cast<std::uint64_t>(duration);
    if (value < 64) return value;
    const int shift = std::bit_width(value) - 6;
    return static_cast<std::size_t>(shift) * 32 + (value >> shift);
}
constexpr std::size_t kBuckets = 59 * 32 + 1;

using Ranks = std::array<std::size_t, 3>;

/// The durations with three ranks (0: the shortest). Sorts only those in the same bucket.
std::array<std::int64_t, 3> select_ranks(std::span<const std::int64_t> durations, Ranks ranks) {
    std::vector<std::size_t> counts(kBuckets);
    for (const std::int64_t duration : durations) ++counts[bucket_of(duration)];
    Ranks buckets{};
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        for (; ranks[i] >= counts[buckets[i]]; ++buckets[i]) ranks[i] -= counts[buckets[i]];
    }
    std::array<std::vector<std::int64_t>, 3> same;
    for (const std::int64_t duration : durations) {
        const std::size_t bucket = bucket_of(duration);
        for (std::size_t i = 0; i < same.size(); ++i) {
            if (bucket == buckets[i]) same[i].push_back(duration);
        }
    }
    std::array<std::int64_t, 3> selected{};
    for (std::size_t i = 0; i < same.size(); ++i) {
        const auto wanted = same[i].begin() + static_cast<std::ptrdiff_t>(ranks[i]);
        std::nth_element(same[i].begin(), wanted, same[i].end());
        selected[i] = *wanted;
    }
    return selected;
}

/// Adds only to an existing sum: rows of devices have no overhead.
void add_known(std::optional<double>& sum, double part) {
    if (sum) *sum += part;
}

}  // namespace

AverageRowBuilder::AverageRowBuilder(const Trace& trace, const AverageOptions& options, bool each_range)
    : trace_(trace), options_(options), each_range_(each_range), groups_(trace, options, each_range) {
    std::vector<Tally> tallies = tally();
    groups_.drop_empty([&](std::uint32_t group) { return tallies[group].count == 0; });
    std::erase_if(tallies, [](const Tally& entry) { return entry.count == 0; });
    rows_.resize(tallies.size());
    if (each_range || options.stack_entries > 0) stacks_ = std::make_unique<RangeStacks>(trace);
    for (std::size_t i = 0; i < tallies.size(); ++i) {
        describe(rows_[i], tallies[i]);
        sum(rows_[i], tallies[i]);
    }
}

/// Adds the totals of the part that comes next in the order of tracks.
void AverageRowBuilder::Tally::add(const Tally& next, const RangeColumns& ranges) {
    self_ns += next.self_ns;
    covered_ns += next.covered_ns;
    if (next.count == 0) return;
    count += next.count;
    further += next.further;
    more_calls += next.more_calls;
    total_ns += next.total_ns;
    min_ns = std::min(min_ns, next.min_ns);
    max_ns = std::max(max_ns, next.max_ns);
    unfinished += next.unfinished;
    async += next.async;
    if (first == kNoRow || starts_before(ranges, next.first, first)) first = next.first;
    threads += next.threads - (thread == next.first_thread ? 1 : 0);
    thread = next.thread;
}

/// Parts of about equal size to work on in parallel.
std::vector<AverageRowBuilder::RowPart> AverageRowBuilder::row_parts() const {
    const std::uint64_t rows = trace_.ranges().size();
    const std::uint64_t most = groups_.size() > kMostGroupsInParts ? 1 : kPartsPerCore * usable_cores();
    const std::uint64_t count = std::clamp<std::uint64_t>(rows / kLeastRowsPerPart, 1, most);
    std::vector<RowPart> parts;
    for (std::uint64_t i = 0; i < count; ++i) parts.push_back({rows * i / count, rows * (i + 1) / count});
    return parts;
}

/// Calls visit(track, first row, row after the last) for the tracks of a part.
template <class Visit>
void AverageRowBuilder::visit_rows(RowPart part, Visit visit) const {
    std::uint64_t position = 0;
    for (const Row track : groups_.track_order()) {
        const TrackInfo& info = trace_.tracks()[track];
        const std::uint64_t begin = std::max(position, part.begin);
        const std::uint64_t end = std::min(position + info.range_count, part.end);
        if (begin < end) {
            visit(track, static_cast<Row>(info.first_range + (begin - position)),
                  static_cast<Row>(info.first_range + (end - position)));
        }
        position += info.range_count;
    }
}

std::vector<AverageRowBuilder::Tally> AverageRowBuilder::tally() const {
    const std::vector<RowPart> parts = row_parts();
    std::vector<std::vector<Tally>> tallies(parts.size());
    parallel_for(parts.size(), [&](std::size_t i) { tallies[i] = tally(parts[i]); });
    for (std::size_t i = 1; i < tallies.size(); ++i) {
        for (std::size_t group = 0; group < tallies[0].size(); ++group)
            tallies[0][group].add(tallies[i][group], trace_.ranges());
    }
    return std::move(tallies[0]);
}

std::vector<AverageRowBuilder::Tally> AverageRowBuilder::tally(RowPart part) const {
    const RangeColumns ranges = trace_.ranges();
    const WindowClip clip(trace_);
    std::vector<Tally> tallies(groups_.size());
    const bool is_covered = options_.covered || options_.nesting;
    std::vector<Tally*> path;  // of the enclosing ranges
    const auto leave_to = [&](std::size_t depth) {
        for (; path.size() > depth; path.pop_back()) --path.back()->open;
    };
    visit_rows(part, [&](Row index, Row begin, Row end) {
        const TrackInfo& track = trace_.tracks()[index];
        const RangeGroups::OfTrack groups = groups_.of_track(index);
        const bool is_async = track.kind == TrackKind::Async;
        // A range that only spans device time (such as a wait) is not device work.
        const std::int64_t total_bits = !is_async || track.device.type == DeviceType::Cpu ? ~0LL : 0;
        const std::int64_t self_bits = is_async ? 0 : ~0LL;
        const auto count = [&](Tally& entry, Row row, std::int64_t duration) {
            ++entry.count;
            entry.total_ns += duration & total_bits;
            entry.min_ns = std::min(entry.min_ns, duration);
            entry.max_ns = std::max(entry.max_ns, duration);
            if (const std::uint16_t flags = ranges.flags[row];
                (flags & (kFurtherPart | kUnfinished | kSampled)) != 0) {
                entry.more_calls += static_cast<std::int64_t>(calls_of(trace_, ranges, row)) - 1;
                entry.further += (flags & kFurtherPart) != 0;
                entry.unfinished += (flags & kUnfinished) != 0;
            }
            if (entry.track != index) {  // the ranges of a track are sorted by start
                entry.track = index;
                if (entry.first == kNoRow || starts_before(ranges, row, entry.first)) entry.first = row;
                entry.threads += entry.thread != track.thread;
                entry.thread = track.thread;
                if (entry.first_thread == kNoRow) entry.first_thread = track.thread;
            }
        };
        if (!is_covered && groups.follow_sites() && !is_async && clip.contains(ranges, track)) {
            // Most tracks: this loop is as fast as the memory.
            for (Row row = begin; row < end; ++row) {
                Tally& entry = tallies[groups[row]];
                entry.self_ns += ranges.self_ns[row];
                count(entry, row, ranges.duration_ns[row]);
            }
            return;
        }
        const auto enter = [&](Row row, std::int64_t duration) {
            Tally& entry = tallies[groups[row] & ~RangeGroups::kMerged];
            path.push_back(&entry);
            if (entry.open++ == 0) entry.covered_ns += duration;
        };
        if (is_covered) {  // the ranges around the first one were counted in the part before
            std::vector<Row> around;
            for (Row row = begin; ranges.depth[row] > 0 && ranges.parent[row] < row; row = around.back())
                around.push_back(ranges.parent[row]);
            for (; !around.empty(); around.pop_back()) enter(around.back(), 0);
        }
        for (Row row = begin; row < end; ++row) {
            const std::uint32_t group = groups[row];
            Tally& entry = tallies[group & ~RangeGroups::kMerged];
            entry.self_ns += ranges.self_ns[row] & self_bits;
            const std::int64_t duration = clip.duration(ranges.start_ns[row], ranges.duration_ns[row]);
            if (is_covered) {
                leave_to(ranges.depth[row]);
                enter(row, duration);
            }
            if ((group & RangeGroups::kMerged) != 0) continue;
            entry.async += is_async;
            count(entry, row, duration);
        }
        leave_to(0);
    });
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
    const auto calls = static_cast<std::int64_t>(entry.count - entry.further) + entry.more_calls;
    row.count = static_cast<std::uint64_t>(std::max<std::int64_t>(calls, 1));
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
    // A counting sort by group, then a selection within each group. next[i]: where part i writes.
    const RangeColumns ranges = trace_.ranges();
    const WindowClip clip(trace_);
    const std::vector<RowPart> parts = row_parts();
    std::vector<std::vector<std::uint64_t>> next(parts.size());
    parallel_for(parts.size(), [&](std::size_t i) {
        next[i].resize(rows_.size());
        visit_rows(parts[i], [&, counts = next[i].data()](Row track, Row begin, Row end) {
            const RangeGroups::OfTrack groups = groups_.of_track(track);
            for (Row row = begin; row < end; ++row) {
                if ((groups[row] & RangeGroups::kMerged) == 0) ++counts[groups[row]];
            }
        });
    });
    std::vector<std::uint64_t> first(rows_.size() + 1);
    for (std::size_t group = 0; group < rows_.size(); ++group) {
        first[group + 1] = first[group];
        for (auto& of_part : next) first[group + 1] += std::exchange(of_part[group], first[group + 1]);
    }
    const std::unique_ptr<std::int64_t[]> durations(new std::int64_t[first.back()]);
    parallel_for(parts.size(), [&](std::size_t i) {
        visit_rows(parts[i], [&, places = next[i].data()](Row track, Row begin, Row end) {
            const RangeGroups::OfTrack groups = groups_.of_track(track);
            for (Row row = begin; row < end; ++row) {
                if ((groups[row] & RangeGroups::kMerged) == 0)
                    durations[places[groups[row]]++] =
                        clip.duration(ranges.start_ns[row], ranges.duration_ns[row]);
            }
        });
    });
    parallel_for(rows_.size(), [&](std::size_t group) {
        AverageRow& row = rows_[group];
        const std::span<const std::int64_t> own(durations.get() + first[group], row.range_count);
        const std::array<std::int64_t, 3> values = select_ranks(
            own, {nearest_rank(own.size(), 50), nearest_rank(own.size(), 90), nearest_rank(own.size(), 99)});
        row.p50_ns = values[0];
        row.p90_ns = values[1];
        row.p99_ns = values[2];
    });
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
    std::vector<Overhead> sums(rows_.size());  // close together, unlike the rows
    for (Row track = 0; track < trace_.tracks().size(); ++track) {
        if (place_of(trace_.tracks()[track]) == Place::Host) add_overheads_of(track, range_costs, sums);
    }
    for (std::size_t group = 0; group < rows_.size(); ++group) {
        add_known(rows_[group].self_overhead_ns, sums[group].self_ns);
        add_known(rows_[group].overhead_ns, sums[group].total_ns);
    }
    visit_point_costs(trace_, costs, [&](Row payer, double ns) {
        add_known(row_of(payer).self_overhead_ns, ns);
        add_overhead(payer, ns);
    });
}

/// Attributes the recording cost of a track's ranges to the ranges that enclose them.
void AverageRowBuilder::add_overheads_of(Row track, RangeCosts& costs, std::vector<Overhead>& sums) {
    const RangeColumns ranges = trace_.ranges();
    const RangeGroups::OfTrack groups = groups_.of_track(track);
    struct Open {
        Row range;
        std::uint32_t group;
        double cost_before;  ///< of all ranges of the track up to and including this one
    };
    std::vector<Open> path;
    double cost = 0;
    const auto close = [&] {
        const Open last = path.back();
        path.pop_back();
        if ((last.group & RangeGroups::kMerged) == 0) sums[last.group].total_ns += cost - last.cost_before;
        // The outermost range of a track may be enclosed by a range on another track.
        if (path.empty()) add_overhead(ranges.parent[last.range], cost - last.cost_before);
    };
    const TrackInfo& info = trace_.tracks()[track];
    for (Row range = info.first_range; range < info.first_range + info.range_count; ++range) {
        while (path.size() > ranges.depth[range]) close();
        const double own = costs.of(range);
        cost += own;
        const Row parent = ranges.parent[range];
        if (!path.empty() && path.back().range == parent) {
            sums[path.back().group & ~RangeGroups::kMerged].self_ns += own;
        } else if (parent != kNoRow) {
            add_known(row_of(parent).self_overhead_ns, own);
        }
        if (path.empty()) add_overhead(parent, own);
        path.push_back({range, groups[range], cost});
    }
    while (!path.empty()) close();
}

}  // namespace marey
