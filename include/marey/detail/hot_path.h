// hot_path.h: opening and closing a scope, inlined into the caller. Everything unusual goes out of line.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include <marey/detail/counter.h>
#include <marey/detail/export.h>
#include <marey/detail/thread_state.h>
#include <marey/scope.h>

namespace marey::detail {
inline namespace layout1 {

/// A place in the source that marks ranges: a static object of constant initialisation, known to the recorder
/// by `id` from its first use on. The recorder copies what it needs, so the site may be unloaded later.
struct Site {
    const char* name;
    const char* file;
    std::uint32_t line;
    Scope scope;
    std::uint32_t layout = kLayoutNumber;
    std::uint32_t id = 0;  ///< 0: not registered, or refused
};

/// This thread's state. Points to a shared, never written one until the recorder has registered the thread.
/// Initial-exec: one load off the thread pointer, also from shared libraries (measurements: 0.77 against 2.3
/// ns).
MAREY_API extern constinit thread_local ThreadState* current_thread
    __attribute__((tls_model("initial-exec")));

/// What opening gives: the slot's index and its start. Fits two registers, so that a scope never has to live
/// in memory.
struct Opened {
    std::uint64_t start;
    std::uint32_t index;
};
inline constexpr std::uint32_t kNotOpen = ~0u;  ///< nothing was opened
inline constexpr std::uint32_t kOpenUnusual =
    ~1u;  ///< open, but not to be closed inline: deep, or with values
inline constexpr std::uint32_t kOpenObserved = ~2u;  ///< watched: `start` is its frame
inline constexpr std::uint32_t kInlineDepth = 256;   ///< what a compact record can say
inline constexpr std::size_t kPrefetchAhead = 128;   ///< bytes

/// The out-of-line halves. None throws; observers are called from here.
MAREY_API Opened open_slow(Site& site, std::uint32_t side) noexcept;
MAREY_API Opened open_site_slow(std::uint32_t site, Scope scope, std::uint32_t side) noexcept;
MAREY_API void close_slow(std::uint32_t index, std::uint64_t start) noexcept;
/// Of a range that is watched: its `start` is its frame.
MAREY_API void close_observed(std::uint64_t frame) noexcept;
/// The same for a thread that has set `busy` already. `now` is 0 when the counter has not been read yet.
MAREY_API void close_unusual(std::uint32_t index, std::uint64_t start, std::uint64_t now) noexcept;
/// Of a range that may have been opened by another thread, `thread` (its number). It is async then.
MAREY_API void close_elsewhere(Opened opened, std::uint32_t thread) noexcept;
/// The calling thread's number; 0 before it has recorded anything.
inline std::uint32_t thread_number() noexcept {
    return current_thread->block.thread;
}
/// A site's number; registers it the first time. 0: it cannot be used.
MAREY_API std::uint32_t register_site(Site& site) noexcept;
inline std::uint32_t site_id(Site& site) noexcept {
    const std::uint32_t id = load_relaxed(site.id);
    return id != 0 ? id : register_site(site);
}
/// The site of a name made at run time: a lock-free look-up, interned the first time. 0 when there is no
/// room.
MAREY_API std::uint32_t dynamic_site(std::string_view name, Scope scope) noexcept;

/// The same of an operator that has overloads, each of which is a site of its own.
MAREY_API std::uint32_t operator_site(std::string_view name, std::string_view overload, Scope scope) noexcept;

/// True when an observer that will see the next range of this scope on this thread asks for inputs.
MAREY_API bool observers_need_inputs(Scope scope) noexcept;

inline constexpr std::uint64_t scope_bit(Scope scope) noexcept {
    return std::uint64_t{1} << static_cast<unsigned>(scope);
}

/// True when a range of this scope that opens now would be recorded or observed.
inline bool should_record(Scope scope) noexcept {
    return (load_relaxed(current_thread->armed) & scope_bit(scope)) != 0;
}
/// True when values attached to a range of this scope would be kept: the macros evaluate them only then.
inline bool values_wanted(Scope scope) noexcept {
    const std::uint64_t armed = load_relaxed(current_thread->armed);
    if ((armed & scope_bit(scope)) == 0) return false;
    return (armed & kArmedValues) != 0 || ((armed & kArmedObservers) != 0 && observers_need_inputs(scope));
}

/// True when a range may be opened inline.
inline bool may_open(const ThreadState* thread, std::uint32_t site) noexcept {
    return load_relaxed(thread->is_inline) != 0 && site != 0 && thread->depth < kInlineDepth &&
           load_relaxed(thread->busy) == 0;
}

/// True when nobody will see this range: only sampled observers are there, and it is counted as passed.
inline bool may_skip(ThreadState* thread, std::uint64_t armed, Scope scope) noexcept {
    std::uint32_t& left = thread->skip[static_cast<unsigned>(scope)];
    if ((armed & kArmedSkip) == 0 || left == 0) return false;
    --left;
    return true;
}

/// Fills the next slot. It counts once its start is set, so neither a reader nor a signal handler that lands
/// in between sees a half-filled one; the handler's own ranges go above it (those that end before the start
/// is read are then inside by depth and before it by time: the builder puts them on a side track).
[[gnu::always_inline]] inline Opened open_slot(ThreadState* thread, std::uint64_t what) noexcept {
    const std::uint32_t index = thread->depth;
    OpenSlot& slot = thread->slots[index];
    store_relaxed(thread->depth, index + 1);
    store_relaxed(slot.what, what);
    const std::uint64_t start = read_counter();
    store_release(slot.start, start);
    return {start, index};
}

/// Opens a range of a registered site; nothing when nobody wants it.
[[gnu::always_inline]] inline Opened open_range(std::uint32_t site, Scope scope) noexcept {
    ThreadState* const thread = current_thread;
    const std::uint64_t armed = load_relaxed(thread->armed);
    if ((armed & scope_bit(scope)) == 0) return {0, kNotOpen};
    if (may_open(thread, site)) return open_slot(thread, site);
    if (may_skip(thread, armed, scope)) return {0, kNotOpen};
    return open_site_slow(site, scope, 0);
}

/// Records the end of the innermost slot, which is `index`, as one compact record, for which there is room;
/// the thread is busy. Gives 0, or the time when that record could not hold it: nothing was done then.
[[gnu::always_inline]] inline std::uint64_t write_compact(ThreadState* thread, std::uint32_t index,
                                                          std::uint64_t site, std::uint64_t start) noexcept {
    std::byte* const place = thread->cursor;
    const std::uint64_t base = thread->base_ticks;
    // Read late: what comes before can be done while the counter is being read, what comes after cannot.
    const std::uint64_t now = read_counter();
    const std::uint64_t duration = now - start;
    const std::uint64_t delta = now - base;
    static_assert(kDeltaBits - kDurationBits == 8);
    if ((duration | delta >> 8) >> kDurationBits != 0) [[unlikely]]
        return now;
    auto* const record = reinterpret_cast<CompactRecord*>(place);
    record->word0 = static_cast<std::uint64_t>(RecordKind::Range) | std::uint64_t{index} << 8 | delta << 16;
    record->word1 = site | duration << kSiteBits;
    thread->cursor = place + kRecordUnit;
    __builtin_prefetch(place + kPrefetchAhead, 1);  // the log's memory is in no cache yet
    store_release(*thread->committed, static_cast<std::uint64_t>(place + kRecordUnit - thread->chunk_data));
    store_release(thread->slots[index].start, std::uint64_t{0});
    store_release(thread->depth, index);
    return 0;
}

/// close_range() where nothing is unusual: one record, of the innermost slot, if that is its own, with room
/// for it. False: nothing was done. `thread` is the calling one.
[[gnu::always_inline]] inline bool try_close_range(ThreadState* thread, const Opened opened) noexcept {
    if (load_relaxed(thread->is_inline) == 0 || load_relaxed(thread->busy) != 0) return false;
    // From here on a signal handler records nothing on this thread: nothing read below can change.
    store_relaxed(thread->busy, 1u);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    OpenSlot& slot = thread->slots[opened.index];
    const bool is_fast_path = thread->depth == opened.index + 1 && thread->cursor != thread->limit &&
                              load_relaxed(slot.start) == opened.start &&
                              write_compact(thread, opened.index, load_relaxed(slot.what), opened.start) == 0;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    store_relaxed(thread->busy, 0u);
    return is_fast_path;
}

/// Closes what was opened on this thread (and is open: not kNotOpen). A reader looks at the open stack first
/// and at the log after it, so the record is there before the slot is gone.
[[gnu::always_inline]] inline void close_range(const Opened opened) noexcept {
    ThreadState* const thread = current_thread;
    const std::uint32_t index = opened.index;
    const std::uint64_t start = opened.start;
    if (load_relaxed(thread->is_inline) == 0 || load_relaxed(thread->busy) != 0) [[unlikely]] {
        return index == kOpenObserved ? close_observed(start) : close_slow(index, start);
    }
    // From here on a signal handler records nothing on this thread: nothing read below can change.
    store_relaxed(thread->busy, 1u);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // One record, of the innermost slot, if that is its own, with room for it.
    if (thread->depth != index + 1 || thread->cursor == thread->limit) [[unlikely]] {
        return close_unusual(index, start, 0);
    }
    OpenSlot& slot = thread->slots[index];
    if (load_relaxed(slot.start) != start) [[unlikely]] {
        return close_unusual(index, start, 0);
    }
    const std::uint64_t site = load_relaxed(slot.what);  // no values, no flags: opened inline, or like it
    if (const std::uint64_t now = write_compact(thread, index, site, start)) [[unlikely]] {
        return close_unusual(index, start, now);
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
    store_relaxed(thread->busy, 0u);
}

/// marey_begin where nothing is unusual. False: nothing was done, call that.
[[gnu::always_inline]] inline bool begin_inline(std::uint32_t site, Scope scope) noexcept {
    ThreadState* const thread = current_thread;
    if (!should_record(scope) || !may_open(thread, site)) return false;
    open_slot(thread, site | std::uint64_t{kSlotObjectless} << kSiteBits);
    return true;
}

/// marey_end where nothing is unusual: the innermost range was begun by marey_begin, without values. False:
/// nothing was done, call that.
[[gnu::always_inline]] inline bool end_inline() noexcept {
    ThreadState* const thread = current_thread;
    if (load_relaxed(thread->is_inline) == 0 || load_relaxed(thread->busy) != 0) return false;
    const std::uint32_t index = thread->depth - 1;
    if (index >= kInlineDepth || thread->cursor == thread->limit) return false;
    const OpenSlot& slot = thread->slots[index];
    const std::uint64_t what = load_relaxed(slot.what);
    const std::uint64_t start = load_relaxed(slot.start);
    // Site 0 only keeps count of a begin made while off.
    constexpr std::uint64_t kBegun = std::uint64_t{kSlotObjectless} << kSiteBits;
    if (what - (kBegun + 1) >= kMaxSites - 1 || start == 0) return false;
    store_relaxed(thread->busy, 1u);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const bool done = write_compact(thread, index, what & (kMaxSites - 1), start) == 0;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    store_relaxed(thread->busy, 0u);
    return done;
}

/// A scope on the open stack. Ends where it began: neither copied nor moved (marey::Range is for that).
class ScopedRange {
  public:
    ScopedRange(Site& site, Scope scope) noexcept {
        ThreadState* const thread = current_thread;
        const std::uint64_t armed = load_relaxed(thread->armed);
        if ((armed & scope_bit(scope)) != 0) {
            const std::uint32_t id = load_relaxed(site.id);
            if (may_open(thread, id)) {
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

    /// Ends it before its scope does; the destructor then does nothing.
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
