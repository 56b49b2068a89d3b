// saved_trace.cpp: a trace written back as records, whose ticks are its nanoseconds.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include <kymo/error.h>

#include "collect/arguments.h"
#include "collect/compact.h"
#include "collect/journal.h"
#include "collect/log_records.h"
#include "collect/remote_events.h"
#include "trace/trace_data.h"

namespace kymo {

using namespace detail;

namespace {

using Bytes = std::vector<std::byte>;

template <class T>
void append(Bytes& bytes, const T& value) {
    const auto* const first = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), first, first + sizeof value);
}

void pad(Bytes& bytes, std::size_t unit) {
    bytes.resize((bytes.size() + unit - 1) / unit * unit);
}

class TraceWriter {
  public:
    explicit TraceWriter(const Trace& trace) : trace_(trace), data_(trace.data()) {}

    RawLog write() {
        find_base();
        write_facts();
        write_names();
        write_journal();
        write_logs();
        return std::move(log_);
    }

  private:
    // Ticks count from just before the earliest time there is, so that none is 0 or negative.
    void find_base() {
        base_ = data_.window.start_ns;
        for (const std::int64_t start : data_.range_start_ns) base_ = std::min(base_, start);
        for (const std::int64_t time : data_.instant_time_ns) base_ = std::min(base_, time);
        for (const std::int64_t time : data_.counter_time_ns) base_ = std::min(base_, time);
        for (const std::int64_t time : data_.memory_time_ns) base_ = std::min(base_, time);
        for (const ThreadInfo& thread : data_.threads) {
            if (thread.birth_ns != 0) base_ = std::min(base_, thread.birth_ns);
            if (thread.death_ns != 0) base_ = std::min(base_, thread.death_ns);
        }
    }
    std::uint64_t ticks(std::int64_t ns) const {
        return static_cast<std::uint64_t>(ns) - static_cast<std::uint64_t>(base_) + 1;
    }
    /// Behind the window's end: what ends there is unfinished when read back.
    std::uint64_t never() const { return ticks(data_.window.end_ns) + 1; }

    void write_facts() {
        log_.clock_source = ClockSource::Injected;
        log_.ticks_per_second = 1'000'000'000;
        log_.finished = data_.window.finished;
        log_.end_ticks = ticks(data_.window.end_ns);
        for (const ProblemInfo& problem : data_.problems) {
            log_.problems.push_back({problem.code, problem.text, problem.count});
        }
        if (data_.processes.empty()) return;
        const ProcessInfo& process = data_.processes[0];
        log_.pid = process.pid;
        log_.node = process.node;
        log_.executable = trace_.string(process.name);
        log_.host = trace_.string(process.host);
        log_.command_line = trace_.string(process.command_line);
    }

    void write_names() {
        for (std::size_t id = 1; id < data_.strings.size(); ++id) {
            const std::string& text = data_.strings[id];
            StringRecord record{};
            record.head = {static_cast<std::uint16_t>(NameKind::String), 0,
                           static_cast<std::uint32_t>(sizeof record + round_up_8(text.size()))};
            record.id = static_cast<std::uint32_t>(id);
            record.length = static_cast<std::uint32_t>(text.size());
            append(log_.names, record);
            const auto bytes = std::as_bytes(std::span(text));
            log_.names.insert(log_.names.end(), bytes.begin(), bytes.end());
            pad(log_.names, 8);
        }
        for (std::size_t row = 0; row < data_.sites.size(); ++row) {
            const SiteInfo& site = data_.sites[row];
            SiteRecord record{};
            record.head = {static_cast<std::uint16_t>(NameKind::Site), 0, sizeof record};
            record.id = static_cast<std::uint32_t>(row + 1);
            record.name = site.name;
            record.file = site.file;
            record.line = site.line;
            record.scope = static_cast<std::uint32_t>(site.scope);
            append(log_.names, record);
        }
    }

    template <class Record>
    void put(JournalKind kind, Record record) {
        record.head = {static_cast<std::uint16_t>(kind), 0, sizeof record};
        append(log_.journal, record);
    }

