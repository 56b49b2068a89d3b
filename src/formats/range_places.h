// range_places.h: where ranges belong: the step of each range, the group and sequence number of collectives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

#include <marey/steps.h>
#include <marey/trace.h>

#include "analyze/name_slots.h"
#include "trace/trace_data.h"

namespace marey {

/// The end of the stretch of equal values that begins at `row`, `limit` at most.
template <class T>
std::size_t end_of_equal(const std::vector<T>& values, std::size_t row, std::size_t limit) {
    const T* const first = values.data() + row;
    const T* const end = values.data() + std::min(limit, values.size());
    const T* const other = std::find_if(first, end, [value = *first](T each) { return each != value; });
    return static_cast<std::size_t>(other - values.data());
}

/// A range in which all ranks of a group meet.
struct Collective {
    std::uint32_t group = 0;  ///< of RangePlaces::group_name()
    std::int64_t sequence = 0;
};

class RangePlaces {
  public:
    /// Takes linear time in the number of ranges.
    explicit RangePlaces(const Trace& trace) : ranges_(trace.ranges().size()) {
        find_steps(trace);
        find_recursive(trace);
        find_collectives(trace);
    }

    /// The number of the step of its process during which the range began; -1: none.
    std::int64_t step(Row range) const { return step_.empty() ? -1 : step_[range]; }
    /// 1 if a range around it on its track has the same name, 0 otherwise.
    std::uint8_t is_recursive(Row range) const { return recursive_[range]; }
    /// The end of the stretch of ranges for which that is equal, as below.
    std::size_t end_of_recursive(std::size_t range, std::size_t limit) const {
        return end_of_equal(recursive_, range, limit);
    }
    /// Null if the range is not a collective.
    const Collective* collective(Row range) const {
        const auto found = first_from(range);
        return found == collectives_.end() || found->range != range ? nullptr : &found->collective;
    }
    std::string_view group_name(std::uint32_t group) const { return groups_[group]; }

    /// The end of the stretch of ranges of equal steps that begins at `range`, `limit` at most.
    std::size_t end_of_step(std::size_t range, std::size_t limit) const {
        return step_.empty() ? limit : end_of_equal(step_, range, limit);
    }
    /// The first collective after `range`; the number of ranges if there is none.
    std::size_t next_collective(Row range) const {
        const auto found = first_from(std::size_t{range} + 1);
        return found == collectives_.end() ? ranges_ : found->range;
    }

  private:
    /// The time of a step.
    struct StepSpan {
        std::int64_t start_ns;
        std::int64_t end_ns;
        std::int64_t number;
    };

    /// The process of a track, or kNoRow.
    static Row process_of(const Trace& trace, const TrackInfo& track) {
        return track.thread < trace.threads().size() ? trace.threads()[track.thread].process : kNoRow;
    }

    /// Values that make a range a collective: PyTorch's keys, and the same for other programs.
    struct CollectiveKeys {
        std::string_view group;
        std::string_view sequence;
    };
    static constexpr CollectiveKeys kKeys[] = {{"Process Group Name", "Seq"}, {"group", "sequence"}};

    struct CollectiveRange {
        Row range;
        Row process;
        bool is_on_device;
        Collective collective;  ///< sequence -1: not recorded
    };

    /// The values that make a range a collective.
    struct CollectiveValues {
        std::string group;
        std::int64_t sequence = -1;  ///< -1: not recorded
    };

    /// True if the values of a range make it a collective. A sequence number is optional only with PyTorch's
    /// key.
    static bool read_collective(const Trace& trace, Row range, CollectiveValues& found) {
        for (const CollectiveKeys& keys : kKeys) {
            bool has_group = false;
            found = {};
            for (const Argument& argument : trace.range_arguments(range)) {
                const std::string_view key = trace.string(argument.key);
                if (key == keys.group && argument.kind == ValueKind::String) {
                    has_group = true;
                    found.group = trace.string(argument.string);
                } else if (key == keys.group && argument.kind == ValueKind::Int) {
                    has_group = true;
                    found.group = std::to_string(argument.integer);
                } else if (key == keys.sequence && argument.kind == ValueKind::Int) {
                    found.sequence = argument.integer;
                }
            }
            if (has_group && (found.sequence >= 0 || &keys == &kKeys[0])) return true;
        }
        return false;
    }

