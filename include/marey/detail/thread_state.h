// thread_state.h: the data that the inlined recording path uses. One ThreadState per thread, in a Thread
// block.
#pragma once

#include <cstddef>
#include <cstdint>

#include <marey/detail/counter.h>
#include <marey/detail/log_format.h>

namespace marey::detail {
inline namespace layout1 {

// Bits of ThreadState::armed. In the low half, bit i is set if ranges of Scope i are recorded or observed.

/// Take the out-of-line path: something must be done first.
inline constexpr std::uint64_t kArmedAttention = 1ull << 32;
inline constexpr std::uint64_t kArmedObservers = 1ull << 33;        ///< observers receive ranges
inline constexpr std::uint64_t kArmedSlowClock = 1ull << 34;        ///< the counter is unusable: out of line
inline constexpr std::uint64_t kArmedValues = 1ull << 35;           ///< values of ranges are recorded
inline constexpr std::uint64_t kArmedMemory = 1ull << 36;           ///< allocation reports are needed
inline constexpr std::uint64_t kArmedRecorder = 1ull << 37;         ///< some session records
inline constexpr std::uint64_t kArmedShapes = 1ull << 38;           ///< metadata of array inputs is needed
inline constexpr std::uint64_t kArmedConcrete = 1ull << 39;         ///< values of scalar inputs are needed
inline constexpr std::uint64_t kArmedMemoryObservers = 1ull << 40;  ///< observers receive allocations
inline constexpr std::uint64_t kArmedMemoryRecorder = 1ull << 41;   ///< sessions record allocations
/// There are only sampled observers: `skip` may be counted down.
inline constexpr std::uint64_t kArmedSkip = 1ull << 42;
inline constexpr std::uint64_t kArmedOutOfLine = kArmedAttention | kArmedObservers | kArmedSlowClock;

/// An open range. `start` is 0 while the slot is being filled or is empty.
/// what = site:24 | flags:8 (RecordFlags, kSlotObjectless) | side:32, where side is 1 + the 8-byte unit of
/// the side stack at which its values begin, or 0 if it has none.
struct OpenSlot {
    std::uint64_t start;
    std::uint64_t what;
};

inline constexpr std::uint8_t kSlotObjectless = 0x80;  ///< opened by begin(), to be closed by end()
inline constexpr std::size_t kOpenSlots = 1008;  ///< in the Thread block; deeper ranges are in OpenSegments
inline constexpr std::size_t kThreadFixedBytes = 512;
inline constexpr std::size_t kSideBytes = kBlockBytes - kThreadFixedBytes - kOpenSlots * sizeof(OpenSlot);
inline constexpr std::size_t kSlotsPerSegment = (kBlockBytes - sizeof(BlockHeader)) / sizeof(OpenSlot);

/// A side-stack entry: the values of one open range, `bytes` of payload after this head, padded to 8.
struct SideEntry {
    std::uint32_t bytes;
    std::uint32_t slot;  ///< the open slot that it belonged to when it was pushed
};

/// The state of one thread, which owns it. Other threads write only `armed` and `*inline_word` (under
/// ThreadEntry::arming), and read `depth`, slots and `*committed` while the thread runs. Pointers are
/// meaningless in a file; readers use the block headers.
struct ThreadState {
    BlockHeader block;

    std::uint64_t armed;        ///< bits; the owner uses relaxed loads
    std::uint32_t never;        ///< 0: files compiled against older headers then record out of line
    std::uint32_t side_leaked;  ///< values of ranges that ended out of order are still on the side stack
    std::uint32_t depth;        ///< number of open ranges; stored with release
    std::uint32_t busy;         ///< the owner is inside the recorder: records of signal handlers are dropped
    std::byte* cursor;          ///< position of the next record; equals limit if there is no space
    std::byte* limit;
    std::uint64_t* committed;  ///< the current chunk's BlockHeader::committed
    std::uint64_t base_ticks;  ///< the current chunk's
    std::byte* chunk_data;     ///< first byte after the current chunk's header
    void* owner;               ///< the recorder's ThreadEntry

    std::uint64_t dropped;
    std::uint64_t resyncs;
    std::uint64_t clamped;
    std::uint32_t gap_records;  ///< records dropped since the last Dropped record was written
    std::uint32_t gap_min_depth;
    std::uint32_t off_begins;    ///< calls of begin() at depth 0 while recording was off
    std::uint32_t side_used;     ///< bytes of the side stack in use
    std::uint64_t context;       ///< id of the current context; 0: none
    void* observers;             ///< the thread's ThreadObservers; null: none yet
    void* tracer;                ///< for the Python tracer
    std::uint64_t next_async;    ///< number of movable ranges begun here: the low part of their ids
    std::uint32_t skip[16];      ///< by scope: number of next ranges that no sampled observer receives
    std::uint32_t names_number;  ///< changes when sites of run-time names must be looked up again
    std::uint32_t reserved0;
    std::uint32_t* inline_word;  ///< current_inline of the owner
    ChunkName newest_chunk;      ///< the current one, or the last one
    std::uint64_t reserved[19];

    OpenSlot slots[kOpenSlots];
    std::byte side[kSideBytes];
};
static_assert(offsetof(ThreadState, slots) == kThreadFixedBytes);
static_assert(sizeof(ThreadState) == kBlockBytes);

/// Marks the calling thread busy until clear_busy(). This is what makes the recorder safe against signals: a
/// handler runs as a whole, on the thread that it interrupts, so it finds `busy` as it was at one point of
/// the interrupted code. If it finds 1, it records nothing. If it finds 0, the interrupted code has not yet
/// read the state that it decides by, or no longer needs it: the fences keep all of that between the two
/// stores.
inline void set_busy(ThreadState* thread) noexcept {
    store_relaxed(thread->busy, 1u);
    signal_fence();
}
inline void clear_busy(ThreadState* thread) noexcept {
    signal_fence();
    store_relaxed(thread->busy, 0u);
}
/// Keeps the calling thread busy in a block.
class BusyScope {
  public:
    [[gnu::always_inline]] explicit BusyScope(ThreadState* thread) noexcept : thread_(thread) {
        set_busy(thread);
    }
    [[gnu::always_inline]] ~BusyScope() { clear_busy(thread_); }
    BusyScope(const BusyScope&) = delete;
    BusyScope& operator=(const BusyScope&) = delete;

  private:
    ThreadState* thread_;
};

}  // namespace layout1
}  // namespace marey::detail
