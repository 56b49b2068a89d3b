// range_groups.cpp: maps sites to keys and keys to groups, track by track, then splits groups by shapes and
// stacks.
#include "analyze/averages/range_groups.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analyze/averages/site_groups.h"
#include "analyze/events/event_categories.h"
#include "analyze/tree/range_stack.h"

namespace marey {
namespace {

constexpr std::uint32_t kNoGroup = std::numeric_limits<std::uint32_t>::max();
/// Up to this many pairs of a class and a site (or a key), the groups are numbered without a look at the
/// ranges.
constexpr std::size_t kMostSitePairs = std::size_t{1} << 20;
constexpr std::size_t kMostKeyPairs = std::size_t{1} << 15;

/// Numbers pairs in order of first appearance.
class PairNumbers {
  public:
    std::uint32_t find(std::uint32_t a, std::uint32_t b) {
        const std::uint64_t key = std::uint64_t{a} << 32 | b;
        return numbers_.try_emplace(key, static_cast<std::uint32_t>(numbers_.size())).first->second;
    }
    std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(numbers_.size()); }

  private:
    std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
};

/// Groups split by the first entries of the ranges' stacks.
class StackGroups {
  public:
    StackGroups(const Trace& trace, std::uint32_t entries) : stacks_(trace), entries_(entries) {}

    std::uint32_t find(std::uint32_t base, Row range) {
        std::uint32_t stack = 0;  // a chain of pairs: (previous stack, one more entry)
        stacks_.visit(range, entries_, [&](std::string_view entry) {
            const auto text =
                texts_.try_emplace(entry, static_cast<std::uint32_t>(texts_.size())).first->second;
            stack = chains_.find(stack, text) + 1;
        });
        return groups_.find(base, stack);
    }
    std::uint32_t size() const noexcept { return groups_.size(); }

  private:
    RangeStacks stacks_;
    std::uint32_t entries_;
    std::unordered_map<std::string_view, std::uint32_t> texts_;
    PairNumbers chains_;
    PairNumbers groups_;
};

/// 1 for each range that is the only child of a parent with the same name; empty if there are none. Considers
/// only nested calls. A recursive function is not a repetition.
std::vector<std::uint8_t> find_repeated(const Trace& trace, const SiteKeys& keys) {
    const RangeColumns ranges = trace.ranges();
    const auto is_call = [&](Row row) { return is_python_frame(trace.sites()[ranges.site[row]].scope); };
    std::vector<Row> candidates;
    for (const TrackInfo& track : trace.tracks()) {
        if (track.kind == TrackKind::Async || track.device.type != DeviceType::Cpu) continue;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            const Row parent = ranges.parent[row];
            if (parent != kNoRow &&
                keys.name_of_site[ranges.site[row]] == keys.name_of_site[ranges.site[parent]] &&
                !is_call(row) && !is_call(parent))
                candidates.push_back(row);
        }
    }
    if (candidates.empty()) return {};
    std::vector<std::uint8_t> children(ranges.size(), 0);  // none, one or several
    for (const Row parent : ranges.parent) {
        if (parent != kNoRow && children[parent] < 2) ++children[parent];
    }
    std::vector<std::uint8_t> repeated(ranges.size(), 0);
    for (const Row row : candidates) repeated[row] = children[ranges.parent[row]] == 1;
    return repeated;
}

}  // namespace

bool is_user_annotation(Scope scope) noexcept {
    return scope == Scope::User || scope == Scope::Step;
}

std::int32_t node_of_thread(const Trace& trace, Row thread) noexcept {
    const Row process = thread < trace.threads().size() ? trace.threads()[thread].process : kNoRow;
    return process < trace.processes().size() ? trace.processes()[process].node : -1;
}

SiteKeys::SiteKeys(const Trace& trace, bool by_overload, GroupBy by) {
    std::unordered_map<std::string_view, std::uint32_t> texts;
    std::vector<std::string> made;  // owns the names that are not in the trace
    const bool by_name = by == GroupBy::Name || by == GroupBy::Function;
    if (by != GroupBy::Name) {
        made.reserve(trace.sites().size());
        for (const SiteInfo& site : trace.sites()) made.push_back(site_group(trace, site, by));
    }
    const auto number = [&](std::string_view text) {
        return texts.try_emplace(text, static_cast<std::uint32_t>(texts.size())).first->second;
    };
    PairNumbers keys;
    of_site.reserve(trace.sites().size());
    name_of_site.reserve(trace.sites().size());
    for (const SiteInfo& site : trace.sites()) {
        const std::uint32_t name =
            number(made.empty() ? group_name(trace.string(site.name)) : made[of_site.size()]);
        const std::uint32_t overload = by_overload ? number(trace.string(site.overload)) : 0;
        name_of_site.push_back(name);
        // A file holds both functions and annotations: it is one group.
        const bool is_annotation = by_name && is_user_annotation(site.scope);
        of_site.push_back(keys.find(name, overload << 1 | std::uint32_t{is_annotation}));
    }
    size = keys.size();
}

RangeGroups::RangeGroups(const Trace& trace, const AverageOptions& options, bool each_range) : trace_(trace) {
    order_tracks(options.by_thread, options.group_by == GroupBy::Process);
    if (each_range) {
        if (options.merge_repeated) is_repeated_ = find_repeated(trace, SiteKeys(trace, false));
        assign_each();
    } else {
        assign(options);
    }
}