    void find_steps(const Trace& trace) {
        const StepReport report = step_report(trace, {.slowest = 0});
        if (report.steps.empty()) return;
        std::map<Row, std::vector<StepSpan>> spans;  // by process, in order of time
        for (const StepInfo& step : report.steps)
            spans[trace.threads()[step.thread].process].push_back(
                {step.start_ns, step.start_ns + step.duration_ns, step.number});
        const RangeColumns ranges = trace.ranges();
        step_.assign(ranges.size(), -1);
        for (const TrackInfo& track : trace.tracks()) {
            const auto found = spans.find(process_of(trace, track));
            if (found == spans.end()) continue;
            const std::vector<StepSpan>& steps = found->second;
            for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
                const std::int64_t start = ranges.start_ns[row];
                const auto after = std::upper_bound(
                    steps.begin(), steps.end(), start,
                    [](std::int64_t time, const StepSpan& step) { return time < step.start_ns; });
                if (after != steps.begin() && start < std::prev(after)->end_ns)
                    step_[row] = std::prev(after)->number;
            }
        }
    }
    void find_recursive(const Trace& trace) {
        const NameSlots slots(trace);
        const RangeColumns ranges = trace.ranges();
        recursive_.resize(ranges.size());
        std::vector<std::uint32_t> open(slots.names.size() + 1);  // by name
        std::vector<std::uint32_t> path;
        for (const TrackInfo& track : trace.tracks()) {
            for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
                for (; path.size() > ranges.depth[row]; path.pop_back()) --open[path.back()];
                path.push_back(ranges.site[row] < slots.of_site.size() ? slots.of_site[ranges.site[row]] : 0);
                recursive_[row] = open[path.back()]++ > 0 ? 1 : 0;
            }
            for (; !path.empty(); path.pop_back()) --open[path.back()];
        }
    }
    void find_collectives(const Trace& trace) {
        std::vector<CollectiveRange> all;
        std::map<std::string, std::uint32_t> groups;
        const RangeColumns ranges = trace.ranges();
        for (const ArgumentSlice& slice : trace.data().range_arguments) {
            CollectiveValues values;
            if (slice.row >= ranges.size() || !read_collective(trace, slice.row, values)) continue;
            const Row track = trace.track_of(slice.row);
            if (track == kNoRow) continue;
            const TrackInfo& info = trace.tracks()[track];
            const auto [group, is_new] =
                groups.try_emplace(std::move(values.group), static_cast<std::uint32_t>(groups_.size()));
            if (is_new) groups_.push_back(group->first);
            all.push_back({slice.row,
                           process_of(trace, info),
                           info.kind == TrackKind::Device,
                           {group->second, values.sequence}});
        }
        // Without recorded numbers, the order of a group's collectives in its process is their sequence.
        std::ranges::stable_sort(all, [&](const CollectiveRange& a, const CollectiveRange& b) {
            return ranges.start_ns[a.range] < ranges.start_ns[b.range];
        });
        std::map<std::tuple<Row, std::uint32_t, bool>, std::int64_t> next;
        std::map<std::tuple<Row, std::uint32_t, std::int64_t>, bool> has_kernel;
        for (CollectiveRange& found : all) {
            std::int64_t& counted = next[{found.process, found.collective.group, found.is_on_device}];
            if (found.collective.sequence < 0) found.collective.sequence = counted;
            ++counted;
            has_kernel[{found.process, found.collective.group, found.collective.sequence}] |=
                found.is_on_device;
        }
        // The range that launched a collective on a device has the same values; the device's range is the
        // collective.
        for (const CollectiveRange& found : all) {
            const Collective& collective = found.collective;
            if (found.is_on_device || !has_kernel[{found.process, collective.group, collective.sequence}])
                collectives_.push_back({found.range, collective});
        }
        std::ranges::sort(collectives_, {}, &Placed::range);
    }

    struct Placed {
        Row range;
        Collective collective;
    };
    /// The first one at or after `range`.
    std::vector<Placed>::const_iterator first_from(std::size_t range) const {
        return std::lower_bound(
            collectives_.begin(), collectives_.end(), range,
            [](const Placed& placed, std::size_t wanted) { return placed.range < wanted; });
    }

    std::size_t ranges_;
    std::vector<std::int64_t> step_;       ///< by range; empty: the trace has no steps
    std::vector<std::uint8_t> recursive_;  ///< by range
    std::vector<Placed> collectives_;      ///< in order of ranges
    std::vector<std::string> groups_;      ///< numbers as text: MPI's groups have no names
};

}  // namespace marey
