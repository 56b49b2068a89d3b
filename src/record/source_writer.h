// source_writer.h: the functions that a source outside libmarey calls to record: sites, threads, and ranges
// whose begin or end it has not seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <marey/detail/export.h>
#include <marey/detail/hot_path.h>
#include <marey/range.h>
#include <marey/value.h>

#include "record/source.h"

namespace marey {

/// Registers a source for the rest of the process.
MAREY_API void add_source(std::shared_ptr<Source> source);

/// A site of a call tracer; `file` is not empty: for a C function it is the module. Views of sessions that
/// requested no calls leave its ranges out. 0: no space.
MAREY_API std::uint32_t traced_site(std::string_view name, std::string_view file, std::uint32_t line,
                                    Scope scope) noexcept;

/// The same for a call of a function that is told apart by `overload`, such as the import of a module. It has
/// neither file nor line.
MAREY_API std::uint32_t traced_overload(std::string_view name, std::string_view overload,
                                        Scope scope) noexcept;

/// The site of a name made at run time whose category (a string id) differs from its scope's: a lock-free
/// lookup, interned the first time. 0: no space.
std::uint32_t categorised_site(std::string_view name, Scope scope, std::uint32_t category) noexcept;

/// An instant at a site. `side`: its values, as push_values() returns them.
void record_site_instant(std::uint32_t site, Scope scope, std::uint32_t side) noexcept;

/// Movable ranges of a site.
struct SiteRange {
    /// On an async track wherever it ends. `side`: its values.
    static Range apart(std::uint32_t site, Scope scope, std::uint32_t side) noexcept;
    /// A step of the program. Calls that begin or end in it keep their times: it is shortened to nest with
    /// them.
    MAREY_API static Range step(std::string_view name) noexcept;
    /// Writes the begin of a range. `flags`: RecordFlags.
    static void begin(Range& range, std::uint32_t site, std::uint32_t side, std::uint8_t flags) noexcept;
};

/// time_on_device() for several names at once.
MAREY_API void time_on_device(std::span<const std::string_view> range_names, bool is_timed);

/// Names a thread by its system thread id; a thread other than the calling one only if it has recorded.
void name_thread(std::int64_t os_tid, std::string_view name) noexcept;

/// Registers the calling thread and updates it, so that its state may be used. False: it cannot record now.
MAREY_API bool attach_thread() noexcept;

/// Opens a range of the calling thread that began at `start`: the open ranges that began later are inside it.
/// `side`: values for it, by the number that detail::close_side() returned; 0: none. kNotOpen: there was no
/// space, or nothing records.
MAREY_API detail::Opened adopt_range(std::uint32_t site, std::uint64_t start, std::uint32_t side) noexcept;

/// Announces that `count` ranges are going to be adopted, the first of them begun at `start`: everything that
/// the thread has recorded since then lies in them.
MAREY_API void begin_adoption(std::uint64_t start, std::uint32_t count) noexcept;

/// Ends the open calls of the calling thread at `end`, marked unfinished. Whoever opened them may still close
/// them, without effect.
MAREY_API void end_open_calls(std::uint64_t end) noexcept;

/// Closes a range of the calling thread whose end was not seen: it ends now and is marked unfinished.
MAREY_API void close_late(detail::Opened opened) noexcept;

/// Ends a range of the calling thread that should not be recorded after all. Records made inside it stay.
MAREY_API void drop_range(detail::Opened opened) noexcept;

/// The calls of threads that have not had an event; replaces the earlier list. Empty: none.
MAREY_API void set_absent_threads(std::vector<AbsentStack> stacks) noexcept;
/// The thread with this system thread id records its calls itself from now on.
MAREY_API void forget_absent_thread(std::int64_t os_tid) noexcept;

/// Closes a range of the calling thread, with values that are known only now. `site`: its name, if that is
/// known only now too; 0: the one that it was opened with.
MAREY_API void close_with_values(detail::Opened opened, std::span<const KeyedValue> values,
                                 std::uint32_t site = 0) noexcept;
/// Records a range on an async track that began at `start` and ends now, on the calling thread.
MAREY_API void write_ended_range(std::uint32_t site, std::uint64_t start,
                                 std::span<const KeyedValue> values) noexcept;

/// Announces, right before the end of a range of the calling thread, that the range is part of the call with
/// this number. `start`: the range's; `flags`: PartRecordFlags.
MAREY_API void write_part(std::uint64_t start, std::uint64_t call, std::uint8_t flags) noexcept;

/// Closes a range of the calling thread that is part of the call with this number, like write_part() and
/// close_range(). `place`: 0 at first, then where the log has the call; as long as that block is in use, a
/// further part is one record.
inline void close_part(detail::Opened opened, std::uint64_t call, std::uint8_t flags,
                       std::uint32_t& place) noexcept {
    using detail::CompactRecord;
    using detail::kRecordUnit;
    using detail::RecordKind;
    detail::ThreadState* const thread = detail::current_thread;
    const std::uint32_t index = opened.index;
    constexpr std::ptrdiff_t kBoth = 4 * kRecordUnit;  // a Part and its range, whatever its shape
    const bool is_busy = !detail::is_usual(thread);
    if (!is_busy) detail::set_busy(thread);
    if (is_busy || index >= detail::kInlineDepth || thread->depth != index + 1 ||
        thread->limit - thread->cursor < kBoth ||
        detail::load_relaxed(thread->slots[index].start) != opened.start) [[unlikely]] {
        if (!is_busy) detail::clear_busy(thread);
        place = 0;
        write_part(opened.start, call, flags);
        return detail::close_range(opened);
    }
    const std::uint64_t site = detail::load_relaxed(thread->slots[index].what);  // neither values nor flags
    const auto used = static_cast<std::size_t>(thread->cursor - thread->chunk_data) / kRecordUnit;
    // The block may be another one by now: what is there decides.
    const auto* const known = reinterpret_cast<const CompactRecord*>(thread->chunk_data) + place - 1;
    const bool is_known = place != 0 && place + 1 <= used && known[0].word1 == call &&
                          static_cast<RecordKind>(known[0].word0 & 0xff) == RecordKind::Part &&
                          static_cast<RecordKind>(known[1].word0 & 0xff) == RecordKind::Range &&
                          (known[1].word1 & (detail::kMaxSites - 1)) == site;
    const std::uint64_t reference = (place - 1) << 1 | ((flags & detail::kPartLast) != 0 ? 1 : 0);
    if (!is_known ||
        detail::write_compact<RecordKind::Resumed>(thread, index, reference, opened.start) != 0) {
        place = static_cast<std::uint32_t>(used) + 1;
        auto* const record = reinterpret_cast<CompactRecord*>(thread->cursor);
        record->word0 = static_cast<std::uint64_t>(RecordKind::Part) | std::uint64_t{flags} << 8 |
                        opened.start << detail::kPartStartShift;
        record->word1 = call;
        thread->cursor += kRecordUnit;
        if (const std::uint64_t now = detail::write_compact(thread, index, site, opened.start)) [[unlikely]]
            return detail::close_unusual(index, opened.start, now);
    }
    detail::clear_busy(thread);
}

/// Records that a call with parts is that of a task's coroutine.
MAREY_API void write_task(std::uint64_t call, std::string_view name) noexcept;

/// The same for a range that is open and may stay so until the session ends; `thread`: the recorder's number.
MAREY_API void note_open_part(std::uint32_t thread, std::uint64_t start, std::uint64_t call,
                              std::uint8_t flags) noexcept;

/// Passes the known values of a call tracer's site to the running sessions that requested calls. They are
/// complete when all of them have been given with one `ticks`; entries that do not fit are cut.
MAREY_API void add_site_values(std::uint32_t site, std::uint64_t ticks,
                               std::span<const KeyedValue> values) noexcept;

/// The current time, in the recorder's clock.
MAREY_API std::uint64_t source_ticks() noexcept;
/// A duration in its ticks.
MAREY_API std::uint64_t source_ticks_of(std::uint64_t ns) noexcept;

/// For a source that measures what its events cost.
inline constexpr int kMeasuredEvents = 64;
/// The time of an event, in picoseconds; `make_events` makes kMeasuredEvents of them, each time that it is
/// called. `records`: into a log that is discarded.
MAREY_API std::uint64_t measure_events(void (*make_events)(void*), void* context, bool records) noexcept;
/// Puts the cost of an event into the traces of this process; replaces an earlier one.
MAREY_API void add_cost(detail::CostKind kind, std::uint64_t picoseconds) noexcept;

/// Puts a problem into the traces of the running sessions; print: on standard error too, once.
MAREY_API void note_problem(std::string_view code, std::string_view text, bool print = true) noexcept;

/// Whether the environment requests a session that records Python calls.
MAREY_API bool environment_requests_calls() noexcept;
/// Starts the session that the environment requests, if any: for a program whose environment had none when
/// the library was loaded. `records_c_calls`: the meaning of "c_calls=auto", in forked processes too.
MAREY_API void begin_environment_session(bool records_c_calls) noexcept;

/// Ends the sessions that have a file, as the end of the process does: for a process that is about to exit
/// without running exit handlers.
MAREY_API void finish_recording() noexcept;

}  // namespace marey
