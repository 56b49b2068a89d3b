// hot_path.h: opens and closes a scope, inlined into the caller. All unusual cases are out of line.
#pragma once

#include <cstdint>
#include <string_view>

#include <marey/detail/counter.h>
#include <marey/detail/export.h>
#include <marey/detail/thread_state.h>
#include <marey/scope.h>

namespace marey::detail {
inline namespace layout1 {

/// The form of Site::name. The numbers are part of the binary interface.
enum class SiteName : std::uint8_t {
    Plain = 0,
    Signature = 1,  ///< __PRETTY_FUNCTION__, of which only the qualified name is kept
};

/// A place in the source that marks ranges: a static object with constant initialisation, registered with the
/// recorder as `id` at its first use. The recorder copies what it needs, so the site may be unloaded later.
struct Site {
    const char* name;
    const char* file;
    std::uint32_t line;
    Scope scope;
    SiteName name_form = SiteName::Plain;  ///< in former padding: 0 in files compiled against older headers
    std::uint32_t layout = kLayoutNumber;
    std::uint32_t id = 0;  ///< 0: not registered, or refused
};

/// This thread's state. Points to a shared, read-only state until the recorder has registered the thread. The
/// initial-exec model needs one load off the thread pointer, even in shared libraries (measured: 0.77 ns
/// instead of 2.3 ns).
MAREY_API extern __thread ThreadState* current_thread __attribute__((tls_model("initial-exec")));

/// Derived from `armed` of this thread's state: 1 if ranges may be recorded inline. A child process shares
/// the state with its parent if it is in a file, but not this word: the kernel sets it to 0 in every child
/// process, so that a child made without fork handlers (_Fork, clone) leaves its parent's log before it
/// writes.
MAREY_API extern __thread const std::uint32_t* current_inline __attribute__((tls_model("initial-exec")));

/// True if the calling thread may record inline now.
[[gnu::always_inline]] inline bool is_usual(const ThreadState* thread) noexcept {
    return load_relaxed(*current_inline) != 0 && load_relaxed(thread->busy) == 0;
}

/// The result of opening a range: the slot's index and its start. Fits into two registers, so that a scope
/// needs no memory.
struct Opened {
    std::uint64_t start;
    std::uint32_t index;
};
inline constexpr std::uint32_t kNotOpen = ~0u;  ///< nothing was opened
/// Open, but cannot be closed inline: too deep, or with values.
inline constexpr std::uint32_t kOpenUnusual = ~1u;
inline constexpr std::uint32_t kOpenObserved = ~2u;  ///< observed: `start` is the observers' frame
inline constexpr std::uint32_t kInlineDepth = 256;   ///< the depths that a compact record can store
inline constexpr std::size_t kPrefetchAhead = 128;   ///< bytes

/// The out-of-line halves. They never throw; observers are called from here.
MAREY_API Opened open_slow(Site& site, std::uint32_t side) noexcept;
MAREY_API Opened open_site_slow(std::uint32_t site, Scope scope, std::uint32_t side) noexcept;
MAREY_API void close_slow(std::uint32_t index, std::uint64_t start) noexcept;
/// Closes an observed range; `frame` is its Opened::start.
MAREY_API void close_observed(std::uint64_t frame) noexcept;
/// Closes a range on a thread that has called set_busy(). `now` is 0 if the counter has not been read yet.
MAREY_API void close_unusual(std::uint32_t index, std::uint64_t start, std::uint64_t now) noexcept;
/// Closes a range that thread number `thread` opened. If that is another thread, the range becomes async.
MAREY_API void close_elsewhere(Opened opened, std::uint32_t thread) noexcept;
/// The calling thread's number; 0 if it has not recorded anything yet.
inline std::uint32_t thread_number() noexcept {
    return current_thread->block.thread;
}
/// Registers a site and returns its number; 0 if it cannot be used.
MAREY_API std::uint32_t register_site(Site& site) noexcept;
inline std::uint32_t site_id(Site& site) noexcept {
    const std::uint32_t id = load_relaxed(site.id);
    return id != 0 ? id : register_site(site);
}
/// Returns the site of a name made at run time: a lock-free lookup, added the first time. 0 if there is no
/// space. Look it up for each range, or again when ThreadState::names_number has changed: a capture contains
/// only the run-time names that were looked up for it.
MAREY_API std::uint32_t dynamic_site(std::string_view name, Scope scope) noexcept;

/// The same for an operator with overloads; each overload is a separate site.
MAREY_API std::uint32_t operator_site(std::string_view name, std::string_view overload, Scope scope) noexcept;

/// True if an observer of the next range of this scope on this thread needs inputs.
MAREY_API bool observers_need_inputs(Scope scope) noexcept;

inline constexpr std::uint64_t scope_bit(Scope scope) noexcept {
    return std::uint64_t{1} << static_cast<unsigned>(scope);
}

/// True if a range of this scope that opens now would be recorded or observed.
inline bool should_record(Scope scope) noexcept {
    return (load_relaxed(current_thread->armed) & scope_bit(scope)) != 0;
}
/// True if values attached to a range of this scope would be recorded: the macros evaluate them only then.
inline bool values_wanted(Scope scope) noexcept {
    const std::uint64_t armed = load_relaxed(current_thread->armed);
    if ((armed & scope_bit(scope)) == 0) return false;
    return (armed & kArmedValues) != 0 || ((armed & kArmedObservers) != 0 && observers_need_inputs(scope));
}

/// True if a range may be opened inline.
inline bool may_open(const ThreadState* thread, std::uint32_t site) noexcept {
    return is_usual(thread) && site != 0 && thread->depth < kInlineDepth;
}

/// True if this range is neither recorded nor observed: there are only sampled observers, and it is counted
/// as skipped.
inline bool may_skip(ThreadState* thread, std::uint64_t armed, Scope scope) noexcept {
    std::uint32_t& left = thread->skip[static_cast<unsigned>(scope)];
    if ((armed & kArmedSkip) == 0 || left == 0) return false;
    --left;
    return true;
}

/// Fills the next slot. The slot counts once its start is set, so a reader or a signal handler that runs in
/// between never sees a half-filled slot; ranges of the handler go above it. (Handler ranges that end before
/// the start is read are inside it by depth and before it by time; the builder puts them on a side track.)
[[gnu::always_inline]] inline Opened open_slot(ThreadState* thread, std::uint64_t what) noexcept {
    const std::uint32_t index = thread->depth;
    OpenSlot& slot = thread->slots[index];
    store_relaxed(thread->depth, index + 1);
    store_relaxed(slot.what, what);
    const std::uint64_t start = read_counter();
    store_release(slot.start, start);
    return {start, index};
}

/// Opens a range of a registered site, if it is recorded or observed.
[[gnu::always_inline]] inline Opened open_range(std::uint32_t site, Scope scope) noexcept {
    ThreadState* const thread = current_thread;
    const std::uint64_t armed = load_relaxed(thread->armed);
    if ((armed & scope_bit(scope)) == 0) return {0, kNotOpen};
    if (may_open(thread, site)) return open_slot(thread, site);
    if (may_skip(thread, armed, scope)) return {0, kNotOpen};
    return open_site_slow(site, scope, 0);
}

/// Records the end of the innermost slot, `index`, as one compact record. There is space for the record, and
/// the thread is busy. Returns 0, or the current time if the record cannot store the range; then nothing was
/// done.
template <RecordKind kKind = RecordKind::Range>
[[gnu::always_inline]] inline std::uint64_t write_compact(ThreadState* thread, std::uint32_t index,
                                                          std::uint64_t site, std::uint64_t start) noexcept {
    std::byte* const place = thread->cursor;
    const std::uint64_t base = thread->base_ticks;
    // Read late: the CPU can overlap earlier work with reading the counter, but not later work.
    const std::uint64_t now = read_counter();
    const std::uint64_t duration = now - start;
    const std::uint64_t delta = now - base;
    static_assert(kDeltaBits - kDurationBits == 8);
    if (MAREY_DETAIL_UNLIKELY((duration | delta >> 8) >> kDurationBits != 0)) return now;
    auto* const record = reinterpret_cast<CompactRecord*>(place);
    record->word0 = static_cast<std::uint64_t>(kKind) | std::uint64_t{index} << 8 | delta << 16;
    record->word1 = site | duration << kSiteBits;
    thread->cursor = place + kRecordUnit;
    __builtin_prefetch(place + kPrefetchAhead, 1);  // the log's memory is not in the cache yet
    store_release(*thread->committed, static_cast<std::uint64_t>(place + kRecordUnit - thread->chunk_data));
    store_release(thread->slots[index].start, std::uint64_t{0});
    store_release(thread->depth, index);
    return 0;
}

/// close_range() for the usual case: writes one record if the range is the innermost and there is space.
/// Returns false if nothing was done. `thread` is the calling thread.
[[gnu::always_inline]] inline bool try_close_range(ThreadState* thread, const Opened opened) noexcept {
    if (!is_usual(thread)) return false;
    const BusyScope busy(thread);
    const OpenSlot& slot = thread->slots[opened.index];
    return thread->depth == opened.index + 1 && thread->cursor != thread->limit &&
           load_relaxed(slot.start) == opened.start &&
           write_compact(thread, opened.index, load_relaxed(slot.what), opened.start) == 0;
}

/// Closes a range that was opened on this thread (not kNotOpen). Readers read the open stack before the log,
/// so the record is written before the slot is cleared.
[[gnu::always_inline]] inline void close_range(const Opened opened) noexcept {
    ThreadState* const thread = current_thread;
    const std::uint32_t index = opened.index;
    const std::uint64_t start = opened.start;
    if (MAREY_DETAIL_UNLIKELY(!is_usual(thread))) {
        return index == kOpenObserved ? close_observed(start) : close_slow(index, start);
    }
    set_busy(thread);  // close_unusual() clears it
    // One record, if the range is the innermost and there is space.
    if (MAREY_DETAIL_UNLIKELY(thread->depth != index + 1 || thread->cursor == thread->limit)) {
        return close_unusual(index, start, 0);
    }
    OpenSlot& slot = thread->slots[index];
    if (MAREY_DETAIL_UNLIKELY(load_relaxed(slot.start) != start)) {
        return close_unusual(index, start, 0);
    }
    const std::uint64_t site = load_relaxed(slot.what);  // opened inline: neither values nor flags
    const std::uint64_t now = write_compact(thread, index, site, start);
    if (MAREY_DETAIL_UNLIKELY(now != 0)) return close_unusual(index, start, now);
    clear_busy(thread);
}

/// marey_begin for the usual case. Returns false if nothing was done; then call marey_begin.
[[gnu::always_inline]] inline bool begin_inline(std::uint32_t site, Scope scope) noexcept {
    ThreadState* const thread = current_thread;
    if (!should_record(scope) || !may_open(thread, site)) return false;
    open_slot(thread, site | std::uint64_t{kSlotObjectless} << kSiteBits);
    return true;
}

/// marey_end for the usual case: the innermost range was begun by marey_begin, without values. Returns false
/// if nothing was done; then call marey_end.
[[gnu::always_inline]] inline bool end_inline() noexcept {
    ThreadState* const thread = current_thread;
    if (!is_usual(thread)) return false;
    const BusyScope busy(thread);
    const std::uint32_t index = thread->depth - 1;
    if (index >= kInlineDepth || thread->cursor == thread->limit) return false;
    const OpenSlot& slot = thread->slots[index];
    const std::uint64_t what = load_relaxed(slot.what);
    const std::uint64_t start = load_relaxed(slot.start);
    // Site 0 only counts a begin made while recording was off.
    constexpr std::uint64_t kBegun = std::uint64_t{kSlotObjectless} << kSiteBits;
    if (what - (kBegun + 1) >= kMaxSites - 1 || start == 0) return false;
    return write_compact(thread, index, what & (kMaxSites - 1), start) == 0;
}

/// A scoped range on the open stack. Cannot be copied or moved (use marey::Range for that).
class ScopedRange {
  public:
    ScopedRange(Site& site, Scope scope) noexcept {
        ThreadState* const thread = current_thread;
        const std::uint64_t armed = load_relaxed(thread->armed);
        if ((armed & scope_bit(scope)) != 0) {
            const std::uint32_t id = load_relaxed(site.id);
            if (MAREY_DETAIL_LIKELY(may_open(thread, id))) {  // without a jump: 0.7 ns less
                open(thread, id);
            } else if (!may_skip(thread, armed, scope)) {
                take(open_slow(site, 0));
            }
        }
    }
    /// With values already pushed onto the side stack (0: none).
    ScopedRange(Site& site, Scope scope, std::uint32_t side) noexcept {
        if (side != 0) {
            ThreadState* const thread = current_thread;
            const std::uint32_t id = load_relaxed(site.id);
            if (may_open(thread, id)) {
                open(thread, id | std::uint64_t{side} << 32);
                index_ = kOpenUnusual;
            } else {
                take(open_slow(site, side));
            }
        } else if (should_record(scope)) {
            take(open_slow(site, 0));
        }
    }
    /// With a name made at run time.
    ScopedRange(std::string_view name, Scope scope, std::uint32_t side = 0) noexcept {
        ThreadState* const thread = current_thread;
        const std::uint64_t armed = load_relaxed(thread->armed);
        if ((armed & scope_bit(scope)) != 0) {
            const std::uint32_t id = dynamic_site(name, scope);
            if (side == 0 && may_open(thread, id)) {
                open(thread, id);
            } else {
                take(open_site_slow(id, scope, side));
            }
        }
    }
    [[gnu::always_inline]] ~ScopedRange() {
        if (index_ != kNotOpen) close();
    }
    ScopedRange(const ScopedRange&) = delete;
    ScopedRange& operator=(const ScopedRange&) = delete;

    /// Ends the range before its scope ends; the destructor then does nothing.
    void end() noexcept {
        if (index_ != kNotOpen) close();
        index_ = kNotOpen;
    }

  private:
    void take(Opened opened) noexcept {
        start_ = opened.start;
        index_ = opened.index;
    }

    [[gnu::always_inline]] void open(ThreadState* thread, std::uint64_t what) noexcept {
        take(open_slot(thread, what));
    }

    [[gnu::always_inline]] void close() noexcept { close_range({start_, index_}); }

    std::uint32_t index_ = kNotOpen;
    std::uint64_t start_ = 0;
};

}  // namespace layout1
}  // namespace marey::detail
