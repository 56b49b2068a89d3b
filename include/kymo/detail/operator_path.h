// operator_path.h: an operator's range, inlined: as a scope, with a sequence number that goes behind its
// record.
#pragma once

#include <cstring>

#include <kymo/detail/hot_path.h>

namespace kymo::detail {
inline namespace layout1 {

/// Closes a range of the calling thread, or of thread `thread`, with facts that nobody has been told yet.
KYMO_API void close_with_facts_slowly(Opened opened, std::uint32_t thread, const RangeFacts& facts) noexcept;

/// Whether a range may be opened inline by somebody who keeps its facts, and `scope` is wanted.
[[gnu::always_inline]] inline bool may_open_operator(const ThreadState* thread, Scope scope) noexcept {
    constexpr std::uint64_t kGathered = kArmedOutOfLine | kArmedShapes;
    return (load_relaxed(thread->armed) & (scope_bit(scope) | kGathered)) == scope_bit(scope);
}

/// Closes a range that was opened inline, by the thread with number `thread`, with its facts. They are in the
/// log from then on; until then a crash does not show them.
[[gnu::always_inline]] inline void close_with_facts(const Opened opened, std::uint32_t number,
                                                    const RangeFacts& facts) noexcept {
    constexpr std::size_t kBytes = sizeof(LongRecord);
    ThreadState* const thread = current_thread;
    if (load_relaxed(thread->is_inline) == 0 || load_relaxed(thread->busy) != 0 ||
        thread->block.thread != number) [[unlikely]] {
        return close_with_facts_slowly(opened, number, facts);
    }
    store_relaxed(thread->busy, 1u);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    OpenSlot& slot = thread->slots[opened.index];
    const std::uint64_t what = load_relaxed(slot.what);
    const auto sequence = static_cast<std::uint64_t>(facts.sequence);
    bool is_usual = thread->depth == opened.index + 1 && load_relaxed(slot.start) == opened.start &&
                    what < kMaxSites && thread->limit - thread->cursor >= std::ptrdiff_t{kBytes} &&
                    facts.id == 0;
    if (is_usual) [[likely]] {
        std::byte* const place = thread->cursor;
        const std::uint64_t head = static_cast<std::uint64_t>(RecordKind::SequencedRange) |
                                   std::uint64_t{opened.index} << 8 | kBytes / kRecordUnit << 16 | what << 32;
        const std::uint64_t duration = read_counter() - opened.start;
        is_usual = (duration | sequence | facts.forward_thread) >> 32 == 0;
        if (is_usual) [[likely]] {
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
    std::atomic_signal_fence(std::memory_order_seq_cst);
    store_relaxed(thread->busy, 0u);
    if (!is_usual) [[unlikely]]
        close_with_facts_slowly(opened, number, facts);
}

}  // namespace layout1
}  // namespace kymo::detail
