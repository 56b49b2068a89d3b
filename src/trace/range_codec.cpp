// range_codec.cpp: both directions walk the rows once with a stack of the open ranges, with the same steps at
// each row.
#include "trace/range_codec.h"

#include <limits>

#include <marey/error.h>

#include "trace/columns.h"

namespace marey {
namespace {

/// Which site tends to follow which, for the same change of depth.
class SitePrediction {
  public:
    std::uint32_t& next(std::uint32_t depth_change) noexcept {
        return followers_[((last_ * 0x9e3779b1u) + (depth_change * 0x85ebca6bu)) >> 20];
    }
    void saw(std::uint32_t site) noexcept { last_ = site; }

  private:
    std::vector<std::uint32_t> followers_ = std::vector<std::uint32_t>(4096);
    std::uint32_t last_ = 0;
};

/// A range whose end is still to come, and the known facts about its children.
struct Open {
    Row row = kNoRow;
    std::uint64_t start = 0;
    std::uint64_t last_end = 0;  ///< of its last child
    bool has_children = false;
};

std::uint64_t wrap(std::int64_t time) noexcept {
    return static_cast<std::uint64_t>(time);
}

/// For a column that may be left out if all its rows are 0.
std::uint64_t at(const std::vector<std::uint64_t>& numbers, std::size_t row) noexcept {
    return numbers.empty() ? 0 : numbers[row];
}

/// Takes the next number of a column whose length depends on the rows.
class NumberCursor {
  public:
    explicit NumberCursor(const std::vector<std::uint64_t>& numbers) noexcept : numbers_(numbers) {}
    std::uint64_t take() {
        if (at_ == numbers_.size()) throw Error("the times of ranges end early");
        return numbers_[at_++];
    }
    bool is_at_end() const noexcept { return at_ == numbers_.size(); }

