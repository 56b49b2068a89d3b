// device_records.cpp: records of device logs, sorted by the threads that made the calls.
#include "collect/device_records.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "collect/log_records.h"
#include "collect/replayed_log.h"

namespace marey {

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

}  // namespace marey
