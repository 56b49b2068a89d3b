// summary.cpp: the ranges of each name: how many, how long, how they spread.
#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>

#include <kymo/analyze.h>

#include "analyze/name_slots.h"

namespace kymo {
namespace {

constexpr std::uint32_t kNoGroup = std::numeric_limits<std::uint32_t>::max();

/// What a group gathers in the first pass; one cache line.
struct alignas(64) Tally {
    std::uint64_t count = 0;
    std::uint32_t open = 0;  ///< ranges of this group that enclose the current one
    std::uint32_t unfinished = 0;
    std::uint64_t async = 0;
    std::int64_t total_ns = 0;
    std::int64_t self_ns = 0;
    std::int64_t duration_ns = 0;
    std::int64_t min_ns = std::numeric_limits<std::int64_t>::max();
    std::int64_t max_ns = 0;
};

/// Gives a track's names their groups, made when first asked for. Both passes walk the tracks in the same
/// order and so meet the same groups.
class Groups {
  public:
    Groups(const Trace& trace, bool by_thread)
        : trace_(trace), slots_(trace), by_thread_(by_thread), group_of_slot_(slots_.names.size(), kNoGroup) {
        order_.resize(trace.tracks().size());
        std::iota(order_.begin(), order_.end(), std::size_t{0});
        if (!by_thread) return;
        std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
            return trace.tracks()[a].thread < trace.tracks()[b].thread;
        });
    }

    /// Calls visit(track, group_of_site) for every track; group_of_site(site) gives a group.
    template <typename Visit>
    void for_each_track(Visit visit) {
        Row thread = kNoRow;
        for (const std::size_t index : order_) {
            const TrackInfo& track = trace_.tracks()[index];
            if (by_thread_ && track.thread != thread) {
                thread = track.thread;
                for (const std::uint32_t slot : used_slots_) group_of_slot_[slot] = kNoGroup;
                used_slots_.clear();
                next_in_thread_ = first_of_thread(thread);
            }
            visit(track, [&](std::uint32_t site) {
                const std::uint32_t slot = slots_.of_site[site];
                const std::uint32_t group = group_of_slot_[slot];
                return group != kNoGroup ? group : assign(slot, thread);
            });
        }
    }

    std::size_t size() const { return names_.size(); }
    std::string_view name(std::size_t group) const { return slots_.names[names_[group]]; }
    Row thread(std::size_t group) const { return threads_[group]; }

  private:
    std::uint32_t assign(std::uint32_t slot, Row thread) {
        used_slots_.push_back(slot);
        std::uint32_t group;
        if (by_thread_ && next_in_thread_ < names_.size() && threads_[next_in_thread_] == thread) {
            group = next_in_thread_++;  // the second pass: groups of a thread come in the order of the first
        } else {
            group = static_cast<std::uint32_t>(names_.size());
            names_.push_back(slot);
            threads_.push_back(thread);
            next_in_thread_ = group + 1;
        }
        return group_of_slot_[slot] = group;
    }

    std::uint32_t first_of_thread(Row thread) const {
        const auto found = std::lower_bound(threads_.begin(), threads_.end(), thread);
        return static_cast<std::uint32_t>(found - threads_.begin());
    }

    const Trace& trace_;
    NameSlots slots_;
    bool by_thread_;
    std::vector<std::size_t> order_;            ///< of the tracks
    std::vector<std::uint32_t> group_of_slot_;  ///< of the current thread
    std::vector<std::uint32_t> used_slots_;
    std::vector<std::uint32_t> names_;  ///< slot of each group
    std::vector<Row> threads_;          ///< of each group; sorted, because the tracks are walked by thread
    std::uint32_t next_in_thread_ = 0;
};