void RangeGroups::order_tracks(bool by_thread, bool by_process) {
    using Class = std::tuple<std::int32_t, DeviceType, Row, Row>;
    const auto class_of = [&](Row track, bool with_thread) -> Class {
        const TrackInfo& info = trace_.tracks()[track];
        const bool with_process = by_process && info.thread < trace_.threads().size();
        return {node_of_thread(trace_, info.thread), info.device.type,
                with_process ? trace_.threads()[info.thread].process : 0, with_thread ? info.thread : 0};
    };
    order_.resize(trace_.tracks().size());
    std::iota(order_.begin(), order_.end(), Row{0});
    std::ranges::stable_sort(order_, {}, [&](Row a) { return class_of(a, true); });
    class_of_track_.resize(order_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) {
        if (i == 0 || class_of(order_[i - 1], by_thread) != class_of(order_[i], by_thread)) ++classes_;
        class_of_track_[order_[i]] = classes_ - 1;
    }
}

/// Numbers the groups of all classes and keys.
void RangeGroups::assign_sites(const SiteKeys& keys) {
    of_site_.reserve(classes_ * keys.of_site.size());
    for (std::uint32_t number = 0; number < classes_; ++number) {
        for (const std::uint32_t key : keys.of_site) of_site_.push_back(number * keys.size + key);
    }
    size_ = classes_ * keys.size;
}

void RangeGroups::drop_empty(const std::function<bool(std::uint32_t)>& is_empty) {
    if (of_range_ != nullptr) return;  // they are numbered as they appear
    std::vector<std::uint32_t> numbers(size_);
    const std::uint32_t before = std::exchange(size_, 0);
    for (std::uint32_t group = 0; group < before; ++group)
        numbers[group] = is_empty(group) ? kNoGroup : size_++;
    for (std::uint32_t& group : of_site_) group = numbers[group];
}

void RangeGroups::assign_each() {
    const RangeColumns ranges = trace_.ranges();
    of_range_.reset(new std::uint32_t[ranges.size()]);
    for (Row row = 0; row < ranges.size(); ++row) {
        const bool is_repeated = !is_repeated_.empty() && is_repeated_[row] != 0;
        of_range_[row] = is_repeated ? of_range_[ranges.parent[row]] | kMerged : size_++;
    }
}

void RangeGroups::assign(const AverageOptions& options) {
    const RangeColumns ranges = trace_.ranges();
    const SiteKeys keys(trace_, options.by_overload, options.group_by);
    if (options.merge_repeated) {
        is_repeated_ = options.group_by == GroupBy::Name ? find_repeated(trace_, keys)
                                                         : find_repeated(trace_, SiteKeys(trace_, false));
    }
    const bool follows_sites = is_repeated_.empty() && !options.by_input_shape && options.stack_entries == 0;
    if (follows_sites && classes_ > 0 && trace_.sites().size() <= kMostSitePairs / classes_ &&
        keys.size <= kMostKeyPairs / classes_)
        return assign_sites(keys);
    of_range_.reset(new std::uint32_t[ranges.size()]);
    std::optional<ShapeGroups> shapes;
    if (options.by_input_shape) shapes.emplace(trace_);
    std::optional<StackGroups> stacks;
    if (options.stack_entries > 0) stacks.emplace(trace_, options.stack_entries);
    const std::vector<ArgumentSlice>& slices = trace_.data().range_arguments;

    std::vector<std::uint32_t> group_of_key(keys.size, kNoGroup);
    std::vector<std::uint32_t> used;  // keys with a group in the current class
    for (std::size_t place = 0; place < order_.size(); ++place) {
        if (place == 0 || class_of_track_[order_[place]] != class_of_track_[order_[place - 1]]) {
            for (const std::uint32_t key : used) group_of_key[key] = kNoGroup;
            used.clear();
        }
        const TrackInfo& track = trace_.tracks()[order_[place]];
        const Row end = track.first_range + track.range_count;
        auto slice = std::ranges::lower_bound(slices, track.first_range, {}, &ArgumentSlice::row);
        const auto group_of = [&](Row row) {
            const std::uint32_t key = keys.of_site[ranges.site[row]];
            if (group_of_key[key] == kNoGroup) {
                used.push_back(key);
                group_of_key[key] = size_++;
            }
            return group_of_key[key];
        };
        if (follows_sites) {
            for (Row row = track.first_range; row < end; ++row) of_range_[row] = group_of(row);
            continue;
        }
        for (Row row = track.first_range; row < end; ++row) {
            if (!is_repeated_.empty() && is_repeated_[row] != 0) {
                // A repeated range has no separate group. A parent's row comes first, so a chain ends in one
                // group.
                of_range_[row] = of_range_[ranges.parent[row]] | kMerged;
                continue;
            }
            std::uint32_t group = group_of(row);
            if (shapes) {
                while (slice != slices.end() && slice->row < row) ++slice;
                const bool has_values = slice != slices.end() && slice->row == row;
                group =
                    has_values ? shapes->find(group, slice->first, slice->count) : shapes->find(group, 0, 0);
            }
            if (stacks) group = stacks->find(group, row);
            of_range_[row] = group;
        }
    }
    if (shapes) size_ = shapes->size();
    if (stacks) size_ = stacks->size();
}

}  // namespace marey
