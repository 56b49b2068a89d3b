// replayed_log.h: a log while it becomes a trace: the state that each pass of the builder leaves for the
// next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "collect/async_ranges.h"
#include "collect/clocks/clock_fit.h"
#include "collect/clocks/device_clocks.h"
#include "collect/device_records.h"
#include "collect/journal_reader.h"
#include "collect/log_scan.h"
#include "collect/session_filter.h"
#include "collect/thread_replay.h"
#include "collect/trace_builder.h"
#include "record/raw_log.h"
#include "trace/trace_data.h"

namespace marey {

/// Owned by one build_trace call. The log must outlive it.
struct ReplayedLog {
    ReplayedLog(const RawLog& raw_log, const ViewRequest& view_request)
        : log(raw_log), request(view_request), data(std::make_shared<TraceData>()) {}

    const RawLog& log;
    const ViewRequest request;
    std::shared_ptr<TraceData> data;
    Journal journal;
    FrameNames frames;
    const JournalSession* session = nullptr;  ///< in `journal`; null: the whole log
    SessionFilter filter;
    std::shared_ptr<const ClockFit> fit;
    std::vector<const LogSpan*> spans;    ///< by sequence
    std::vector<SpanScan> scans;          ///< of those
    std::vector<ThreadReplay> replays;    ///< by thread id
    std::vector<std::size_t> first_rows;  ///< of each replay's nested rows
    std::size_t nested_rows = 0;          ///< rows of all of them; space for the async ones follows
    AsyncRanges async;
    DeviceClocks device_clocks;
    std::vector<DeviceWorkRow> device_work;                           ///< in order of the log
    std::unordered_map<std::uint32_t, std::uint64_t> dropped_in_log;  ///< by thread
    std::uint64_t log_bytes = 0;
    std::uint64_t unknown_records = 0;
    std::uint64_t damaged_device = 0;  ///< incomplete device records
    std::uint64_t lost_begins = 0;
};

/// The last pass, everything except the nested rows: async rows, tracks, threads, points, values, facts,
/// problems.
void fill_tables(ReplayedLog& state);
/// Processes, threads and the window only; needs the window, but no events.
void fill_outline(ReplayedLog& state);

}  // namespace marey
