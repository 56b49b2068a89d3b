// side_stack.cpp: the values of open ranges, beside the open stack: first in the thread's state, then in a
// segment.
#include <algorithm>
#include <cstring>

#include <marey/detail/values.h>

#include "record/recorder_parts.h"
#include "record/thread_log.h"
#include "record/thread_registry.h"

namespace marey {

using detail::load_relaxed;
using detail::OpenSlot;
using detail::store_relaxed;
using detail::ThreadState;

namespace {

constexpr std::size_t kSegmentBytes =
    detail::kLargeBlocks * detail::kBlockBytes - sizeof(detail::BlockHeader);
constexpr std::size_t kMinSpace = detail::kMinSideBytes;

std::byte* side_address(const ThreadState& state, std::size_t offset) noexcept {
    if (offset < detail::kSideBytes) return const_cast<std::byte*>(state.side) + offset;
    auto* const entry = static_cast<ThreadEntry*>(state.owner);
    if (entry == nullptr) return nullptr;
    std::byte* const segment = recorder_threads().side_segment(*entry);
    return segment == nullptr ? nullptr : segment + (offset - detail::kSideBytes);
}

// Where the next entry goes, and how many bytes it may have there (0: there is no space).
std::size_t next_side_entry(const ThreadState& state, std::size_t& room) noexcept {
    std::size_t offset = state.side_used;
    if (offset + kMinSpace > detail::kSideBytes && offset < detail::kSideBytes) offset = detail::kSideBytes;
    room = offset < detail::kSideBytes ? detail::kSideBytes - offset
                                       : detail::kSideBytes + kSegmentBytes - offset;
    if (room < kMinSpace) room = 0;
    return offset;
}

}  // namespace

std::span<const std::byte> side_payload(const ThreadState& state, std::uint32_t side) noexcept {
    if (side == 0) return {};
    const std::byte* const place = side_address(state, (side - 1) * std::size_t{8});
    if (place == nullptr) return {};
    detail::SideEntry head;
    std::memcpy(&head, place, sizeof head);
    return {place + sizeof head, std::min<std::size_t>(head.bytes, detail::kMaxPayloadBytes)};
}

void drop_side(ThreadState& state, std::uint32_t side) noexcept {
    if (side != 0) state.side_used = (side - 1) * 8;
}

std::uint32_t push_payload(std::span<const std::byte> payload) noexcept {
    const detail::SideBuffer room = detail::open_side();
    if (room.place == nullptr) return 0;
    const std::size_t bytes = std::min(payload.size(), static_cast<std::size_t>(room.limit - room.place));
    std::memcpy(room.place, payload.data(), bytes);
    return detail::close_side(room, room.place + bytes);
}

SideExtension extend_side(ThreadState& state, const OpenSlot& slot) noexcept {
    const auto side = static_cast<std::uint32_t>(load_relaxed(slot.what) >> 32);
    std::size_t room = 0;
    std::size_t offset = next_side_entry(state, room);
    if (side == 0) {
        std::byte* const place = room == 0 ? nullptr : side_address(state, offset);
        if (place == nullptr) return {};
        return {place + sizeof(detail::SideEntry),
                place + std::min(room, sizeof(detail::SideEntry) + detail::kMaxPayloadBytes)};
    }
    // It must be the last entry, and continue in the same piece of memory.
    const std::span<const std::byte> payload = side_payload(state, side);
    offset = (side - 1) * std::size_t{8};
    const std::size_t used = (offset + sizeof(detail::SideEntry) + payload.size() + 7) & ~std::size_t{7};
    if (payload.empty() || used != state.side_used || payload.size() % 8 != 0) return {};
    room = offset < detail::kSideBytes ? detail::kSideBytes : detail::kSideBytes + kSegmentBytes;
    auto* const place = const_cast<std::byte*>(payload.data() + payload.size());
    return {place, place + std::min(room - used, detail::kMaxPayloadBytes - payload.size())};
}

void close_extension(ThreadState& state, OpenSlot& slot, std::byte* end) noexcept {
    const std::uint64_t what = load_relaxed(slot.what);
    auto side = static_cast<std::uint32_t>(what >> 32);
    if (side == 0) {
        side = detail::close_side_slow(end);
        if (side != 0) store_relaxed(slot.what, what | std::uint64_t{side} << 32);
        return;
    }
    const std::size_t offset = (side - 1) * std::size_t{8};
    std::byte* const place = side_address(state, offset);
    detail::SideEntry head;
    std::memcpy(&head, place, sizeof head);
    head.bytes = static_cast<std::uint32_t>(end - place - sizeof head);
    std::memcpy(place, &head, sizeof head);
    state.side_used = static_cast<std::uint32_t>(offset + static_cast<std::size_t>(end - place) + 7) & ~7u;
}

namespace detail {
inline namespace layout1 {

SideBuffer open_side_slow() noexcept {
    SlowPath path(kNoRecord);
    if (!path) return {};
    ThreadState* const state = ready_thread();
    if (state == nullptr) return {};
    std::size_t room = 0;
    const std::size_t offset = next_side_entry(*state, room);
    std::byte* const place = room == 0 ? nullptr : side_address(*state, offset);
    if (place == nullptr) return {};
    const std::size_t payload = std::min(room - sizeof(SideEntry), kMaxPayloadBytes);
    return {place + sizeof(SideEntry), place + sizeof(SideEntry) + payload, false};
}

std::uint32_t close_side_slow(std::byte* end) noexcept {
    ThreadState* const state = current_thread;
    if (state->owner == nullptr) return 0;
    std::size_t room = 0;
    const std::size_t offset = next_side_entry(*state, room);
    std::byte* const place = room == 0 ? nullptr : side_address(*state, offset);
    if (place == nullptr || end < place + sizeof(SideEntry) || end > place + room) return 0;
    const SideEntry head{static_cast<std::uint32_t>(end - place - sizeof(SideEntry)), state->depth};
    std::memcpy(place, &head, sizeof head);
    state->side_used = static_cast<std::uint32_t>(offset + static_cast<std::size_t>(end - place) + 7) & ~7u;
    return static_cast<std::uint32_t>(offset / 8 + 1);
}

}  // namespace layout1
}  // namespace detail

}  // namespace marey
