// device_records.cpp: records of device logs, sorted by the threads that made the calls; the
// calls are merged with the ranges of their threads.
#include "collect/device_records.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include "collect/log_records.h"
#include "collect/replayed_log.h"

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

using namespace detail;

namespace {

/// The others describe the host.
bool is_by_device_clock(DeviceWorkKind kind) noexcept {
    return kind == DeviceWorkKind::Kernel || kind == DeviceWorkKind::Copy || kind == DeviceWorkKind::Set ||
           kind == DeviceWorkKind::Migration;
}

bool is_known(DeviceWorkKind kind) noexcept {
    return device_activity(kind) != 0;
}

std::size_t fixed_bytes(DeviceWorkKind kind) noexcept {
    return kind == DeviceWorkKind::Kernel ? sizeof(DeviceKernelPayload) : sizeof(DeviceOtherPayload);
}

/// Which thread of the log had a system thread id at a time: ids are reused.
class ThreadNumbers {
  public:
    explicit ThreadNumbers(const ReplayedLog& state) {
        for (const ThreadReplay& replay : state.replays) last_id_ = std::max(last_id_, replay.thread);
        for (const auto& [id, thread] : state.journal.threads) {
            if (thread.os_tid != 0) threads_[thread.os_tid].push_back({thread.birth, thread.death, id});
            last_id_ = std::max(last_id_, id);
        }
        const auto is_before = [](const Span& a, const Span& b) {
            return std::tie(a.birth, a.death, a.id) < std::tie(b.birth, b.death, b.id);
        };
        for (auto& [number, spans] : threads_) std::sort(spans.begin(), spans.end(), is_before);
    }

    /// A thread is known from its first record on, so a thread that appears later may be meant; a thread that
    /// is not known at all gets a new id.
    std::uint32_t find(std::int64_t os_tid, std::uint64_t ticks, Journal& journal) {
        std::vector<Span>& spans = threads_[os_tid];
        for (const Span& span : spans) {
            if (span.death == 0 || ticks <= span.death) return span.id;
        }
        spans.push_back({spans.empty() ? 0 : spans.back().death, 0, ++last_id_});
        journal.threads[last_id_].os_tid = os_tid;
        return last_id_;
    }

  private:
    struct Span {
        std::uint64_t birth;
        std::uint64_t death;  ///< 0: it is alive
        std::uint32_t id;
    };
    std::map<std::int64_t, std::vector<Span>> threads_;
    std::uint32_t last_id_ = 0;
};

class DeviceReader {
  public:
    explicit DeviceReader(ReplayedLog& state) : state_(state), numbers_(state) {}

    void read() {
        for_each_piece([this](const LogPiece& piece) { read_clocks(piece); });
        state_.device_clocks.sort();
        for_each_piece([this](const LogPiece& piece) { read(piece); });
        hand_over_calls();
    }

  private:
    void for_each_piece(auto visit) {
        for (const ThreadReplay& replay : state_.replays) {
            log_ = replay.thread;
            for (const LogPiece* piece : replay.pieces) {
                if (piece->has_device) visit(*piece);
            }
        }
    }

    void read_clocks(const LogPiece& piece) {
        for (std::uint32_t i = 0; i < piece.long_count; ++i) {
            const std::byte* const record = piece.span->data + piece.longs[i];
            const auto head = read_as<LongRecord>(record);
            if (head.kind != static_cast<std::uint8_t>(RecordKind::DeviceClock) ||
                head.payload_bytes < sizeof(DevicePlace))
                continue;
            state_.device_clocks.add(head, read_as<DevicePlace>(payload_of(record, head).data()));
        }
    }

    void read(const LogPiece& piece) {
        for (std::uint32_t i = 0; i < piece.long_count; ++i) {
            const std::byte* const record = piece.span->data + piece.longs[i];
            const auto head = read_as<LongRecord>(record);
            if (head.kind == static_cast<std::uint8_t>(RecordKind::DeviceWork)) {
                read_work(record, head);
            } else if (head.kind == static_cast<std::uint8_t>(RecordKind::DeviceCall)) {
                read_call(record, head);
            }
        }
    }