    void write_journal() {
        ClockRecord clock{};
        const std::int64_t offset = data_.processes.empty() ? 0 : data_.processes[0].realtime_offset_ns;
        clock.pair = {
            1, base_,
            static_cast<std::int64_t>(static_cast<std::uint64_t>(base_) + static_cast<std::uint64_t>(offset)),
            0};
        put(JournalKind::Clock, clock);
        for (const ThreadInfo& thread : data_.threads) {
            if (thread.process == 0) write_thread(thread);
        }
        write_session();
        if (data_.processes.size() > 1) write_remote();
        for (const CostInfo& cost : data_.costs) {
            CostRecord record{};
            if (!cost_kind(cost.kind, record.event)) continue;
            record.picoseconds =
                static_cast<std::uint64_t>(std::llround(std::clamp(cost.ns, 0.0, 1e12) * 1000));
            put(JournalKind::Cost, record);
        }
        SavedFactsRecord saved{};
        saved.ticks_per_second = data_.clock.ticks_per_second;
        saved.max_error_ns = data_.clock.max_error_ns;
        saved.log_bytes = data_.window.log_bytes;
        saved.pairs = data_.clock.pairs;
        saved.extrapolated = data_.clock.extrapolated;
        saved.ceiling_reached = data_.window.ceiling_reached;
        const std::size_t length = std::min(data_.clock.source.size(), sizeof saved.clock_source);
        std::memcpy(saved.clock_source, data_.clock.source.data(), length);
        put(static_cast<JournalKind>(kSavedFactsKind), saved);
    }

    // What came from other processes goes back into a message; its times are those of this trace.
    void write_remote() {
        const std::string message = pack_events(remote_events_of(trace_));
        if (message.size() > std::numeric_limits<std::uint32_t>::max() / 2)
            throw Error("the trace has more events of other processes than a capture holds");
        RemoteEventsRecord record{};
        record.session = data_.window.session_id;
        record.node = -1;
        record.message_bytes = static_cast<std::uint32_t>(message.size());
        put_with_tail(static_cast<std::uint16_t>(JournalKind::RemoteEvents), kRemoteClockIsOurs, record,
                      std::as_bytes(std::span(message)));
        std::vector<Row> rows;
        for (const LinkInfo& link : data_.links) {
            if (link.kind == LinkKind::Remote) rows.insert(rows.end(), {link.from, link.to});
        }
        SavedLinksRecord links{};
        links.count = rows.size() / 2;
        if (rows.size() > std::numeric_limits<std::uint32_t>::max() / 8)
            throw Error("the trace has more links than a capture holds");
        put_with_tail(kSavedLinksKind, 0, links, std::as_bytes(std::span(rows)));
    }

    template <class Record>
    void put_with_tail(std::uint16_t kind, std::uint16_t reserved, Record record,
                       std::span<const std::byte> tail) {
        record.head = {kind, reserved, static_cast<std::uint32_t>(sizeof record + round_up_8(tail.size()))};
        append(log_.journal, record);
        log_.journal.insert(log_.journal.end(), tail.begin(), tail.end());
        pad(log_.journal, 8);
    }

    // Recorded here: has a log to stand in.
    bool is_local(Row thread) const {
        return thread < data_.threads.size() && data_.threads[thread].process == 0;
    }

    static bool cost_kind(const std::string& name, std::uint32_t& event) {
        constexpr const char* kNames[] = {"range", "range_with_values", "instant", "counter",
                                          "allocation_report"};
        const auto* const found = std::find(std::begin(kNames), std::end(kNames), name);
        event = static_cast<std::uint32_t>(found - kNames);
        return found != std::end(kNames);
    }

    void write_thread(const ThreadInfo& thread) {
        if (thread.birth_ns != 0 || thread.os_tid != 0 || thread.name != 0) {
            ThreadBornRecord born{};
            born.thread = thread.id;
            born.name = thread.name;
            born.os_tid = thread.os_tid;
            born.ticks = thread.birth_ns == 0 ? 0 : ticks(thread.birth_ns);
            put(JournalKind::ThreadBorn, born);
        }
        if (thread.death_ns != 0) {
            ThreadDiedRecord died{};
            died.thread = thread.id;
            died.ticks = ticks(thread.death_ns);
            put(JournalKind::ThreadDied, died);
        }
    }

