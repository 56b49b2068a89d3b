// thread_log.h: a thread's own log and open stack, out of line: everything that the inlined path does not
// handle.
#pragma once

#include <cstdint>
#include <span>

#include <marey/detail/hot_path.h>
#include <marey/observe.h>

#include "record/child_words.h"

namespace marey {

struct ThreadEntry;

/// The value of `current_thread` before a thread is registered: shared by all, only `armed` ever changes.
extern constinit detail::ThreadState unregistered_thread;
/// Its value when a thread must not record: after its end, and between fork's handlers. Never armed.
extern constinit detail::ThreadState idle_thread;
/// Its value while the thread is switched off (set_enabled). Never armed.
extern constinit detail::ThreadState disabled_thread;
/// The thread's own state while it is switched off.
extern constinit thread_local detail::ThreadState* switched_off __attribute__((tls_model("initial-exec")));
/// The calling thread's state, switched off or not.
inline detail::ThreadState* calling_thread() noexcept {
    detail::ThreadState* const state = detail::current_thread;
    return state != &disabled_thread ? state : switched_off;
}
/// Whether the calling thread may read the clock: one that is idle may have lost the right to.
inline bool may_read_clock() noexcept {
    return detail::current_thread != &idle_thread;
}
/// Replaces it, for the calling thread.
void set_current_thread(detail::ThreadState* state) noexcept;
/// Begins without an object made while off by a thread that is not registered yet.
extern constinit thread_local std::uint32_t unregistered_off_begins;

/// Sets a thread's armed word and the fields derived from it. Needs ThreadEntry::arming, unless no other
/// thread can see the state.
void set_armed(detail::ThreadState& state, std::uint64_t armed) noexcept;

/// Switches the calling thread on for its lifetime: ends, and operations unrelated to ranges, must find its
/// state also while it is off.
class ScopedEnable {
  public:
    ScopedEnable() noexcept : was_off_(detail::current_thread == &disabled_thread) {
        if (was_off_) set_enabled(true);
    }
    ~ScopedEnable() {
        if (was_off_) set_enabled(false);
    }
    ScopedEnable(const ScopedEnable&) = delete;
    ScopedEnable& operator=(const ScopedEnable&) = delete;

  private:
    bool was_off_;
};

/// Makes sure that the calling thread's state is one of this process, as check_process() does for the
/// recorder.
void check_thread_slow() noexcept;
inline void check_thread() noexcept {
    if (detail::load_relaxed(*detail::load_acquire(process_mark)) != kOwnProcess ||
        seen_left_parents != detail::load_relaxed(left_parents)) [[unlikely]]
        check_thread_slow();
}

/// For a SlowPath that writes no record of its own: a name, values of a range, the end of a range that began.
inline constexpr bool kNoRecord = false;

/// Marks the calling thread as inside the recorder for its lifetime. False when it already was: this is a
/// signal handler or an allocation hook that interrupted it; its record is then counted as dropped, once.
class SlowPath {
  public:
    explicit SlowPath(bool is_record = true) noexcept;
    ~SlowPath();
    SlowPath(const SlowPath&) = delete;
    SlowPath& operator=(const SlowPath&) = delete;
    explicit operator bool() const noexcept { return entered_; }

