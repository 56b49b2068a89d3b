// device_calls.cpp: merges two sequences that are both in time order.
#include "collect/device_calls.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace marey {
namespace {

constexpr std::uint32_t kNone = ~0u;

/// Where a call goes.
struct Place {
    std::size_t call;          ///< index in device_calls
    std::uint32_t outer_call;  ///< index in the places of the call around it; kNone: none
    std::size_t rows_before;   ///< rows before it
    std::uint32_t parent;      ///< row around it; kNone: none
    std::uint32_t depth;
    std::int64_t true_end;   ///< before it was cut
    std::int64_t inner_end;  ///< of the last call in it
};

class CallInserter {
  public:
    CallInserter(ThreadReplay& replay, const SessionFilter& filter, const RowSlice& slice)
        : replay_(replay), filter_(filter), slice_(slice), first_(slice.capacity - replay.rows) {}

    void run() {
        find_places();
        drop_uncounted();
        move_numbers(replay_.payloads);
        move_numbers(replay_.sequenced);
        move_numbers(replay_.parts);
        write_rows();
    }

  private:
    std::int64_t start_of(std::size_t row) const { return slice_.start_ns[first_ + row]; }
    std::int64_t end_of(std::size_t row) const { return start_of(row) + slice_.duration_ns[first_ + row]; }

    void find_places() {
        std::vector<DeviceCallRow>& calls = replay_.device_calls;
        places_.reserve(calls.size());
        std::vector<std::uint32_t> open_calls;  // indices into places_
        for (std::size_t i = 0; i < calls.size(); ++i) {
            DeviceCallRow& call = calls[i];
            call.end_ns = std::max(call.end_ns, call.start_ns);
            while (!open_calls.empty() && call.end_ns > places_[open_calls.back()].true_end)
                open_calls.pop_back();
            Place place{i, kNone, 0, kNone, 0, call.end_ns, 0};
            if (open_calls.empty()) {
                place_outermost(call, place);
            } else {
                place.outer_call = open_calls.back();
                place_inside(call, place);
            }
            place.inner_end = call.start_ns;
            open_calls.push_back(static_cast<std::uint32_t>(places_.size()));
            places_.push_back(place);
        }
    }

    // Rows are in order of their starts, so those that start before the middle of the call come before it.
    void place_outermost(DeviceCallRow& call, Place& place) {
        const std::int64_t from = std::max(call.start_ns, filter_.start_ns);
        const std::int64_t middle = from + std::max<std::int64_t>(call.end_ns - from, 0) / 2;
        for (; next_ < replay_.rows && start_of(next_) <= middle; ++next_) {
            const std::uint32_t depth = slice_.depth[first_ + next_];
            open_.resize(std::min<std::size_t>(open_.size(), depth));
            open_.push_back(static_cast<std::uint32_t>(next_));
        }
        std::int64_t least = last_end_;
        std::size_t around = open_.size();
        for (; around != 0 && end_of(open_[around - 1]) < middle; --around)
            least = std::max(least, end_of(open_[around - 1]));
        std::int64_t most = std::numeric_limits<std::int64_t>::max();
        if (around != 0) {
            place.parent = open_[around - 1];
            place.depth = slice_.depth[first_ + place.parent] + 1;
            least = std::max(least, start_of(place.parent));
            most = end_of(place.parent);
        }
        if (next_ < replay_.rows) most = std::min(most, start_of(next_));
        call.end_ns = std::min(call.end_ns, most);
        call.start_ns = std::min(std::max(call.start_ns, least), call.end_ns);
        last_end_ = call.end_ns;
        place.rows_before = next_;
    }

    // If the call around it was cut, it is too.
    void place_inside(DeviceCallRow& call, Place& place) {
        Place& outer = places_[place.outer_call];
        const std::int64_t most = replay_.device_calls[outer.call].end_ns;
        call.start_ns = std::clamp(call.start_ns, outer.inner_end, most);
        call.end_ns = std::clamp(call.end_ns, call.start_ns, most);
        outer.inner_end = call.end_ns;
        place.rows_before = outer.rows_before;
        place.parent = outer.parent;
        place.depth = outer.depth + 1;
    }

