// range_filter.cpp: removes ranges from a trace and gives the ranges inside them to the range around them.
#include <marey/range_filter.h>

#include <fnmatch.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "analyze/averages/site_groups.h"
#include "analyze/tree/import_folds.h"
#include "trace/columns.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

bool matches_any(const TraceData& data, const SiteInfo& site, const std::vector<std::string>& patterns) {
    const std::string& name = data.strings[site.name];
    const std::string& file = data.strings[site.file];
    const std::string function(parse_python_name(name).function);
    return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
        const auto matches = [&](const std::string& text) {
            return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
        };
        return matches(name) || matches(function) || (!file.empty() && matches(file));
    });
}

/// Whether each site is excluded.
std::vector<bool> excluded_sites(const TraceData& data, const std::vector<std::string>& patterns) {
    std::vector<bool> excluded(data.sites.size());
    if (patterns.empty()) return excluded;
    for (std::size_t site = 0; site < excluded.size(); ++site)
        excluded[site] = matches_any(data, data.sites[site], patterns);
    return excluded;
}

bool has_any(const std::vector<bool>& flags) {
    return std::find(flags.begin(), flags.end(), true) != flags.end();
}

bool was_running(const TraceData& data, Row row) {
    return (data.range_flags[row] & kBeganBefore) != 0 &&
           data.sites[data.range_site[row]].scope == Scope::PythonFunction;
}

bool has_running(const TraceData& data) {
    for (Row row = 0; row < data.range_site.size(); ++row) {
        if (was_running(data, row)) return true;
    }
    return false;
}

/// Adds the ranges that the filter excludes to the sorted rows `removed`.
void add_excluded(const TraceData& data, const RangeFilter& filter, std::vector<Row>& removed) {
    const std::vector<bool> excluded = excluded_sites(data, filter.exclude);
    std::vector<Row> others;
    for (Row row = 0; row < data.range_site.size(); ++row) {
        if (excluded[data.range_site[row]] || (filter.exclude_running && was_running(data, row)))
            others.push_back(row);
    }
    std::vector<Row> all;
    std::set_union(removed.begin(), removed.end(), others.begin(), others.end(), std::back_inserter(all));
    removed = std::move(all);
}

/// Removes rows from the range table, and moves what refers to the other rows. Imports are usually near the
/// start of a trace, so little is done for the rows after the last removed range.
class RowRemover {
  public:
    /// `removed` is sorted and not empty.
    RowRemover(TraceData& data, const std::vector<Row>& removed)
        : data_(data),
          removed_(removed),
          count_(static_cast<Row>(removed.size())),
          first_(removed.front()),
          end_(static_cast<Row>(data.range_site.size())) {}

    void remove() {
        add_self_times();
        place_rows();
        for_each_vector<ModelTable::Ranges>(data_, [&](auto& column) { move(column); });
        move_tracks();
        move_references();
    }

  private:
    /// The new row of a range. For a removed one: of the nearest range around it that stays.
    Row moved(Row row) const {
        if (row < first_ || row == kNoRow) return row;
        return row >= end_ ? row - count_ : places_[row - first_];
    }
    bool is_removed(Row row) const { return std::binary_search(removed_.begin(), removed_.end(), row); }

    void add_self_times() {
        for (auto row = removed_.rbegin(); row != removed_.rend(); ++row) {
            const Row parent = data_.range_parent[*row];
            if (parent == kNoRow) continue;
            std::int64_t& self = data_.range_self_ns[parent];  // sums wrap around, as in self_times()
            self = static_cast<std::int64_t>(static_cast<std::uint64_t>(self) +
                                             static_cast<std::uint64_t>(data_.range_self_ns[*row]));
        }
    }

    /// Numbers the rows and sets their new parents and depths. Parents come before their children.
    void place_rows() {
        constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
        std::uint32_t outermost = kNone;  // depth of the outermost removed range around the row
        auto next = removed_.begin();
        Row place = first_;
        Row row = first_;
        for (; row < end_; ++row) {
            Row& parent = data_.range_parent[row];
            std::uint32_t& depth = data_.range_depth[row];
            if (depth <= outermost) outermost = kNone;
            if (next == removed_.end() && outermost == kNone) break;
            const std::uint32_t old_depth = depth;
            if (depth != 0) depth = data_.range_depth[parent] + 1;
            parent = moved(parent);
            if (next != removed_.end() && *next == row) {
                ++next;
                outermost = std::min(outermost, old_depth);
                --depth;  // the children take its place; 0 wraps around, and back for the children
                places_.push_back(parent);
            } else {
                places_.push_back(place++);
            }
        }
        for (end_ = row; row < data_.range_parent.size(); ++row)
            data_.range_parent[row] = moved(data_.range_parent[row]);
    }

    template <class T>
    void move(std::vector<T>& column) const {
        auto to = column.begin() + first_;
        for (auto row = removed_.begin(); row != removed_.end(); ++row) {
            const auto end = row + 1 == removed_.end() ? column.end() : column.begin() + *(row + 1);
            to = std::copy(column.begin() + *row + 1, end, to);
        }
        column.erase(to, column.end());
    }

    void move_tracks() {
        auto next = removed_.begin();
        Row gone = 0;  // from the tracks before
        for (TrackInfo& track : data_.tracks) {
            const auto end = std::lower_bound(next, removed_.end(), track.first_range + track.range_count);
            const auto count = static_cast<Row>(end - next);
            track.first_range -= gone;
            track.range_count -= count;
            gone += count;
            next = end;
        }
    }

    void move_references() {
        std::erase_if(data_.range_arguments,
                      [&](const ArgumentSlice& slice) { return is_removed(slice.row); });
        for (ArgumentSlice& slice : data_.range_arguments) slice.row = moved(slice.row);
        std::erase_if(data_.range_details,
                      [&](const RangeDetail& detail) { return is_removed(detail.range); });
        for (RangeDetail& detail : data_.range_details) detail.range = moved(detail.range);
        for (MessageInfo& message : data_.messages) message.range = moved(message.range);
        for (LinkInfo& link : data_.links) {
            link.from = moved(link.from);
            link.to = moved(link.to);
        }
        std::erase_if(data_.links,
                      [](const LinkInfo& link) { return link.from == kNoRow || link.to == kNoRow; });
        std::stable_sort(data_.links.begin(), data_.links.end(),
                         [](const LinkInfo& a, const LinkInfo& b) { return a.from < b.from; });
    }

    TraceData& data_;
    const std::vector<Row>& removed_;
    Row count_;
    Row first_;                ///< the rows before it stay where they are
    Row end_;                  ///< the rows from here on move by count_ places
    std::vector<Row> places_;  ///< new rows of those in between
};

}  // namespace

Trace filter_ranges(Trace trace, const RangeFilter& filter) {
    const bool has_imports = filter.fold_imports && has_import_frames(trace);
    const bool removes_running = filter.exclude_running && has_running(trace.data());
    if (!has_imports && !removes_running && !has_any(excluded_sites(trace.data(), filter.exclude)))
        return trace;
    const std::shared_ptr<TraceData> data = changeable_data(std::move(trace));
    std::vector<Row> removed;
    if (has_imports) removed = fold_imports(*data);
    if (!filter.exclude.empty() || removes_running) add_excluded(*data, filter, removed);
    if (!removed.empty()) RowRemover(*data, removed).remove();
    return Trace(data);
}

}  // namespace marey