    void write_losses(const ThreadInfo& thread) {
        LossesRecord losses{};
        losses.thread = thread.id;
        losses.dropped = thread.dropped;
        losses.overwritten_chunks = thread.overwritten_chunks;
        losses.resyncs = thread.resyncs;
        losses.clamped = thread.clamped;
        if ((losses.dropped | losses.overwritten_chunks | losses.resyncs | losses.clamped) != 0) {
            put(JournalKind::Losses, losses);
        }
    }

    void write_session() {
        const WindowInfo& window = data_.window;
        SessionStartRecord start{};
        start.session = window.session_id;
        start.ticks = ticks(window.start_ns);
        start.max_bytes = window.max_bytes;
        start.scopes = ~0u;
        start.name = find_string(window.session_name);
        // The trace holds no more than its session asked for.
        start.option_bits = kOptionValues | kOptionShapes | kOptionConcreteInputs | kOptionMemory;
        start.policy = window.policy == "ring" ? 2 : window.policy == "drop" ? 1 : 0;
        put(JournalKind::SessionStart, start);
        for (const ThreadInfo& thread : data_.threads) {  // counted from the start on
            if (thread.process == 0) write_losses(thread);
        }
        if (!window.finished) return;
        SessionStopRecord stop{};
        stop.session = window.session_id;
        stop.ticks = ticks(window.end_ns);
        stop.ceiling_reached = window.ceiling_reached;
        put(JournalKind::SessionStop, stop);
    }

    // The session's name is among the strings of every built trace; one made otherwise gets it added.
    std::uint32_t find_string(const std::string& text) {
        const auto found = std::find(data_.strings.begin(), data_.strings.end(), text);
        if (found != data_.strings.end()) return static_cast<std::uint32_t>(found - data_.strings.begin());
        StringRecord record{};
        record.head = {static_cast<std::uint16_t>(NameKind::String), 0,
                       static_cast<std::uint32_t>(sizeof record + round_up_8(text.size()))};
        record.id = static_cast<std::uint32_t>(data_.strings.size());
        record.length = static_cast<std::uint32_t>(text.size());
        append(log_.names, record);
        const auto bytes = std::as_bytes(std::span(text));
        log_.names.insert(log_.names.end(), bytes.begin(), bytes.end());
        pad(log_.names, 8);
        return record.id;
    }

    void write_logs() {
        auto memory = std::make_shared<std::vector<Bytes>>(data_.threads.size());
        for (int pass = 0; pass < 2;
             ++pass) {  // what nests first: async ranges take no part and stand at the end
            for (const TrackInfo& track : data_.tracks) {
                if (!is_local(track.thread) || (track.kind == TrackKind::Async) != (pass == 1)) continue;
                write_track(track, (*memory)[track.thread]);
            }
        }
        for (Row row = 0; row < data_.instant_time_ns.size(); ++row) {
            if (!is_local(data_.instant_thread[row])) continue;
            put_long((*memory)[data_.instant_thread[row]], RecordKind::LongInstant, 0,
                     data_.instant_site[row], ticks(data_.instant_time_ns[row]), 0, 0,
                     trace_.instant_arguments(row));
        }
        for (Row row = 0; row < data_.counter_time_ns.size(); ++row) {
            std::uint64_t bits;
            std::memcpy(&bits, &data_.counter_value[row], sizeof bits);
            put_long((*memory)[data_.counter_thread[row]], RecordKind::Counter, 0, data_.counter_site[row],
                     ticks(data_.counter_time_ns[row]), bits, 0, {});
        }
        for (Row row = 0; row < data_.memory_time_ns.size(); ++row) {
            if (is_local(data_.memory_thread[row])) write_memory(row, (*memory)[data_.memory_thread[row]]);
        }
        for (std::size_t i = 0; i < memory->size(); ++i) {
            const Bytes& records = (*memory)[i];
            if (records.empty()) continue;
            log_.spans.push_back({records.data(), records.size(), data_.threads[i].id, i + 1, 0, {}});
        }
        log_.keep_alive = std::move(memory);
    }

