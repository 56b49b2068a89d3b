// operator_path.h: the inlined range of an operator: plain, with its sequence number, or with its inputs.
#pragma once

#include <cstring>
#include <string_view>

#include <marey/detail/hot_path.h>

namespace marey::detail {
inline namespace layout1 {

/// Closes a range of the calling thread, or of thread `thread`, with facts that are not in the log yet.
MAREY_API void close_with_facts_slow(Opened opened, std::uint32_t thread,
                                     const RangeProperties& facts) noexcept;

/// Decides whether the code that begins a range waits for its end, though another thread may end it: such a
/// range nests on the thread that began it.
using IsWaitedFor = bool (*)(Scope scope, std::string_view name) noexcept;
/// Set by the source of a framework that has such ranges; null: there are none. Any thread.
MAREY_API void set_waited_ranges(IsWaitedFor decide) noexcept;

/// Whether a range of `scope` is recorded and may be opened inline by a caller that keeps its facts.
[[gnu::always_inline]] inline bool may_open_operator(const ThreadState* thread, Scope scope) noexcept {
    constexpr std::uint64_t kGathered = kArmedOutOfLine | kArmedShapes;
    return (load_relaxed(thread->armed) & (scope_bit(scope) | kGathered)) == scope_bit(scope);
}

/// Closes a range that thread `number` opened inline, with its facts. The facts are in the log only from then
/// on; after an earlier crash they are missing.
[[gnu::always_inline]] inline void close_with_facts(const Opened opened, std::uint32_t number,
                                                    const RangeProperties& facts) noexcept {
    constexpr std::size_t kBytes = sizeof(LongRecord);
    ThreadState* const thread = current_thread;
    if (!is_usual(thread) || thread->block.thread != number) [[unlikely]]
        return close_with_facts_slow(opened, number, facts);
    set_busy(thread);
    OpenSlot& slot = thread->slots[opened.index];
    const std::uint64_t what = load_relaxed(slot.what);
    const auto sequence = static_cast<std::uint64_t>(facts.sequence);
    bool is_fast_path = thread->depth == opened.index + 1 && load_relaxed(slot.start) == opened.start &&
                        what < kMaxSites && thread->limit - thread->cursor >= std::ptrdiff_t{kBytes} &&
                        facts.id == 0;
    if (is_fast_path) [[likely]] {
        std::byte* const place = thread->cursor;
        const std::uint64_t head = static_cast<std::uint64_t>(RecordKind::SequencedRange) |
                                   std::uint64_t{opened.index} << 8 | kBytes / kRecordUnit << 16 | what << 32;
        const std::uint64_t duration = read_counter() - opened.start;
        is_fast_path = (duration | sequence | facts.forward_thread) >> 32 == 0;
        if (is_fast_path) [[likely]] {
            const std::uint64_t words[] = {head, opened.start, duration | sequence << 32,
                                           facts.forward_thread};
            static_assert(sizeof words == kBytes && kInlineDepth <= 256);
            std::memcpy(place, words, sizeof words);
            thread->cursor = place + kBytes;
            __builtin_prefetch(place + kBytes + kPrefetchAhead, 1);
            store_release(*thread->committed,
                          static_cast<std::uint64_t>(thread->cursor - thread->chunk_data));
            store_release(slot.start, std::uint64_t{0});
            store_release(thread->depth, opened.index);
        }
    }
    clear_busy(thread);
    if (!is_fast_path) [[unlikely]]
        close_with_facts_slow(opened, number, facts);
}

/// Whether a range of `scope` is recorded and may be opened by open_with_inputs() (operation.h).
[[gnu::always_inline]] inline bool may_open_with_inputs(const ThreadState* thread, Scope scope) noexcept {
    const std::uint64_t wanted = scope_bit(scope) | kArmedShapes | kArmedRecorder;
    return (load_relaxed(thread->armed) & (wanted | kArmedOutOfLine)) == wanted;
}

/// Opens a range of a registered site whose values are on the side stack. The caller has checked may_open().
[[gnu::always_inline]] inline Opened open_valued(ThreadState* thread, std::uint32_t site,
                                                 std::uint32_t side) noexcept {
    return {open_slot(thread, site | std::uint64_t{side} << 32).start, kOpenUnusual};
}

/// Prefetches the memory of a record with that payload: it is not in the cache yet, and the next wait for
/// stores would have to wait for it.
[[gnu::always_inline]] inline void prefetch_log(const ThreadState* thread,
                                                std::size_t payload_bytes) noexcept {
    constexpr std::size_t kLine = 64;
    for (std::size_t at = 0; at < sizeof(LongRecord) + payload_bytes + kLine; at += kLine)
        __builtin_prefetch(thread->cursor + at, 1);
}

/// Closes the innermost range, with values, on the fast path. The caller has called set_busy() and checked
/// that ranges may be recorded inline. Returns false if it is another case; then nothing was done.
[[gnu::always_inline]] inline bool close_valued(ThreadState& state, std::uint64_t start) noexcept {
    const std::uint32_t depth = state.depth;
    if (depth == 0 || depth > kOpenSlots || state.side_leaked != 0) return false;
    OpenSlot& slot = state.slots[depth - 1];
    const std::uint64_t what = load_relaxed(slot.what);
    const auto side = static_cast<std::uint32_t>(what >> 32);
    if (load_relaxed(slot.start) != start || side == 0 || (what >> kSiteBits & 0xff) != 0) return false;
    const std::size_t offset = (side - 1) * std::size_t{8};
    if (offset >= kSideBytes) return false;
    SideEntry head;
    std::memcpy(&head, state.side + offset, sizeof head);
    const std::size_t bytes = (sizeof(LongRecord) + head.bytes + 15) / 16 * 16;
    if (static_cast<std::size_t>(state.limit - state.cursor) < bytes ||
        offset + sizeof head + bytes - sizeof(LongRecord) > kSideBytes) {
        return false;
    }
    auto* const record = reinterpret_cast<LongRecord*>(state.cursor);
    // Copy in pieces of sixteen bytes up to the size of the record; bytes after the values are unused bytes
    // of the side stack.
    const std::byte* from = state.side + offset + sizeof head;
    auto* to = reinterpret_cast<std::byte*>(record + 1);
    for (std::size_t left = bytes - sizeof(LongRecord); left != 0; left -= 16, from += 16, to += 16)
        std::memcpy(to, from, 16);
    std::uint64_t now = read_counter();
    if (now < start) {
        now = start;
        store_relaxed(state.clamped, state.clamped + 1);
    }
    record->kind = static_cast<std::uint8_t>(RecordKind::LongRange);
    record->flags = 0;
    record->units = static_cast<std::uint16_t>(bytes / kRecordUnit);
    record->site = static_cast<std::uint32_t>(what & (kMaxSites - 1));
    record->time = start;
    record->word2 = now;
    record->depth = depth - 1;
    record->payload_bytes = head.bytes;
    state.cursor += bytes;
    store_release(*state.committed, static_cast<std::uint64_t>(state.cursor - state.chunk_data));
    state.side_used = static_cast<std::uint32_t>(offset);
    store_release(slot.start, std::uint64_t{0});
    store_release(state.depth, depth - 1);
    return true;
}

/// Closes a range that open_with_inputs() opened on thread `number` (not kNotOpen).
[[gnu::always_inline]] inline void close_with_inputs(const Opened opened, std::uint32_t number) noexcept {
    ThreadState* const thread = current_thread;
    if (thread->block.thread != number) [[unlikely]]
        return close_elsewhere(opened, number);
    if (opened.index != kOpenUnusual) return close_range(opened);
    if (!is_usual(thread)) [[unlikely]]
        return close_slow(opened.index, opened.start);
    set_busy(thread);
    const bool done = close_valued(*thread, opened.start);
    clear_busy(thread);
    if (!done) [[unlikely]]
        close_slow(opened.index, opened.start);
}

}  // namespace layout1
}  // namespace marey::detail