  private:
    bool entered_;
};

/// All of the following are called by the owner of `state`, inside a SlowPath (or, for logs that are not
/// threads, with their log_lock held).

/// A range as written to the log.
struct ClosedRange {
    std::uint64_t start;
    std::uint64_t end;
    std::uint32_t depth;
    std::uint32_t site;
    std::uint8_t flags;  ///< RecordFlags
    std::span<const std::byte> payload;
};
/// Appends it, or counts it as dropped.
void write_range(detail::ThreadState& state, const ClosedRange& range) noexcept;

/// Ensures space for `bytes` at the cursor, for a record that ends at `ticks`. False: there is none (nothing
/// is counted yet).
bool ensure_room(detail::ThreadState& state, std::size_t bytes, std::uint64_t ticks) noexcept;
/// Counts records that are in no log. A signal handler may do so at any instruction of its thread.
void add_dropped(detail::ThreadState& state, std::uint64_t count) noexcept;
/// Counts records of this depth as lost; the next chunk starts with a Dropped record.
void count_dropped(detail::ThreadState& state, std::uint32_t depth, std::uint64_t count = 1) noexcept;
/// Starts a long record at the cursor, after ensure_room; the caller fills in the rest, then commits.
detail::LongRecord* append_long(detail::ThreadState& state, detail::RecordKind kind,
                                std::size_t payload_bytes) noexcept;
void commit(detail::ThreadState& state) noexcept;
/// Records under which context the following records run; there is space for it.
void write_context_mark(detail::ThreadState& state, std::uint64_t ticks) noexcept;

/// Registers the calling thread or handles its attention. Null: it cannot record.
detail::ThreadState* ready_thread() noexcept;
/// Whether ends of ranges are logged: something records here, or an open session may have seen them begin
/// (this thread has left its context since), and the log is up to date.
bool writes_ends(const detail::ThreadState& state) noexcept;
/// ready_thread() for the end of a range: updates the log also where only ends are logged.
detail::ThreadState* ending_thread() noexcept;
/// Opens a range of the calling thread if something records; its observers have been called. Does not need a
/// SlowPath of the caller.
detail::Opened open_recorded(std::uint32_t site, Scope scope, std::uint32_t side) noexcept;
/// Closes the range that it has opened.
void close_recorded(std::uint32_t index, std::uint64_t start, std::uint64_t now) noexcept;
/// Opens a range; the slot index is kNotOpen when there was no space.
detail::Opened push_open(detail::ThreadState& state, std::uint32_t site, std::uint8_t flags,
                         std::uint32_t side) noexcept;
/// Closes the open range at `index`, which need not be the innermost.
void pop_open(detail::ThreadState& state, std::uint32_t index, std::uint64_t now,
              std::uint8_t flags) noexcept;
/// Opens a range that began at `start` at the place `index` of the open stack: the ranges from there on move
/// up.
detail::Opened insert_open(detail::ThreadState& state, std::uint32_t index, std::uint32_t site,
                           std::uint64_t start, std::uint32_t side) noexcept;
/// The slot of the open range with this start: at `index`, lower if a range below it has ended since, or
/// higher if one was inserted below it. kNotOpen: none.
std::uint32_t find_open(detail::ThreadState& state, std::uint32_t index, std::uint64_t start) noexcept;
inline std::uint32_t site_of(const detail::OpenSlot& slot) noexcept {
    return static_cast<std::uint32_t>(detail::load_relaxed(slot.what) & (detail::kMaxSites - 1));
}
/// Whether a slot holds a Python call.
bool is_call(const detail::OpenSlot& slot) noexcept;
/// Whether the code that begins such a range waits for its end (set_waited_ranges()).
bool is_waited_for(std::uint32_t site) noexcept;
/// Turns the open ranges of an ending thread into unfinished records.
void close_all_open(detail::ThreadState& state) noexcept;
/// The id of a movable range that begins now on this thread: unique in the process.
std::uint64_t next_async_id(detail::ThreadState& state) noexcept;
/// Values of an open slot's side-stack handle.
std::span<const std::byte> side_payload(const detail::ThreadState& state, std::uint32_t side) noexcept;
/// Puts values that have been taken off the side stack back onto it. Does not need a SlowPath of the caller.
std::uint32_t push_payload(std::span<const std::byte> payload) noexcept;
/// Space after the values of the innermost open range, to add more; null when there is none.
struct SideExtension {
    std::byte* place = nullptr;
    std::byte* limit = nullptr;
};
SideExtension extend_side(detail::ThreadState& state, const detail::OpenSlot& slot) noexcept;
/// `end` is one past the last byte added.
void close_extension(detail::ThreadState& state, detail::OpenSlot& slot, std::byte* end) noexcept;
/// Removes an unused handle from the side stack again.
void drop_side(detail::ThreadState& state, std::uint32_t side) noexcept;

}  // namespace marey
