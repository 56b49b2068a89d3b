// thread_state.h: what the inlined recording path touches. One ThreadState per thread, in a Thread block.
#pragma once

#include <cstddef>
#include <cstdint>

#include <marey/detail/log_format.h>

namespace marey::detail {
inline namespace layout1 {

/// Bits of ThreadState::armed. The low half: bit i = ranges of Scope i are wanted by somebody.
inline constexpr std::uint64_t kArmedAttention = 1ull
                                                 << 32;  ///< take the out-of-line path: something to do first
inline constexpr std::uint64_t kArmedObservers = 1ull << 33;  ///< observers want to hear of ranges
inline constexpr std::uint64_t kArmedSlowClock = 1ull << 34;  ///< the counter cannot be used: out of line
inline constexpr std::uint64_t kArmedValues = 1ull << 35;     ///< values given to ranges are wanted
inline constexpr std::uint64_t kArmedMemory = 1ull << 36;     ///< allocation reports are wanted
inline constexpr std::uint64_t kArmedRecorder = 1ull << 37;   ///< some session records
inline constexpr std::uint64_t kArmedShapes = 1ull << 38;     ///< metadata of array inputs is wanted
inline constexpr std::uint64_t kArmedConcrete = 1ull << 39;   ///< values of scalar inputs are wanted
inline constexpr std::uint64_t kArmedMemoryObservers = 1ull << 40;  ///< observers want to hear of allocations
inline constexpr std::uint64_t kArmedMemoryRecorder = 1ull << 41;   ///< sessions record allocations
inline constexpr std::uint64_t kArmedSkip = 1ull
                                            << 42;  ///< only sampled observers: `skip` may be counted down
inline constexpr std::uint64_t kArmedOutOfLine = kArmedAttention | kArmedObservers | kArmedSlowClock;

/// An open range. `start` is 0 while the slot is being filled or is empty.
/// what = site:24 | flags:8 (RecordFlags, kSlotObjectless) | side:32, where side is 1 + the 8-byte unit in
/// the side stack at which its values lie, 0 when it has none.
struct OpenSlot {
    std::uint64_t start;
    std::uint64_t what;
};

inline constexpr std::uint8_t kSlotObjectless = 0x80;  ///< opened by begin(), to be closed by end()
inline constexpr std::size_t kOpenSlots =
    1008;  ///< in the Thread block itself; deeper ones are in OpenSegments
inline constexpr std::size_t kThreadFixedBytes = 512;
inline constexpr std::size_t kSideBytes = kBlockBytes - kThreadFixedBytes - kOpenSlots * sizeof(OpenSlot);
inline constexpr std::size_t kSlotsPerSegment = (kBlockBytes - sizeof(BlockHeader)) / sizeof(OpenSlot);

/// A side-stack entry: the values of one open range, `bytes` of payload behind this head, padded to 8.
struct SideEntry {
    std::uint32_t bytes;
    std::uint32_t slot;  ///< the open slot that it belonged to when it was pushed
};

/// Owned by its thread; `armed` and `is_inline` alone are written by others too (under ThreadEntry::arming).
/// Others read `depth`, slots and `*committed` while the thread runs. Pointers mean nothing in a file;
/// readers use the block headers.
struct ThreadState {
    BlockHeader block;

    std::uint64_t armed;        ///< one word of bits: relaxed loads by the owner
    std::uint32_t is_inline;    ///< follows from `armed`: 1 when ranges may be recorded inline
    std::uint32_t side_leaked;  ///< values of ranges that ended out of order still lie in the side stack
    std::uint32_t depth;        ///< open ranges; stored with release
    std::uint32_t busy;  ///< the owner is inside the recorder: what a signal handler records is dropped
    std::byte* cursor;   ///< where the next record goes; equals limit when there is no room
    std::byte* limit;
    std::uint64_t* committed;  ///< the current chunk's BlockHeader::committed
    std::uint64_t base_ticks;  ///< the current chunk's
    std::byte* chunk_data;     ///< first byte behind the current chunk's header
    void* owner;               ///< the recorder's ThreadEntry

    std::uint64_t dropped;
    std::uint64_t resyncs;
    std::uint64_t clamped;
    std::uint32_t gap_records;  ///< dropped since the last Dropped record was written
    std::uint32_t gap_min_depth;
    std::uint32_t off_begins;  ///< object-less begins made while off, at depth 0
    std::uint32_t side_used;   ///< bytes of the side stack in use
    std::uint64_t context;     ///< id of the context in force, 0 = none
    void* observers;           ///< the thread's ThreadObservers; null: none yet
    void* tracer;              ///< for the Python tracer
    std::uint64_t next_async;  ///< count of movable ranges begun here: the low part of their ids
    std::uint32_t skip[16];    ///< by scope: ranges to come that no sampled observer will see
    std::uint64_t reserved[22];

    OpenSlot slots[kOpenSlots];
    std::byte side[kSideBytes];
};
static_assert(offsetof(ThreadState, slots) == kThreadFixedBytes);
static_assert(sizeof(ThreadState) == kBlockBytes);

}  // namespace layout1
}  // namespace marey::detail
