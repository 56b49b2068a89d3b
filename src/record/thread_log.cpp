// thread_log.cpp: appending records, and the uncommon paths of the open stack.
#include "record/thread_log.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <marey/detail/operator_path.h>
#include <marey/detail/values.h>
#include <marey/range.h>

#include "record/clocks/clock.h"
#include "record/observers.h"
#include "record/recorder.h"

namespace marey {

using detail::kArmedAttention;
using detail::kArmedRecorder;
using detail::kNotOpen;
using detail::load_relaxed;
using detail::LongRecord;
using detail::Opened;
using detail::OpenSlot;
using detail::RecordKind;
using detail::store_relaxed;
using detail::store_release;
using detail::ThreadState;

namespace {

std::uint32_t never_inline = 0;

constexpr ThreadState out_of_line_state() {
    ThreadState state{};
    state.inline_word = &never_inline;
    return state;
}

}  // namespace

constinit ThreadState unregistered_thread = out_of_line_state();
constinit ThreadState idle_thread = out_of_line_state();
constinit ThreadState disabled_thread = out_of_line_state();
constinit thread_local std::uint32_t unregistered_off_begins __attribute__((tls_model("initial-exec"))) = 0;

// The state of a thread that is switched off.
constinit thread_local ThreadState* switched_off __attribute__((tls_model("initial-exec"))) = nullptr;
constinit thread_local std::uint32_t inside_depth __attribute__((tls_model("initial-exec"))) = 0;

namespace detail {
inline namespace layout1 {
__thread ThreadState* current_thread __attribute__((tls_model("initial-exec"))) = &unregistered_thread;
__thread const std::uint32_t* current_inline __attribute__((tls_model("initial-exec"))) = &never_inline;
}  // namespace layout1
}  // namespace detail

void set_current_thread(ThreadState* state) noexcept {
    // A signal handler in between records out of line.
    detail::current_inline = &never_inline;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    detail::current_thread = state;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    detail::current_inline = state->inline_word;
}

void set_armed(ThreadState& state, std::uint64_t armed) noexcept {
    const bool is_usual = (armed & (detail::kArmedOutOfLine | kArmedRecorder)) == kArmedRecorder;
    store_relaxed(*state.inline_word, is_usual ? 1u : 0u);
    store_relaxed(state.armed, armed);
}

bool is_enabled() noexcept {
    return detail::current_thread != &disabled_thread;
}

void set_enabled(bool enabled) noexcept {
    if (enabled == is_enabled()) return;
    if (enabled) {
        set_current_thread(switched_off);
    } else {
        switched_off = detail::current_thread;
        std::atomic_signal_fence(std::memory_order_seq_cst);
        set_current_thread(&disabled_thread);
    }
}

void check_thread_slow() noexcept {
    check_process();
    const std::uint32_t left = detail::load_relaxed(left_parents);
    if (seen_left_parents == left) return;
    // Another thread of this process has left the parent.
    seen_left_parents = left;
    if (switched_off != nullptr) switched_off = &unregistered_thread;
    if (is_enabled() && detail::current_thread != &idle_thread) set_current_thread(&unregistered_thread);
}

void add_dropped(ThreadState& state, std::uint64_t count) noexcept {
    __atomic_fetch_add(&state.dropped, count, __ATOMIC_RELAXED);
}

SlowPath::SlowPath(bool is_record) noexcept {
    check_thread();
    ThreadState* const state = detail::current_thread;
    entered_ = inside_depth == 0 && load_relaxed(state->busy) == 0;
    if (!entered_) {
        if (!is_record) return;
        if (state->owner != nullptr) {
            add_dropped(*state, 1);
        } else {
            Recorder::get().count_lost();
        }
        return;
    }
    // `busy` is set first and cleared last: a signal handler that runs in between opens nothing that it could
    // not close.
    if (state->owner != nullptr) store_relaxed(state->busy, 1u);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    ++inside_depth;
}

SlowPath::~SlowPath() {
    if (!entered_) return;
    --inside_depth;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    ThreadState* const state = detail::current_thread;
    if (state->owner != nullptr) store_relaxed(state->busy, 0u);
}

ThreadState* ready_thread() noexcept {
    ThreadState* const state = detail::current_thread;
    if (state->owner != nullptr && (load_relaxed(state->armed) & kArmedAttention) == 0) return state;
    ThreadState* const ready = Recorder::get().handle_attention();
    if (ready == nullptr) {
        Recorder::get().count_lost();
    } else {
        store_relaxed(ready->busy, 1u);  // registered, or moved, just now
    }
    return ready;
}

namespace {

bool records(const ThreadState& state) noexcept {
    return (load_relaxed(state.armed) & kArmedRecorder) != 0;
}

}  // namespace

bool writes_ends(const ThreadState& state) noexcept {
    if (records(state)) return true;
    const auto* const entry = static_cast<const ThreadEntry*>(state.owner);
    return entry != nullptr && Recorder::get().has_open_session() &&
           !entry->needs_attention.load(std::memory_order_relaxed);
}

ThreadState* ending_thread() noexcept {
    ThreadState* const state = ready_thread();
    if (state == nullptr || writes_ends(*state) || !Recorder::get().has_open_session()) return state;
    ThreadState* const current = Recorder::get().handle_attention();
    if (current != nullptr) store_relaxed(current->busy, 1u);
    return current;
}

// ---- appending ----

void count_dropped(ThreadState& state, std::uint32_t depth, std::uint64_t count) noexcept {
    if (!records(state)) return;  // the last session has reached its size limit: no loss
    add_dropped(state, count);
    state.gap_records += count;
    state.gap_min_depth = std::min(state.gap_min_depth, depth);
}

LongRecord* append_long(ThreadState& state, RecordKind kind, std::size_t payload_bytes) noexcept {
    const std::size_t bytes = (sizeof(LongRecord) + payload_bytes + 15) / 16 * 16;
    auto* const record = reinterpret_cast<LongRecord*>(state.cursor);
    *record = LongRecord{};
    record->kind = static_cast<std::uint8_t>(kind);
    record->units = static_cast<std::uint16_t>(bytes / detail::kRecordUnit);
    record->payload_bytes = static_cast<std::uint32_t>(payload_bytes);
    state.cursor += bytes;
    return record;
}

void commit(ThreadState& state) noexcept {
    store_release(*state.committed, static_cast<std::uint64_t>(state.cursor - state.chunk_data));
}

namespace {

// Records that `records` are missing here, and how far down the open stack went since. There is space for it.
void write_gap(ThreadState& state, std::uint64_t ticks, std::uint64_t records, std::uint32_t depth) noexcept {
    LongRecord* const gap = append_long(state, RecordKind::Dropped, 0);
    gap->time = ticks;
    gap->word2 = records;
    gap->depth = depth;
    commit(state);
}

}  // namespace

void write_context_mark(ThreadState& state, std::uint64_t ticks) noexcept {
    LongRecord* const mark = append_long(state, RecordKind::ContextMark, 0);
    mark->time = ticks;
    mark->word2 = state.context;
    mark->depth = state.depth;
    commit(state);
}

bool ensure_room(ThreadState& state, std::size_t bytes, std::uint64_t ticks) noexcept {
    if (state.cursor != nullptr && static_cast<std::size_t>(state.limit - state.cursor) >= bytes) return true;
    auto* const entry = static_cast<ThreadEntry*>(state.owner);
    if (entry == nullptr || !Recorder::get().refill(*entry, ticks, bytes)) return false;
    if (state.gap_records != 0) {
        write_gap(state, ticks, state.gap_records, state.gap_min_depth);
        state.gap_records = 0;
        state.gap_min_depth = ~0u;
    }
    if (state.context != 0 || entry->has_marks)
        write_context_mark(state, ticks);  // a ring may overwrite the chunk with the last one
    return static_cast<std::size_t>(state.limit - state.cursor) >= bytes;
}

void write_range(ThreadState& state, const ClosedRange& range) noexcept {
    const std::size_t bytes = (sizeof(LongRecord) + range.payload.size() + 15) / 16 * 16;
    if (!ensure_room(state, bytes, range.end)) return count_dropped(state, range.depth);
    const std::uint64_t duration = range.end - range.start;
    const std::uint64_t delta = range.end - state.base_ticks;
    if (range.payload.empty() && range.flags == 0 && range.depth < 256 && range.site < detail::kMaxSites &&
        (duration >> detail::kDurationBits) == 0 && (delta >> detail::kDeltaBits) == 0) {
        auto* const record = reinterpret_cast<detail::CompactRecord*>(state.cursor);
        record->word0 =
            static_cast<std::uint64_t>(RecordKind::Range) | std::uint64_t{range.depth} << 8 | delta << 16;
        record->word1 = range.site | duration << detail::kSiteBits;
        state.cursor += detail::kRecordUnit;
    } else {
        LongRecord* const record = append_long(state, RecordKind::LongRange, range.payload.size());
        record->flags = range.flags;
        record->site = range.site;
        record->time = range.start;
        record->word2 = range.end;
        record->depth = range.depth;
        if (!range.payload.empty()) std::memcpy(record + 1, range.payload.data(), range.payload.size());
    }
    commit(state);
}

// ---- the open stack ----

Opened push_open(ThreadState& state, std::uint32_t site, std::uint8_t flags, std::uint32_t side) noexcept {
    const std::uint32_t index = state.depth;
    OpenSlot* const slot = Recorder::get().threads().slot(state, index);
    if (slot == nullptr) {
        count_dropped(state, index);
        drop_side(state, side);
        return {0, kNotOpen};
    }
    Recorder::get().journal().use_site(site);
    store_relaxed(state.depth, index + 1);
    store_relaxed(slot->what, site | std::uint64_t{flags} << detail::kSiteBits | std::uint64_t{side} << 32);
    const std::uint64_t start = std::max<std::uint64_t>(Clock::now(), 1);
    store_release(slot->start, start);
    return {start, index < detail::kInlineDepth && flags == 0 && side == 0 ? index : detail::kOpenUnusual};
}

namespace {

// Cuts the side stack after the values of the innermost of `depth` open ranges: the values above them are
// unused.
void reclaim_side(ThreadState& state, std::uint32_t depth) noexcept {
    std::size_t used = 0;
    while (depth != 0 && used == 0) {
        const auto side = static_cast<std::uint32_t>(
            load_relaxed(Recorder::get().threads().slot(state, --depth)->what) >> 32);
        if (side == 0) continue;
        used = (side - 1) * std::size_t{8} + sizeof(detail::SideEntry) + side_payload(state, side).size();
    }
    state.side_used = static_cast<std::uint32_t>(used + 7) & ~7u;
    if (used == 0) state.side_leaked = 0;
}

}  // namespace

bool is_call(const OpenSlot& slot) noexcept {
    const std::uint32_t site = site_of(slot);
    if (site == 0) return false;
    const Scope scope = Recorder::get().names().site(site).scope;
    return scope == Scope::PythonFunction || scope == Scope::CFunction;
}

namespace {

std::atomic<detail::IsWaitedFor> waited_ranges{nullptr};

// A range that is ended from within calls that began inside it (an __exit__ method and the functions it
// calls): those calls are the ones that cross.
bool ends_around_calls(ThreadState& state, std::uint32_t index) noexcept {
    ThreadRegistry& threads = Recorder::get().threads();
    if (is_call(*threads.slot(state, index))) return false;
    for (std::uint32_t above = index + 1; above < state.depth; ++above) {
        if (!is_call(*threads.slot(state, above))) return false;
    }
    return true;
}

// Ranges that end around functions that were waited for have waited: the thread that resumed them is about to
// record it.
void end_waited(ThreadState& state, std::uint32_t index, std::uint64_t now) noexcept {
    ThreadRegistry& threads = Recorder::get().threads();
    for (std::uint32_t above = index + 1; above < state.depth; ++above) {
        const OpenSlot& slot = *threads.slot(state, above);
        if (!is_waited_for(site_of(slot)) && !is_call(slot)) return;
    }
    for (std::uint32_t above = state.depth; --above > index;) {
        if (is_waited_for(site_of(*threads.slot(state, above))))
            pop_open(state, above, now, detail::kRecordUnfinished);
    }
}

}  // namespace

bool is_waited_for(std::uint32_t site) noexcept {
    const detail::IsWaitedFor decide = waited_ranges.load(std::memory_order_relaxed);
    if (decide == nullptr || site == 0) return false;
    const NameTable::SiteProperties facts = Recorder::get().names().site(site);
    return decide(facts.scope, facts.name);
}

Opened insert_open(ThreadState& state, std::uint32_t index, std::uint32_t site, std::uint64_t start,
                   std::uint32_t side) noexcept {
    ThreadRegistry& threads = Recorder::get().threads();
    const std::uint32_t last = state.depth;
    // Values lie in the order of the ranges that they belong to.
    for (std::uint32_t above = index; above < last && side != 0; ++above) {
        if (load_relaxed(threads.slot(state, above)->what) >> 32 != 0)
            drop_side(state, std::exchange(side, 0));
    }
    if (push_open(state, site, 0, side).index == kNotOpen) return {0, kNotOpen};
    const auto set = [](OpenSlot& slot, std::uint64_t what, std::uint64_t begin) {
        store_release(slot.start, std::uint64_t{0});
        store_relaxed(slot.what, what);
        store_release(slot.start, begin);
    };
    for (std::uint32_t above = last; above > index; --above) {
        const OpenSlot& from = *threads.slot(state, above - 1);
        set(*threads.slot(state, above), load_relaxed(from.what), load_relaxed(from.start));
    }
    // It is not outside the ranges that were open before.
    if (index != 0) start = std::max(start, load_relaxed(threads.slot(state, index - 1)->start));
    set(*threads.slot(state, index), site | std::uint64_t{side} << 32, start);
    return {start, index < detail::kInlineDepth && side == 0 ? index : detail::kOpenUnusual};
}

void pop_open(ThreadState& state, std::uint32_t index, std::uint64_t now, std::uint8_t flags) noexcept {
    ThreadRegistry& threads = Recorder::get().threads();
    OpenSlot* const slot = threads.slot(state, index);
    const std::uint64_t start = load_relaxed(slot->start);
    const std::uint64_t what = load_relaxed(slot->what);
    const auto site = static_cast<std::uint32_t>(what & (detail::kMaxSites - 1));
    const auto side = static_cast<std::uint32_t>(what >> 32);
    const bool ends_here = (flags & detail::kRecordAsync) == 0;
    if (index + 1 != state.depth && ends_here) end_waited(state, index, now);
    const bool innermost = index + 1 == state.depth;
    const bool nests = innermost || (ends_here && ends_around_calls(state, index));
    if (now < start) {
        now = start;
        store_relaxed(state.clamped, state.clamped + 1);
    }
    if (!writes_ends(state)) {
        // Nothing records any more: the range is in the views of the sessions that saw it open.
    } else if (site == 0) {
        // It only counted a begin made while nothing recorded. Ranges inside it must not appear to lie inside
        // the next range of its depth.
        if (ensure_room(state, sizeof(LongRecord), now)) write_gap(state, now, 0, index);
    } else {
        flags |= static_cast<std::uint8_t>((what >> detail::kSiteBits) & 0x7f);
        if (!nests) flags |= detail::kRecordAsync;
        if (!nests && is_call(*slot) && !is_call(*threads.slot(state, index + 1)))
            flags |= detail::kRecordCrosses;  // a range began in it (an __enter__ method) and continues
        write_range(state, {start, now, index, site, flags, side_payload(state, side)});
    }
    if (innermost) {
        drop_side(state, side);
        store_release(threads.slot(state, index)->start, std::uint64_t{0});
        if (state.side_leaked != 0) reclaim_side(state, index);
    } else {
        if (side != 0) state.side_leaked = 1;
        for (std::uint32_t above = index + 1; above < state.depth; ++above) {
            const OpenSlot& from = *threads.slot(state, above);
            OpenSlot& to = *threads.slot(state, above - 1);
            store_release(to.start, std::uint64_t{0});
            // Ranges that have moved are not closed inline: they are not at the place where they began.
            constexpr std::uint64_t kCrosses = std::uint64_t{detail::kRecordAsync | detail::kRecordCrosses}
                                               << detail::kSiteBits;
            store_relaxed(to.what, load_relaxed(from.what) | (nests ? kCrosses : 0));
            store_release(to.start, load_relaxed(from.start));
        }
        store_release(threads.slot(state, state.depth - 1)->start, std::uint64_t{0});
    }
    store_release(state.depth, state.depth - 1);
}

std::uint32_t find_open(ThreadState& state, std::uint32_t index, std::uint64_t start) noexcept {
    ThreadRegistry& threads = Recorder::get().threads();
    if (index < state.depth && load_relaxed(threads.slot(state, index)->start) == start) return index;
    const std::uint32_t first = std::min(index, state.depth);
    for (index = first; index-- != 0;) {
        if (load_relaxed(threads.slot(state, index)->start) == start) return index;
    }
    for (index = first; index < state.depth; ++index) {
        if (load_relaxed(threads.slot(state, index)->start) == start) return index;
    }
    return kNotOpen;
}

void close_all_open(ThreadState& state) noexcept {
    SlowPath path;
    if (!path) return;
    const std::uint64_t now = Clock::now();
    while (state.depth != 0) pop_open(state, state.depth - 1, now, detail::kRecordUnfinished);
}

std::uint64_t next_async_id(ThreadState& state) noexcept {
    return std::uint64_t{static_cast<ThreadEntry*>(state.owner)->id} << 40 | ++state.next_async;
}

Opened open_recorded(std::uint32_t site, Scope scope, std::uint32_t side) noexcept {
    if ((load_relaxed(detail::current_thread->armed) & (kArmedRecorder | kArmedAttention)) == 0)
        return {0, kNotOpen};
    SlowPath path;
    if (!path) return {0, kNotOpen};
    ThreadState* const state = ready_thread();
    if (state == nullptr) return {0, kNotOpen};
    const std::uint64_t armed = load_relaxed(state->armed);
    if (site == 0 || (armed & detail::scope_bit(scope)) == 0 || (armed & kArmedRecorder) == 0) {
        drop_side(*state, side);
        return {0, kNotOpen};
    }
    return push_open(*state, site, 0, side);
}

namespace {

// A signal handler that has interrupted the recorder opens ranges inline; if an end would need the recorder,
// the range is lost but does not stay open.
void abandon_innermost(std::uint64_t start) noexcept {
    ThreadState& state = *detail::current_thread;
    const std::uint32_t depth = state.depth;
    if (state.owner == nullptr || load_relaxed(state.busy) != 0 || depth == 0 || depth > detail::kOpenSlots)
        return;
    OpenSlot& slot = state.slots[depth - 1];
    if (load_relaxed(slot.start) != start) return;
    drop_side(state, static_cast<std::uint32_t>(load_relaxed(slot.what) >> 32));
    store_release(slot.start, std::uint64_t{0});
    store_release(state.depth, depth - 1);
}

}  // namespace

void close_recorded(std::uint32_t index, std::uint64_t start, std::uint64_t now) noexcept {
    SlowPath path;
    if (!path) return abandon_innermost(start);
    ThreadState* const state = detail::current_thread->owner != nullptr ? ending_thread() : nullptr;
    if (state == nullptr) return;  // the thread has ended, or is between fork's handlers
    if (!Clock::is_inline()) now = Clock::now();
    index = find_open(*state, index, start);
    if (index == kNotOpen) {
        auto& entry = *static_cast<ThreadEntry*>(state->owner);
        if (entry.ended_early != 0)
            --entry.ended_early;
        else if (start >= entry.left_parent)
            store_relaxed(state->resyncs, state->resyncs + 1);
        return;
    }
    pop_open(*state, index, now, 0);
}

namespace detail {
inline namespace layout1 {

Opened open_site_slow(std::uint32_t site, Scope scope, std::uint32_t side) noexcept {
    check_thread();
    if ((load_relaxed(current_thread->armed) & kArmedObservers) == 0) return open_recorded(site, scope, side);
    return open_observed(*current_thread, site, scope, side);
}

Opened open_slow(Site& site, std::uint32_t side) noexcept {
    check_thread();
    const ThreadState& state = *current_thread;
    if ((load_relaxed(state.armed) & kArmedObservers) == 0)
        return open_recorded(site_id(site), site.scope, side);
    return open_observed(state, site_id(site), site.scope, side);
}

std::uint32_t register_site(Site& site) noexcept {
    SlowPath path(kNoRecord);
    if (!path) return 0;
    const std::uint32_t id = Recorder::get().journal().register_site(site);
    store_release(site.id, id);
    return id;
}

void close_slow(std::uint32_t index, std::uint64_t start) noexcept {
    if (current_thread == &disabled_thread) [[unlikely]] {
        const ScopedEnable enabled;
        return close_slow(index, start);
    }
    if (may_read_clock()) close_recorded(index, start, Clock::now());
}

void close_elsewhere(const Opened opened, std::uint32_t thread) noexcept {
    const ScopedEnable enabled;
    if (opened.index == kOpenObserved) return close_observed(opened.start);
    if (!may_read_clock()) return;
    const std::uint64_t now = Clock::now();
    if (current_thread->block.thread == thread) return close_recorded(opened.index, opened.start, now);
    const SlowPath path(kNoRecord);
    if (path) Recorder::get().end_elsewhere(thread, {opened.index, opened.start, now});
}

void set_waited_ranges(IsWaitedFor decide) noexcept {
    waited_ranges.store(decide, std::memory_order_relaxed);
}

void close_unusual(std::uint32_t index, std::uint64_t start, std::uint64_t now) noexcept {
    ThreadState* const state = current_thread;
    const bool done = index == kOpenUnusual && close_valued(*state, start);
    clear_busy(state);
    if (done) return;
    if (index == kOpenObserved) return close_observed(start);
    if (now == 0) return close_slow(index, start);
    close_recorded(index, start, now);
}

namespace {

// A separate function, so that the usual path has no frame to set up.
[[gnu::noinline]] std::uint32_t intern_dynamic_site(std::string_view name, Scope scope) noexcept {
    SlowPath path(kNoRecord);
    return path ? Recorder::get().journal().intern_dynamic(name, scope) : 0;
}

}  // namespace

std::uint32_t dynamic_site(std::string_view name, Scope scope) noexcept {
    const std::uint32_t known = Recorder::get().names().find_dynamic(name, scope);
    return known != 0 ? known : intern_dynamic_site(name, scope);
}

std::uint32_t operator_site(std::string_view name, std::string_view overload, Scope scope) noexcept {
    const SlowPath path(kNoRecord);
    return path ? Recorder::get().journal().intern_site(name, overload, 0, scope, kSiteOverload) : 0;
}

std::uint32_t intern_string(std::string_view text) noexcept {
    return Recorder::get().journal().intern(text);
}

}  // namespace layout1
}  // namespace detail

}  // namespace marey