std::vector<Tally> tally(const Trace& trace, Groups& groups) {
    const RangeColumns ranges = trace.ranges();
    const WindowClip clip(trace);
    std::vector<Tally> tallies;
    std::vector<std::uint32_t> enclosing;  // groups of the ranges around the current one, outermost first
    groups.for_each_track([&](const TrackInfo& track, auto group_of_site) {
        const bool is_async = track.kind == TrackKind::Async;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            const std::uint32_t group = group_of_site(ranges.site[row]);
            if (group >= tallies.size()) tallies.resize(group + 1);
            const std::uint32_t depth = ranges.depth[row];
            while (enclosing.size() > depth) {
                --tallies[enclosing.back()].open;
                enclosing.pop_back();
            }
            Tally& entry = tallies[group];
            const std::int64_t duration = clip.duration(ranges.start_ns[row], ranges.duration_ns[row]);
            ++entry.count;
            entry.unfinished += (ranges.flags[row] & kUnfinished) != 0;
            entry.total_ns += entry.open == 0 ? duration : 0;
            entry.self_ns += is_async ? 0 : ranges.self_ns[row];
            entry.async += is_async;
            entry.duration_ns += duration;
            entry.min_ns = std::min(entry.min_ns, duration);
            entry.max_ns = std::max(entry.max_ns, duration);
            ++entry.open;
            enclosing.push_back(group);
        }
        for (const std::uint32_t group : enclosing) --tallies[group].open;
        enclosing.clear();
    });
    return tallies;
}

/// The 1-based nearest rank of a percentile, as an index.
std::size_t rank(std::size_t count, unsigned percent) {
    return (count * percent + 99) / 100 - 1;
}

void fill_percentiles(const Trace& trace, Groups& groups, std::vector<SummaryRow>& rows) {
    // A counting sort by group, then a selection in each.
    std::vector<std::size_t> next(rows.size() + 1, 0);
    for (std::size_t i = 0; i < rows.size(); ++i) next[i + 1] = next[i] + rows[i].count;
    const RangeColumns ranges = trace.ranges();
    const WindowClip clip(trace);
    const std::unique_ptr<std::int64_t[]> durations(new std::int64_t[next.back()]);
    groups.for_each_track([&](const TrackInfo& track, auto group_of_site) {
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            durations[next[group_of_site(ranges.site[row])]++] =
                clip.duration(ranges.start_ns[row], ranges.duration_ns[row]);
        }
    });
    std::int64_t* first = durations.get();
    for (SummaryRow& row : rows) {
        std::int64_t* const last = first + row.count;
        std::int64_t* const p99 = first + rank(row.count, 99);
        std::int64_t* const p50 = first + rank(row.count, 50);
        std::nth_element(first, p99, last);
        row.p99_ns = *p99;
        if (p50 != p99) std::nth_element(first, p50, p99);
        row.p50_ns = *p50;
        first = last;
    }
}

}  // namespace

Summary summarize(const Trace& trace, const SummaryOptions& options) {
    Summary summary;
    summary.by_thread = options.by_thread;
    summary.percentiles = options.percentiles;
    summary.range_count = trace.ranges().size();
    summary.window_ns = std::max<std::int64_t>(0, trace.window().end_ns - trace.window().start_ns);

    Groups groups(trace, options.by_thread);
    const std::vector<Tally> tallies = tally(trace, groups);
    summary.rows.reserve(tallies.size());
    for (std::size_t i = 0; i < tallies.size(); ++i) {
        const Tally& entry = tallies[i];
        SummaryRow row;
        row.name = groups.name(i);
        row.thread = groups.thread(i);
        row.count = entry.count;
        row.unfinished = entry.unfinished;
        row.async = entry.async;
        row.total_ns = entry.total_ns;
        row.self_ns = entry.self_ns;
        row.duration_ns = entry.duration_ns;
        row.min_ns = entry.min_ns;
        row.max_ns = entry.max_ns;
        summary.recorded_ns += entry.self_ns;
        summary.rows.push_back(std::move(row));
    }
    if (options.percentiles) fill_percentiles(trace, groups, summary.rows);
    return summary;
}

}  // namespace kymo
