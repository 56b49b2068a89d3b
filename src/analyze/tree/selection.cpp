// selection.cpp: copies the selected rows. On a track, the ranges that began earlier and are still open are
// the ancestors of one row; all others are contiguous.
#include <marey/selection.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "trace/columns.h"
#include "trace/row_selection.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

/// The selected rows of one track: `open` began before the selection, and `begin` to `end` in it.
struct SelectedRows {
    std::vector<Row> open;  ///< outermost first
    Row begin = 0, end = 0;
    Row first_new = 0;  ///< number of the first of them in the new table
    Row count() const noexcept { return static_cast<Row>(open.size()) + (end - begin); }
};

class SelectionCopy {
  public:
    SelectionCopy(const TraceData& from, const Selection& selection)
        : from_(from), ranges_(from.ranges()), selection_(selection), to_(std::make_shared<TraceData>()) {}

    Trace run() {
        for (Row track = 0; track < from_.tracks.size(); ++track) select_track(track);
        copy_tables();
        place_tracks();
        copy_ranges();
        place_rows();
        to_->range_self_ns = self_times(*to_);
        return Trace(std::shared_ptr<const TraceData>(std::move(to_)));
    }

  private:
    bool is_selected(Row track) const {
        return selection_.tracks.empty() ||
               std::binary_search(selection_.tracks.begin(), selection_.tracks.end(), track);
    }
    std::int64_t end_of(Row row) const noexcept {
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(ranges_.start_ns[row]) +
                                         static_cast<std::uint64_t>(ranges_.duration_ns[row]));
    }

    /// Finds the selected rows of a track. Starts ascend along a track.
    void select_track(Row track) {
        const TrackInfo& info = from_.tracks[track];
        SelectedRows rows;
        if (is_selected(track)) {
            const auto starts = ranges_.start_ns.begin();
            const auto first = starts + info.first_range;
            const auto last = first + info.range_count;
            const auto row_of = [&](auto at) { return static_cast<Row>(at - starts); };
            rows.begin = row_of(std::lower_bound(first, last, selection_.begin_ns));
            rows.end = std::max(rows.begin, row_of(std::lower_bound(first, last, selection_.end_ns)));
            if (rows.begin > info.first_range) rows.open = open_at_begin(rows.begin - 1);
            is_selected_thread_.resize(from_.threads.size());
            is_selected_thread_[info.thread] = true;
        }
        rows.first_new = count_;
        count_ += rows.count();
        selected_.push_back(std::move(rows));
    }

    /// The ranges that are open when the selection begins: `last`, the last one to start before, or those
    /// around it.
    std::vector<Row> open_at_begin(Row last) const {
        std::vector<Row> open;
        for (Row row = last;; row = ranges_.parent[row]) {
            if (end_of(row) > selection_.begin_ns) open.push_back(row);
            if (ranges_.depth[row] == 0) break;
        }
        std::ranges::reverse(open);
        return open;
    }

    template <class T>
    void copy(std::span<const T> from, std::vector<T>& to) const {
        to.reserve(count_);
        for (const SelectedRows& rows : selected_) {
            for (const Row row : rows.open) to.push_back(from[row]);
            to.insert(to.end(), from.begin() + rows.begin, from.begin() + rows.end);
        }
    }
    void copy_ranges() {
        static_assert(sizeof(RangeColumns) == 7 * sizeof(std::span<const Row>),
                      "copy the new column as well");
        copy(ranges_.start_ns, to_->range_start_ns);
        copy(ranges_.duration_ns, to_->range_duration_ns);
        copy(ranges_.site, to_->range_site);
        copy(ranges_.parent, to_->range_parent);
        copy(ranges_.depth, to_->range_depth);
        copy(ranges_.flags, to_->range_flags);
    }

    /// The new number of a row of this track; kNoRow if it is not selected.
    static Row moved(const SelectedRows& rows, Row row) {
        if (row >= rows.begin && row < rows.end)
            return rows.first_new + static_cast<Row>(rows.open.size()) + (row - rows.begin);
        const auto open = std::ranges::lower_bound(rows.open, row);
        if (open == rows.open.end() || *open != row) return kNoRow;
        return rows.first_new + static_cast<Row>(open - rows.open.begin());
    }
    Row moved(Row row) const {
        const auto after = std::ranges::upper_bound(from_.tracks, row, {}, &TrackInfo::first_range);
        // Tracks without ranges begin where the next one does; the last that begins at or before `row` holds
        // it.
        return after == from_.tracks.begin()
                   ? kNoRow
                   : moved(selected_[static_cast<std::size_t>(after - from_.tracks.begin()) - 1], row);
    }

    /// Sets parents and depths: of the nearest selected range around each row. Parents come before children
    /// on a track; only the outermost ranges of overlap tracks have parents elsewhere.
    void place_rows() {
        for (const SelectedRows& rows : selected_) {
            for (Row row = rows.first_new; row < rows.first_new + rows.count(); ++row) place_row(rows, row);
        }
    }
    void place_row(const SelectedRows& rows, Row row) {
        Row& parent = to_->range_parent[row];
        std::uint32_t& depth = to_->range_depth[row];
        if (depth == 0) {
            if (parent != kNoRow) parent = moved(parent);
            return;
        }
        Row around = parent;
        while (moved(rows, around) == kNoRow && ranges_.depth[around] > 0) around = ranges_.parent[around];
        parent = moved(rows, around);
        depth = parent == kNoRow ? 0 : to_->range_depth[parent] + 1;
    }

    bool is_selected(Row thread, std::int64_t time_ns) const {
        return time_ns >= selection_.begin_ns && time_ns < selection_.end_ns &&
               (selection_.tracks.empty() ||
                (thread < is_selected_thread_.size() && is_selected_thread_[thread]));
    }
    RowMask rows_in_time(const std::vector<Row>& threads, const std::vector<std::int64_t>& times) const {
        RowMask mask(times.size());
        for (std::size_t i = 0; i < times.size(); ++i) mask[i] = is_selected(threads[i], times[i]);
        return mask;
    }

    /// The rows of a table to copy; nothing: all.
    std::optional<RowMask> selected_rows(ModelTable table) const {
        using enum ModelTable;
        switch (table) {
            case Instants:
                return rows_in_time(from_.instant_thread, from_.instant_time_ns);
            case Counters:
                return rows_in_time(from_.counter_thread, from_.counter_time_ns);
            case Memory:
                return rows_in_time(from_.memory_thread, from_.memory_time_ns);
            case Samples:
                return rows_in_time(from_.sample_thread, from_.sample_time_ns);
            case Messages:
                return rows_where(from_.messages, [&](const MessageInfo& message) {
                    return is_selected(message.thread, message.time_ns);
                });
            case InstantArguments:
                return rows_where(from_.instant_arguments, [&](const ArgumentSlice& slice) {
                    return is_selected(from_.instant_thread[slice.row], from_.instant_time_ns[slice.row]);
                });
            case RangeArguments:
                return rows_where(from_.range_arguments,
                                  [&](const ArgumentSlice& slice) { return moved(slice.row) != kNoRow; });
            case RangeDetails:
                return rows_where(from_.range_details,
                                  [&](const RangeDetail& detail) { return moved(detail.range) != kNoRow; });
            case Links:
                return rows_where(from_.links, [&](const LinkInfo& link) {
                    return moved(link.from) != kNoRow && moved(link.to) != kNoRow;
                });
            default:
                return std::nullopt;
        }
    }

    /// Every table but the ranges. References to ranges and instants get the new numbers.
    void copy_tables() {
        visit_columns([&](const TableInfo& table, const auto&... columns) {
            if (table.id == ModelTable::Ranges) return;
            const std::optional<RowMask> mask = selected_rows(table.id);
            const void* last = nullptr;
            const auto copy_vector = [&]<class Rows>(Rows TraceData::*rows) {
                const Rows& from = from_.*rows;
                if (std::exchange(last, &from) == &from) return;  // another column of the same vector
                if constexpr (Vector<Rows>) {
                    if (mask) {
                        for (std::size_t i = 0; i < from.size(); ++i) {
                            if ((*mask)[i]) (to_.get()->*rows).push_back(from[i]);
                        }
                        return;
                    }
                }
                to_.get()->*rows = from;
            };
            (copy_vector(columns.rows), ...);
        });
        for_each_reference(*to_, Cells::Range, [&](Row& row) {
            if (row != kNoRow) row = moved(row);
        });
        renumber_rows(*to_, Cells::Instant, *selected_rows(ModelTable::Instants));
        to_->window.start_ns = selection_.begin_ns;
        to_->window.end_ns = selection_.end_ns;
    }
    void place_tracks() {
        for (Row track = 0; track < selected_.size(); ++track) {
            to_->tracks[track].first_range = selected_[track].first_new;
            to_->tracks[track].range_count = selected_[track].count();
        }
    }

    const TraceData& from_;
    const RangeColumns ranges_;
    const Selection& selection_;
    std::shared_ptr<TraceData> to_;
    std::vector<SelectedRows> selected_;    ///< per track
    std::vector<bool> is_selected_thread_;  ///< per thread; empty if no track is selected
    Row count_ = 0;
};

}  // namespace

bool selects_everything(const Trace& trace, const Selection& selection) {
    return selection.begin_ns <= trace.window().start_ns && selection.end_ns >= trace.window().end_ns &&
           (selection.tracks.empty() || selection.tracks.size() == trace.tracks().size());
}

Trace select_ranges(const Trace& trace, const Selection& selection) {
    return SelectionCopy(trace.data(), selection).run();
}

}  // namespace marey
