// live_calls.cpp: the numbers of calls that can be suspended.
#include "sources/python/live_calls.h"

#include <new>
#include <utility>

#include "record/source_writer.h"

namespace marey::python {

LiveCalls& live_calls = *new LiveCalls;

namespace {

// Guarded by the GIL.
std::uint64_t last_number = 0;
std::uintptr_t last_made = 0;

/// The end of a part, as the log has it.
struct PartEnd {
    std::uint64_t call = 0;  ///< 0: out of memory
    std::uint8_t flags = 0;
    std::uint32_t place = 0;
};

[[gnu::always_inline]] inline PartEnd note_part_end(const void* frame, bool is_last) noexcept {
    LiveCall* call = live_calls.find(frame);
    if (call == nullptr) call = live_calls.begin(frame);  // it began before tracing started
    if (call == nullptr) return {};
    const int flags = (call->is_first != 0 ? detail::kPartFirst : 0) | (is_last ? detail::kPartLast : 0);
    const PartEnd end{call->number, static_cast<std::uint8_t>(flags), call->place};
    call->is_first = 0;
    call->start = 0;
    if (is_last) live_calls.remove(call);
    return end;
}

}  // namespace

LiveCall* LiveCalls::find(const void* frame) noexcept {
    if (count_ == 0) return nullptr;
    for (std::size_t at = home(frame);; at = (at + 1) & mask_) {
        if (slots_[at].frame == frame) return &slots_[at];
        if (slots_[at].frame == nullptr) return nullptr;
    }
}

LiveCall* LiveCalls::begin(const void* frame) noexcept {
    LiveCall* call = find(frame);
    if (call == nullptr) {
        if (slots_ == nullptr || count_ * 2 > mask_) {
            if (!grow()) return nullptr;
        }
        std::size_t at = home(frame);
        while (slots_[at].frame != nullptr) at = (at + 1) & mask_;
        call = &slots_[at];
        ++count_;
    }
    *call = {frame, ++last_number, 0, 0, 0, 0};
    return call;
}

// Moves up later entries that would otherwise not be found any more.
void LiveCalls::remove(LiveCall* call) noexcept {
    std::size_t hole = static_cast<std::size_t>(call - slots_.get());
    for (std::size_t at = (hole + 1) & mask_; slots_[at].frame != nullptr; at = (at + 1) & mask_) {
        const std::size_t wanted = home(slots_[at].frame);
        if (((at - wanted) & mask_) < ((at - hole) & mask_)) continue;
        slots_[hole] = slots_[at];
        hole = at;
    }
    slots_[hole] = {};
    --count_;
}

void LiveCalls::clear() noexcept {
    slots_.reset();
    mask_ = count_ = 0;
}

bool LiveCalls::grow() noexcept {
    const std::size_t size = slots_ == nullptr ? 64 : (mask_ + 1) * 2;
    std::unique_ptr<LiveCall[]> slots(new (std::nothrow) LiveCall[size]);
    if (slots == nullptr) return false;
    std::swap(slots, slots_);
    const std::size_t old_size = slots == nullptr ? 0 : mask_ + 1;
    mask_ = size - 1;
    for (std::size_t i = 0; i < old_size; ++i) {
        if (slots[i].frame == nullptr) continue;
        std::size_t at = home(slots[i].frame);
        while (slots_[at].frame != nullptr) at = (at + 1) & mask_;
        slots_[at] = slots[i];
    }
    return true;
}

std::uint64_t begin_part(const void* frame, bool is_start, std::uint64_t start) noexcept {
    LiveCall* call = is_start ? nullptr : live_calls.find(frame);
    std::uint64_t number = 0;
    if (call == nullptr) {
        call = live_calls.begin(frame);
        if (call == nullptr) return 0;
        call->is_first = is_start ? 1 : 0;
        number = call->number;
    }
    call->start = start;
    call->thread = detail::thread_number();
    return number;
}

void end_part(const void* frame, std::uint64_t start, bool is_last) noexcept {
    const PartEnd end = note_part_end(frame, is_last);
    if (end.call != 0) write_part(start, end.call, end.flags);
}

void close_call_part(const void* frame, detail::Opened opened, bool is_last) noexcept {
    PartEnd end = note_part_end(frame, is_last);
    if (end.call == 0) return detail::close_range(opened);
    const std::uint32_t known_place = end.place;
    close_part(opened, end.call, end.flags, end.place);
    if (is_last || end.place == known_place) return;
    // Observers, which run at the end of a range, may have moved it.
    if (LiveCall* const call = live_calls.find(frame)) call->place = end.place & 0x7fffffff;
}

// Odd, and so never the address of an object; the steps give each a slot of its own.
const void* new_call() noexcept {
    last_made += 128;
    return reinterpret_cast<const void*>(last_made | 1);
}

void forget_call(const void* call) noexcept {
    if (LiveCall* const found = live_calls.find(call)) live_calls.remove(found);
}

const void* frame_of_part(std::uint64_t start) noexcept {
    const void* frame = nullptr;
    live_calls.visit([&](const LiveCall& call) {
        if (call.start == start && call.thread == detail::thread_number()) frame = call.frame;
    });
    return frame;
}

void note_open_parts() noexcept {
    live_calls.visit([](const LiveCall& call) {
        if (call.start == 0) return;
        note_open_part(call.thread, call.start, call.number, call.is_first != 0 ? detail::kPartFirst : 0);
    });
}

}  // namespace marey::python