    void drop_uncounted() {
        if (!filter_.filters_contexts || replay_.thread == filter_.thread) return;
        std::vector<DeviceCallRow> kept;
        std::vector<Place> places;
        std::vector<std::uint32_t> moved(places_.size(), kNone);
        for (std::size_t i = 0; i < places_.size(); ++i) {
            Place place = places_[i];
            if (place.parent == kNone) continue;
            moved[i] = static_cast<std::uint32_t>(places.size());
            if (place.outer_call != kNone) place.outer_call = moved[place.outer_call];
            kept.push_back(replay_.device_calls[place.call]);
            place.call = kept.size() - 1;
            places.push_back(place);
        }
        replay_.device_calls = std::move(kept);
        places_ = std::move(places);
    }

    template <class Numbered>
    void move_numbers(std::vector<Numbered>& entries) const {
        std::size_t before = 0;
        for (Numbered& entry : entries) {
            while (before < places_.size() && places_[before].rows_before <= entry.row) ++before;
            entry.row += static_cast<std::uint32_t>(before);
        }
    }

    void copy_row(std::size_t from, std::size_t to) {
        slice_.start_ns[to] = slice_.start_ns[from];
        slice_.duration_ns[to] = slice_.duration_ns[from];
        slice_.self_ns[to] = slice_.self_ns[from];
        slice_.site[to] = slice_.site[from];
        slice_.depth[to] = slice_.depth[from];
        slice_.flags[to] = slice_.flags[from];
    }

    std::int64_t in_window(const DeviceCallRow& call) const {
        return std::max<std::int64_t>(
            std::min(call.end_ns, filter_.end_ns) - std::max(call.start_ns, filter_.start_ns), 0);
    }

    // Writing never overtakes reading: there are as many free rows as calls to come.
    void write_rows() {
        std::vector<std::uint32_t> row_of(replay_.rows);  // new places of rows, from first_ - places
        const std::size_t out = first_ - places_.size();
        std::size_t row = 0;
        std::size_t written = 0;
        for (const Place& place : places_) {
            for (; row < place.rows_before; ++row) {
                row_of[row] = static_cast<std::uint32_t>(written);
                copy_row(first_ + row, out + written++);
            }
            write_call(place, out, static_cast<std::uint32_t>(written), row_of);
            ++written;
        }
        replay_.rows += places_.size();  // the other rows are already in place
    }

    void write_call(const Place& place, std::size_t out, std::uint32_t number,
                    const std::vector<std::uint32_t>& row_of) {
        DeviceCallRow& call = replay_.device_calls[place.call];
        std::int64_t parent_row = -1;
        if (place.outer_call != kNone) {
            parent_row = replay_.device_calls[places_[place.outer_call].call].row;
        } else if (place.parent != kNone) {
            parent_row = row_of[place.parent];
        }
        call.row = number;
        const std::size_t at = out + number;
        slice_.start_ns[at] = call.start_ns;
        slice_.duration_ns[at] = call.end_ns - call.start_ns;
        slice_.self_ns[at] = in_window(call);
        slice_.site[at] = call.site;
        slice_.depth[at] = place.depth;
        slice_.flags[at] =
            static_cast<std::uint16_t>((call.start_ns < filter_.start_ns ? kBeganBefore : 0) |
                                       (call.runs_on && call.end_ns == filter_.end_ns ? kUnfinished : 0));
        if (parent_row >= 0) slice_.self_ns[out + static_cast<std::size_t>(parent_row)] -= in_window(call);
    }

    ThreadReplay& replay_;
    const SessionFilter& filter_;
    const RowSlice& slice_;
    const std::size_t first_;          ///< of the rows in the slice
    std::size_t next_ = 0;             ///< first row that starts after the current call
    std::vector<std::uint32_t> open_;  ///< rows that may be around it, outermost first
    std::int64_t last_end_ = std::numeric_limits<std::int64_t>::min();
    std::vector<Place> places_;
};

}  // namespace

void insert_device_calls(ThreadReplay& replay, const SessionFilter& filter, const RowSlice& slice) {
    CallInserter(replay, filter, slice).run();
}

}  // namespace marey
