// open_ranges.cpp: reads thread blocks as a dead program left them: any field may have any value.
#include "collect/open_ranges.h"

#include <algorithm>
#include <cstring>

#include <marey/detail/thread_state.h>

#include "collect/log_records.h"

namespace marey {

using namespace detail;

void ThreadBlocks::put(Part& place, std::uint64_t sequence, std::span<const std::byte> data) {
    if (place.data.data() == nullptr || sequence >= place.sequence) place = {sequence, data};
}

void ThreadBlocks::add(const BlockHeader& header, std::span<const std::byte> data) {
    if (header.thread == 0) return;
    switch (static_cast<BlockKind>(header.kind)) {
        case BlockKind::Thread:
            put(states_[header.thread], header.sequence, data);
            break;
        case BlockKind::OpenSegment:
            put(open_segments_[{header.thread, header.segment}], header.sequence, data);
            break;
        case BlockKind::SideSegment:
            put(side_segments_[header.thread], header.sequence, data);
            break;
        default:
            break;
    }
}

namespace {

// Fields of ThreadState, by offset after its BlockHeader; empty when the file ends before.
template <class T>
T field(std::span<const std::byte> data, std::size_t offset) {
    offset -= sizeof(BlockHeader);
    if (offset + sizeof(T) > data.size()) return T{};
    return read_as<T>(data.data() + offset);
}

// The values of an open range: `side` is 1 + the 8-byte unit of the side stack where they are. Entries are in
// the order of their ranges: none may begin before `used`, so that no byte is returned twice.
std::span<const std::byte> side_payload(std::span<const std::byte> state, std::span<const std::byte> segment,
                                        std::uint32_t side, std::size_t& used) {
    if (side == 0) return {};
    std::size_t offset = std::size_t{side - 1} * 8;
    if (offset < used) return {};
    const std::size_t position = offset;
    std::span<const std::byte> stack;
    if (offset < kSideBytes) {
        const std::size_t start = offsetof(ThreadState, side) - sizeof(BlockHeader);
        if (start > state.size()) return {};
        stack = state.subspan(start, std::min(kSideBytes, state.size() - start));
    } else {
        offset -= kSideBytes;
        stack = segment;
    }
    if (offset + sizeof(SideEntry) > stack.size()) return {};
    const auto entry = read_as<SideEntry>(stack.data() + offset);
    if (entry.bytes > kMaxPayloadBytes || entry.bytes > stack.size() - offset - sizeof entry) return {};
    used = position + sizeof entry + entry.bytes;
    return stack.subspan(offset + sizeof entry, entry.bytes);
}

}  // namespace

void read_thread_blocks(const ThreadBlocks& blocks, RawLog& log) {
    for (const auto& [thread, part] : blocks.states_) {
        const std::span<const std::byte> state = part.data;
        LossesRecord losses{};  // its totals may be ahead of the journal's
        losses.head = {static_cast<std::uint16_t>(JournalKind::Losses), 0, sizeof losses};
        losses.thread = thread;
        losses.dropped = field<std::uint64_t>(state, offsetof(ThreadState, dropped));
        losses.resyncs = field<std::uint64_t>(state, offsetof(ThreadState, resyncs));
        losses.clamped = field<std::uint64_t>(state, offsetof(ThreadState, clamped));
        if ((losses.dropped | losses.resyncs | losses.clamped) != 0) {
            const auto* const bytes = reinterpret_cast<const std::byte*>(&losses);
            log.journal.insert(log.journal.end(), bytes, bytes + sizeof losses);
        }

        std::span<const std::byte> side;
        if (const auto found = blocks.side_segments_.find(thread); found != blocks.side_segments_.end()) {
            side = found->second.data;
        }
        const std::uint32_t depth = field<std::uint32_t>(state, offsetof(ThreadState, depth));
        std::span<const std::byte> slots;
        std::uint32_t first_slot = 0;  // of `slots`
        std::size_t side_used = 0;
        const std::size_t start = offsetof(ThreadState, slots) - sizeof(BlockHeader);
        if (start < state.size()) {
            slots = state.subspan(start, std::min(kOpenSlots * sizeof(OpenSlot), state.size() - start));
        }
        for (std::uint32_t segment = 0;; ++segment) {
            for (std::size_t i = 0; (i + 1) * sizeof(OpenSlot) <= slots.size(); ++i) {
                const std::uint32_t index = first_slot + static_cast<std::uint32_t>(i);
                if (index >= depth) break;
                const auto slot = read_as<OpenSlot>(slots.data() + i * sizeof(OpenSlot));
                if (slot.start == 0) continue;  // being filled, or just closed
                if ((slot.what & (kMaxSites - 1)) == 0)
                    continue;  // counts a begin made while nothing recorded
                OpenRange range;
                range.thread = thread;
                range.depth = index;
                range.start = slot.start;
                range.site = static_cast<std::uint32_t>(slot.what & (kMaxSites - 1));
                range.flags = static_cast<std::uint8_t>(slot.what >> kSiteBits) & ~kSlotObjectless;
                const auto payload =
                    side_payload(state, side, static_cast<std::uint32_t>(slot.what >> 32), side_used);
                range.payload.assign(payload.begin(), payload.end());
                log.open.push_back(std::move(range));
            }
            first_slot = static_cast<std::uint32_t>(kOpenSlots + std::size_t{segment} * kSlotsPerSegment);
            if (first_slot >= depth) break;
            const auto found = blocks.open_segments_.find({thread, segment});
            if (found == blocks.open_segments_.end()) break;
            slots = found->second.data.first(
                std::min(found->second.data.size(), kSlotsPerSegment * sizeof(OpenSlot)));
        }
    }
}

}  // namespace marey