  private:
    const std::vector<std::uint64_t>& numbers_;
    std::size_t at_ = 0;
};

void split_times(const TraceData& data, RangeNumbers& numbers) {
    std::vector<Open> open(1);  // the first stands for the entire table
    open[0].has_children = true;
    const auto close = [&] {
        const Open range = open.back();
        open.pop_back();
        const std::uint64_t duration = wrap(data.range_duration_ns[range.row]);
        const std::uint64_t end = range.start + duration;
        if (range.has_children) {
            numbers.tails.push_back(end - range.last_end);
        } else {
            numbers.durations.push_back(duration);
        }
        open.back().last_end = end;
        open.back().has_children = true;
    };
    const std::size_t count = data.range_start_ns.size();
    for (std::size_t row = 0; row < count; ++row) {
        while (open.size() > std::size_t{data.range_depth[row]} + 1) close();
        const Open& parent = open.back();
        const std::uint64_t start = wrap(data.range_start_ns[row]);
        if (parent.has_children) {
            numbers.gaps.push_back(start - parent.last_end);
        } else {
            numbers.heads.push_back(start - parent.start);
        }
        numbers.parent[row] = std::uint64_t{data.range_parent[row]} - parent.row;
        open.push_back({static_cast<Row>(row), start, 0, false});
    }
    while (open.size() > 1) close();
}

void join_times(const RangeNumbers& numbers, TraceData& data) {
    NumberCursor gaps(numbers.gaps), heads(numbers.heads), durations(numbers.durations), tails(numbers.tails);
    std::vector<Open> open(1);
    open[0].has_children = true;
    const auto close = [&] {
        const Open range = open.back();
        open.pop_back();
        const std::uint64_t duration =
            range.has_children ? range.last_end + tails.take() - range.start : durations.take();
        data.range_duration_ns[range.row] = static_cast<std::int64_t>(duration);
        open.back().last_end = range.start + duration;
        open.back().has_children = true;
    };
    const std::size_t count = data.range_depth.size();
    for (std::size_t row = 0; row < count; ++row) {
        const std::size_t depth = data.range_depth[row];
        while (open.size() > depth + 1) close();
        if (open.size() <= depth) throw Error("a range's depth exceeds its predecessor's by more than one");
        const Open& outer = open.back();
        const std::uint64_t start =
            outer.has_children ? outer.last_end + gaps.take() : outer.start + heads.take();
        data.range_start_ns[row] = static_cast<std::int64_t>(start);
        const std::uint64_t parent = outer.row + at(numbers.parent, row);
        if (parent != kNoRow && parent >= row) throw Error("a range comes before its parent");
        data.range_parent[row] = static_cast<Row>(parent);
        open.push_back({static_cast<Row>(row), start, 0, false});
    }
    while (open.size() > 1) close();
    if (!gaps.is_at_end() || !heads.is_at_end() || !durations.is_at_end() || !tails.is_at_end())
        throw Error("there are more times than ranges");
}

void check_lengths(const RangeNumbers& numbers, std::size_t count) {
    for (const auto* column :
         {&numbers.depth, &numbers.parent, &numbers.site, &numbers.flags, &numbers.self}) {
        if (!column->empty() && column->size() != count) throw Error("columns of ranges differ in length");
    }
    if (count >= kNoRow) throw Error("there are more ranges than a trace can hold");
}

}  // namespace

std::vector<std::uint64_t> split_depths(const TraceData& data) {
    return {data.range_depth.begin(), data.range_depth.end()};
}

std::vector<std::uint64_t> split_flags(const TraceData& data) {
    return {data.range_flags.begin(), data.range_flags.end()};
}

std::vector<std::uint64_t> split_sites(const TraceData& data) {
    std::vector<std::uint64_t> numbers(data.range_site.size());
    SitePrediction sites;
    std::uint32_t last_depth = 0;
    for (std::size_t row = 0; row < numbers.size(); ++row) {
        const std::uint32_t site = data.range_site[row];
        std::uint32_t& predicted = sites.next(data.range_depth[row] - last_depth);
        numbers[row] = predicted == site ? 0 : std::uint64_t{site} + 1;
        predicted = site;
        sites.saw(site);
        last_depth = data.range_depth[row];
    }
    return numbers;
}

RangeNumbers split_times(const TraceData& data) {
    RangeNumbers numbers;
    numbers.parent.resize(data.range_start_ns.size());
    numbers.gaps.reserve(data.range_start_ns.size());
    numbers.durations.reserve(data.range_start_ns.size());
    split_times(data, numbers);
    return numbers;
}

std::vector<std::uint64_t> split_self(const TraceData& data) {
    const std::vector<std::int64_t> expected = self_times(data);
    std::vector<std::uint64_t> numbers(expected.size());
    for (std::size_t row = 0; row < numbers.size(); ++row)
        numbers[row] = wrap(data.range_self_ns[row]) - wrap(expected[row]);
    return numbers;
}

void join_ranges(RangeNumbers numbers, std::size_t count, TraceData& data) {
    check_lengths(numbers, count);
    for_each_vector<ModelTable::Ranges>(data, [&](auto& column) { column.resize(count); });
    SitePrediction sites;
    std::uint32_t last_depth = 0;
    for (std::size_t row = 0; row < count; ++row) {
        const std::uint64_t flags = at(numbers.flags, row), code = at(numbers.site, row);
        if (at(numbers.depth, row) > count || flags > std::numeric_limits<std::uint16_t>::max() ||
            code > std::numeric_limits<std::uint32_t>::max())
            throw Error("a number of a range is too large");
        const auto depth = static_cast<std::uint32_t>(at(numbers.depth, row));
        data.range_depth[row] = depth;
        data.range_flags[row] = static_cast<std::uint16_t>(flags);
        std::uint32_t& predicted = sites.next(depth - last_depth);
        const std::uint32_t site = code == 0 ? predicted : static_cast<std::uint32_t>(code - 1);
        data.range_site[row] = predicted = site;
        sites.saw(site);
        last_depth = depth;
    }
    for (auto* used : {&numbers.depth, &numbers.flags, &numbers.site})
        std::vector<std::uint64_t>().swap(*used);
    join_times(numbers, data);
    data.range_self_ns = self_times(data);
    for (std::size_t row = 0; row < numbers.self.size(); ++row) {
        data.range_self_ns[row] =
            static_cast<std::int64_t>(wrap(data.range_self_ns[row]) + numbers.self[row]);
    }
}

}  // namespace marey