    void read_work(const std::byte* record, const LongRecord& head) {
        const auto kind = static_cast<DeviceWorkKind>(head.flags);
        const std::span<const std::byte> payload = payload_of(record, head);
        if (!is_known(kind)) {
            state_.unknown_records +=
                state_.filter.intersects(head.time, std::max(head.time, head.word2)) ? 1 : 0;
            return;
        }
        if (payload.size() < fixed_bytes(kind)) {
            ++state_.damaged_device;
            return;
        }
        const auto place = read_as<DevicePlace>(payload.data());
        const Device device{static_cast<DeviceType>(place.device_type), place.device};
        std::uint64_t start = head.time;
        std::uint64_t end = std::max(head.time, head.word2);
        if (is_by_device_clock(kind)) {
            start = state_.device_clocks.correct(device, start);
            end = std::max(start, state_.device_clocks.correct(device, end));
        }
        if (!state_.filter.intersects(start, end)) return;
        const bool is_wanted = place.device_type < 32 &&
                               (state_.filter.device_types >> place.device_type & 1) != 0 &&
                               (state_.filter.device_activities & device_activity(kind)) != 0;
        if (!is_wanted) return;
        DeviceWorkRow row{.start_ns = state_.fit->to_ns(start),
                          .runs_on = end > state_.filter.stop_ticks && kind != DeviceWorkKind::Timed};
        row.end_ns = state_.fit->to_ns(row.runs_on ? state_.filter.stop_ticks : end);
        row.log = log_;
        row.site = state_.filter.site_rows.row(head.site);
        row.correlation = head.depth;
        row.stream = place.stream == ~0u ? -1 : std::int64_t{place.stream};
        row.device = device;
        row.kind = kind;
        row.context = place.context;
        row.payload = payload;
        state_.device_work.push_back(row);
    }

    void read_call(const std::byte* record, const LongRecord& head) {
        std::uint64_t end = head.time + static_cast<std::uint32_t>(head.word2);
        std::int32_t result = 0;
        if ((head.flags & kRecordLongCall) != 0) {
            if (head.payload_bytes < sizeof(DeviceCallPayload)) {
                ++state_.damaged_device;
                return;
            }
            const auto payload = read_as<DeviceCallPayload>(payload_of(record, head).data());
            end = payload.end;
            result = payload.result;
        }
        end = std::max(end, head.time);
        if (!state_.filter.intersects(head.time, end) || !includes_call(head)) return;
        DeviceCallRow call{.start_ns = state_.fit->to_ns(head.time),
                           .end_ns = state_.fit->to_ns(std::min(end, state_.filter.stop_ticks)),
                           .site = state_.filter.site_rows.row(head.site),
                           .correlation = head.depth,
                           .result = result,
                           .log = log_,
                           .runs_on = end > state_.filter.stop_ticks};
        const auto os_tid = static_cast<std::int64_t>(head.word2 >> 32);
        calls_[numbers_.find(os_tid, head.time, state_.journal)].push_back(call);
    }

    bool includes_call(const LongRecord& head) const {
        const TraceData& data = *state_.data;
        const unsigned type = head.flags & kCallDeviceMask;
        if (state_.filter.device_types == 0 || (type != 0 && (state_.filter.device_types >> type & 1) == 0))
            return false;
        const std::uint32_t row = state_.filter.site_rows.row(head.site);
        const bool is_driver =
            row < data.sites.size() && data.strings[data.sites[row].category] == "cuda_driver";
        return (state_.filter.device_activities & (is_driver ? kDeviceDriverCalls : kDeviceCalls)) != 0;
    }

    void hand_over_calls() {
        for (auto& [thread, calls] : calls_) {
            // A session of one thread and its tasks: calls count where its ranges are (insert_device_calls).
            const auto is_before = [](const DeviceCallRow& one, const DeviceCallRow& other) {
                return one.start_ns != other.start_ns ? one.start_ns < other.start_ns
                                                      : one.end_ns > other.end_ns;
            };
            if (!std::is_sorted(calls.begin(), calls.end(), is_before))
                std::stable_sort(calls.begin(), calls.end(), is_before);
            const auto place = std::lower_bound(
                state_.replays.begin(), state_.replays.end(), thread,
                [](const ThreadReplay& replay, std::uint32_t id) { return replay.thread < id; });
            if (place != state_.replays.end() && place->thread == thread) {
                place->device_calls = std::move(calls);
                continue;
            }
            ThreadReplay replay;
            replay.thread = thread;
            replay.device_calls = std::move(calls);
            state_.replays.insert(place, std::move(replay));
        }
    }

    ReplayedLog& state_;
    ThreadNumbers numbers_;
    std::uint32_t log_ = 0;                                      ///< the log being read
    std::map<std::uint32_t, std::vector<DeviceCallRow>> calls_;  ///< by thread
};

}  // namespace

std::span<const std::byte> values_of(const DeviceWorkRow& work) noexcept {
    return work.payload.subspan(fixed_bytes(work.kind));
}

void read_device_records(ReplayedLog& state) {
    const bool has_device = std::any_of(state.scans.begin(), state.scans.end(), [](const SpanScan& scan) {
        return std::any_of(scan.pieces.begin(), scan.pieces.end(),
                           [](const LogPiece& piece) { return piece.has_device; });
    });
    if (has_device) DeviceReader(state).read();
}

void insert_device_calls(ThreadReplay& replay, const SessionFilter& filter, const RowSlice& slice) {
    CallInserter(replay, filter, slice).run();
}

}  // namespace marey
