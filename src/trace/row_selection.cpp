// row_selection.cpp: removes ranges, and selects the rows of some processes.
#include "trace/row_selection.h"

#include <algorithm>
#include <limits>
#include <memory>

#include <marey/merge.h>

namespace marey {
namespace {

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
        for (Row& range : data_.sample_range) range = moved(range);
        for (LinkInfo& link : data_.links) {
            link.from = moved(link.from);
            link.to = moved(link.to);
        }
        std::erase_if(data_.links,
                      [](const LinkInfo& link) { return link.from == kNoRow || link.to == kNoRow; });
        std::ranges::stable_sort(data_.links, {}, &LinkInfo::from);
    }

    TraceData& data_;
    const std::vector<Row>& removed_;
    Row count_;
    Row first_;                ///< the rows before it stay where they are
    Row end_;                  ///< the rows from here on move by count_ places
    std::vector<Row> places_;  ///< new rows of those in between
};

}  // namespace

void remove_ranges(TraceData& data, const std::vector<Row>& rows) {
    if (!rows.empty()) RowRemover(data, rows).remove();
}

Trace select_processes(const Trace& trace, const std::vector<Row>& wanted) {
    const std::shared_ptr<TraceData> data = changeable_data(trace);
    RowMask processes(data->processes.size());
    for (const Row row : wanted) processes.at(row) = true;
    const RowMask threads =
        rows_where(data->threads, [&](const ThreadInfo& row) { return processes[row.process]; });
    const auto of_thread = [&](Row thread) { return threads[thread]; };
    const auto has_thread = [&](const auto& row) { return threads[row.thread]; };
    const auto has_process = [&](const auto& row) { return processes[row.process]; };
    RowMask ranges(data->range_start_ns.size());
    const RowMask tracks = rows_where(data->tracks, has_thread);
    for (std::size_t i = 0; i < tracks.size(); ++i) {
        const TrackInfo& track = data->tracks[i];
        for (Row row = 0; row < track.range_count; ++row) ranges[track.first_range + row] = tracks[i];
    }
    using enum ModelTable;
    keep_instants(*data, rows_where(data->instant_thread, of_thread));
    keep_rows<Memory>(*data, rows_where(data->memory_thread, of_thread));
    keep_rows<Samples>(*data, rows_where(data->sample_thread, of_thread));
    keep_rows<Sampling>(*data, rows_where(data->sampling, has_process));
    keep_rows<Counters>(*data, rows_where(data->counter_thread, of_thread));
    keep_rows<Messages>(*data, rows_where(data->messages, has_thread));
    keep_rows<Tasks>(*data, rows_where(data->tasks, has_process));
    keep_rows<ClockExchanges>(*data, rows_where(data->clock_exchanges, has_process));
    keep_rows<RangeDetails>(
        *data, rows_where(data->range_details, [&](const RangeDetail& row) { return ranges[row.range]; }));
    keep_rows<RangeArguments>(
        *data, rows_where(data->range_arguments, [&](const ArgumentSlice& row) { return ranges[row.row]; }));
    keep_rows<Links>(*data, rows_where(data->links, [&](const LinkInfo& row) {
        return ranges[row.from] && ranges[row.to];
    }));
    keep_rows<Processes>(*data, processes);
    keep_rows<Threads>(*data, threads);
    keep_rows<Ranges>(*data, ranges);
    renumber_rows(*data, Cells::Process, processes);
    renumber_rows(*data, Cells::Thread, threads);
    renumber_rows(*data, Cells::Range, ranges);
    keep_tracks(*data, tracks);
    return Trace(data);
}

}  // namespace marey
