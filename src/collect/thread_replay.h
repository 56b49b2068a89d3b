// thread_replay.h: the second pass: one thread's log, backwards, into nested rows of the range table.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <marey/token.h>

#include "collect/async_ranges.h"
#include "collect/clocks/clock_fit.h"
#include "collect/log_scan.h"
#include "collect/session_filter.h"
#include "trace/part_flags.h"
#include "trace/trace_data.h"

namespace marey {

/// Where one thread's rows go: `capacity` rows of the columns, filled from their end towards their front.
struct RowSlice {
    std::int64_t* start_ns = nullptr;
    std::int64_t* duration_ns = nullptr;
    std::int64_t* self_ns = nullptr;
    std::uint32_t* site = nullptr;
    std::uint32_t* depth = nullptr;
    std::uint16_t* flags = nullptr;
    std::size_t capacity = 0;
};

/// Values that belong to a row, still encoded. Points into the log.
struct PayloadRef {
    std::uint32_t row = 0;
    std::uint32_t bytes = 0;
    const std::byte* data = nullptr;
};

/// A row with a sequence number, and no other values.
struct SequenceRef {
    std::uint32_t row = 0;
    std::uint32_t sequence = 0;
    std::uint32_t forward_thread = 0;  ///< 0: none
};

/// A call that is a task's. Points into the log.
struct TaskRef {
    std::uint64_t call = 0;
    std::string_view name;
};

/// One end of a message.
struct MessageRow {
    std::uint64_t time = 0;  ///< ticks
    Token token;
    bool is_received = false;
};

/// A range outside the nesting.
struct AsyncRow {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::uint32_t site = 0;
    std::uint16_t flags = 0;
    std::uint32_t payload_bytes = 0;
    const std::byte* payload = nullptr;
    std::uint8_t part = 0;   ///< PartRecordFlags
    std::uint64_t call = 0;  ///< 0: not part of a call
    bool is_sequenced = false;
    std::uint32_t sequence = 0;
    std::uint32_t forward_thread = 0;
};

struct InstantRow {
    std::int64_t time_ns;
    std::uint32_t site;
    std::uint32_t payload_bytes;
    const std::byte* payload;
};

struct CounterRow {
    std::int64_t time_ns;
    double value;
    std::uint32_t site;
};

/// An allocation report. `payload` points to a complete MemoryPayload in the log, aligned or not.
struct MemoryRow {
    std::int64_t time_ns;
    std::uint64_t address;
    const std::byte* payload;
};

/// A sample, as recorded.
struct SampleRow {
    std::uint64_t start = 0;  ///< ticks
    std::uint64_t end = 0;
    std::uint64_t cpu_ns = 0;
    std::uint32_t stack = 0;  ///< 0: unknown
    std::uint8_t state = 0;
};

/// A host call into a device's library, found in the device's log.
struct DeviceCallRow {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::uint32_t site = 0;  ///< a row
    std::uint32_t correlation = 0;
    std::int32_t result = 0;
    std::uint32_t log = 0;  ///< the log that it is in: correlations are unique within a log
    std::uint32_t row = 0;  ///< once inserted: relative to the first of the thread's `rows`
    bool runs_on = false;   ///< it continued after the window, whose end is `end_ns`
};

/// One thread's share of the log, and the results of its replay.
struct ThreadReplay {
    std::uint32_t thread = 0;
    std::vector<const LogPiece*> pieces;          ///< in order
    std::vector<const LogPiece*> sample_pieces;   ///< likewise
    std::vector<const OpenRange*> open;           ///< still open at the end of the window, by depth
    std::vector<AsyncEvent> async_events;         ///< in log order
    std::vector<std::uint32_t> unfinished_async;  ///< nesting ones that never ended, in order of their begins
    std::size_t range_capacity = 0;
    std::size_t sequenced_capacity = 0;       ///< of them: SequencedRanges
    std::size_t part_capacity = 0;            ///< of them: parts of calls
    std::vector<DeviceCallRow> device_calls;  ///< in order of (start, longer first); not in range_capacity

    // Filled by replay_thread.
    std::size_t rows = 0;                ///< nested rows, at the end of the slice
    std::vector<PayloadRef> payloads;    ///< `row` counts from the first of the `rows`; ascending
    std::vector<SequenceRef> sequenced;  ///< likewise
    std::vector<CallPart> parts;         ///< likewise
    std::vector<TaskRef> tasks;          ///< in no order
    std::vector<MessageRow> messages;    ///< the last first
    std::vector<AsyncRow> async_rows;    ///< in no order
    std::vector<InstantRow> instants;    ///< in log order
    std::vector<CounterRow> counters;    ///< in log order
    std::vector<MemoryRow> memory;       ///< in order of their times, then of the log
    std::vector<SampleRow> samples;      ///< in order of their times
    std::uint64_t damaged_memory = 0;    ///< incomplete allocation reports
    std::uint64_t adjusted = 0;          ///< ranges corrected by up to kSlackNs to lie within their parents
    std::uint64_t misplaced = 0;         ///< ranges whose times contradict their nesting: now async
};

/// How far counter reads may be out of order before times contradict the recorded nesting.
inline constexpr std::int64_t kSlackNs = 2000;

/// Of a session that was not stopped.
inline constexpr std::uint64_t kNotStopped = ~std::uint64_t{0};

/// Removes the ranges of `replay.open` that are in the log as well, with their ends. A reader of a running or
/// killed program sees both. So does the stop of a session, but only if the thread was just about to free the
/// range's slot: ranges that ended after `stop_ticks` (or kNotStopped) stay open.
void drop_closed_ranges(ThreadReplay& replay, std::uint64_t stop_ticks);

/// Replays a thread. Ranges of `async` that began on this thread are read, and their marks written; no two
/// threads share one. Safe to run for different threads at once.
void replay_thread(ThreadReplay& replay, const SessionFilter& filter, const ClockFit& fit,
                   std::vector<AsyncRange>& async, const RowSlice& slice);

}  // namespace marey