    // Rows are in pre-order; a log is in order of ends.
    void write_track(const TrackInfo& track, Bytes& records) {
        std::vector<Row> open;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            while (!open.empty() && data_.range_depth[open.back()] >= data_.range_depth[row]) {
                write_range(open.back(), track.kind, records);
                open.pop_back();
            }
            open.push_back(row);
        }
        for (; !open.empty(); open.pop_back()) write_range(open.back(), track.kind, records);
    }

    void write_range(Row row, TrackKind kind, Bytes& records) {
        const std::int64_t start_ns = data_.range_start_ns[row];
        const std::uint16_t flags = data_.range_flags[row];
        const std::uint64_t start = ticks(start_ns);
        const std::uint64_t end =
            (flags & kUnfinished) != 0 ? never() : ticks(start_ns + data_.range_duration_ns[row]);
        const std::uint32_t depth = data_.range_depth[row];
        const auto arguments = trace_.range_arguments(row);
        const RangeDetail* const detail = trace_.range_detail(row);
        const bool is_async = kind == TrackKind::Async;
        const std::uint64_t site = std::uint64_t{data_.range_site[row]} + 1;
        if (!is_async && (flags & kEndInferred) == 0 && arguments.empty() && detail == nullptr &&
            depth < 256 && site < kMaxSites && end >> kDeltaBits == 0 &&
            (end - start) >> kDurationBits == 0) {
            append(records, CompactRecord{static_cast<std::uint64_t>(RecordKind::Range) |
                                              std::uint64_t{depth} << 8 | end << 16,
                                          site | (end - start) << kSiteBits});
            return;
        }
        const int record_flags =
            (is_async ? kRecordAsync : 0) | ((flags & kEndInferred) != 0 ? kRecordUnfinished : 0);
        // Deeper than any scope: taking it out of the nesting moves none.
        put_long(records, RecordKind::LongRange, record_flags, data_.range_site[row], start, end,
                 is_async ? std::numeric_limits<std::uint32_t>::max() : depth, arguments, detail);
    }

    void write_memory(Row row, Bytes& records) {
        const Device device = data_.memory_device[row];
        const MemoryPayload report{data_.memory_bytes[row],
                                   data_.memory_total_allocated[row],
                                   data_.memory_total_reserved[row],
                                   device.index,
                                   static_cast<std::uint8_t>(device.type),
                                   data_.memory_out_of_memory[row],
                                   0};
        payload_.clear();
        append(payload_, report);
        put_payload(records, RecordKind::Memory, 0, 0, ticks(data_.memory_time_ns[row]),
                    data_.memory_address[row], 0);
    }

    void put_long(Bytes& records, RecordKind kind, int flags, std::uint32_t site_row, std::uint64_t time,
                  std::uint64_t word2, std::uint32_t depth, std::span<const Argument> arguments,
                  const RangeDetail* detail = nullptr) {
        payload_.clear();
        for (const Argument& argument : arguments) encode_argument(data_, argument, payload_);
        if (detail != nullptr) encode_detail(*detail, payload_);
        put_payload(records, kind, flags, site_row + 1, time, word2, depth);
    }

    // A record with what is in payload_.
    void put_payload(Bytes& records, RecordKind kind, int flags, std::uint32_t site, std::uint64_t time,
                     std::uint64_t word2, std::uint32_t depth) {
        const std::size_t units = (sizeof(LongRecord) + payload_.size() + kRecordUnit - 1) / kRecordUnit;
        if (units > std::numeric_limits<std::uint16_t>::max())
            throw Error("a range has more values than a record holds");
        append(records, LongRecord{static_cast<std::uint8_t>(kind), static_cast<std::uint8_t>(flags),
                                   static_cast<std::uint16_t>(units), site, time, word2, depth,
                                   static_cast<std::uint32_t>(payload_.size())});
        records.insert(records.end(), payload_.begin(), payload_.end());
        pad(records, kRecordUnit);
    }

    const Trace& trace_;
    const TraceData& data_;
    RawLog log_;
    std::int64_t base_ = 0;
    Bytes payload_;
};

}  // namespace

RawLog log_of_trace(const Trace& trace) {
    return TraceWriter(trace).write();
}

}  // namespace kymo
