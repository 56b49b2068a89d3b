// raw_log.h: the recorded bytes: the only input of the trace builder, from memory or from a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <marey/detail/log_format.h>

namespace marey {

/// Complete records of a log chunk. `data` has `bytes` bytes and does not change while the RawLog lives.
struct LogSpan {
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
    std::uint32_t thread = 0;  ///< of the first records, until a ThreadSwitch
    std::uint64_t sequence = 0;
    std::uint64_t base_ticks = 0;
    detail::ClockPair pair;
};

/// A range that was open when the log was read. `depth` counts from 0.
struct OpenRange {
    std::uint32_t thread = 0;
    std::uint32_t depth = 0;
    std::uint64_t start = 0;
    std::uint32_t site = 0;
    std::uint8_t flags = 0;  ///< RecordFlags
    std::vector<std::byte> payload{};
    std::uint64_t end = 0;  ///< not 0: another thread has ended it, its own thread has not noticed yet
};

/// The journal's record of a range that is open when a session stops. Completes the payload that follows it.
inline detail::OpenAtStopRecord open_at_stop(std::uint64_t session, OpenRange& range) {
    detail::OpenAtStopRecord record{};
    record.session = session;
    record.start = range.start;
    record.thread = range.thread;
    record.depth = range.depth;
    record.site = range.site;
    record.flags = range.flags & ~std::uint32_t{detail::kRecordAsync};
    if (range.end != 0) {
        const auto* const end = reinterpret_cast<const std::byte*>(&range.end);
        range.payload.insert(range.payload.end(), end, end + sizeof range.end);
        record.flags |= detail::kRecordAsync;
    }
    record.payload_bytes = static_cast<std::uint32_t>(range.payload.size());
    return record;
}

/// A kind of damage or loss found while reading, to be shown as a problem.
struct RawProblem {
    std::string code;
    std::string text;
    std::uint64_t count = 1;
};

struct RawLog {
    // Facts about the process.
    std::int64_t pid = 0;
    std::int32_t node = -1;
    std::string host;
    std::string executable;
    std::string command_line;  ///< arguments separated by spaces
    detail::ClockSource clock_source = detail::ClockSource::MonotonicRaw;
    std::uint64_t ticks_per_second = 0;  ///< nominal

    // The two streams (cut after the last complete record).
    std::vector<std::byte> names;
    std::vector<std::byte> journal;

    std::vector<LogSpan> spans;     ///< in any order
    std::vector<OpenRange> open;    ///< of sessions that have no SessionStop in the journal
    std::uint64_t end_ticks = 0;    ///< when the log was read; 0 = unknown (a crash): the latest time seen
    std::uint64_t since_ticks = 0;  ///< records that ended earlier were not wanted; 0: all were
    bool finished = false;          ///< nothing can be added: every session has stopped
    bool is_running = false;        ///< read from a file while its program was writing it

    std::vector<RawProblem> problems;
    std::shared_ptr<const void> keep_alive;  ///< owns the memory of the spans
};

}  // namespace marey
