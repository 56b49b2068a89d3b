// live_calls.h: generators, coroutines and asynchronous generators that have begun and not ended: which call
// a part belongs to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace marey::python {

/// One such call. Known by the address of its frame, which is part of the generator and stays where it is.
struct LiveCall {
    const void* frame = nullptr;
    std::uint64_t number = 0;  ///< never given twice in a process
    std::uint64_t start = 0;   ///< ticks, of the part that runs; 0: it is suspended
    std::uint32_t thread = 0;  ///< the recorder's number of the thread of that part
    bool is_first = false;     ///< its first part has not ended yet
};

/// All of them, hashed by frame. Guarded by the GIL.
class LiveCalls {
  public:
    LiveCall* find(const void* frame) noexcept;
    /// A new call at this frame, whatever was there. Null: no memory.
    LiveCall* begin(const void* frame) noexcept;
    void remove(LiveCall* call) noexcept;
    void clear() noexcept;
    std::size_t size() const noexcept { return count_; }
    /// Calls visit(call) for each.
    template <class Visit>
    void visit(Visit visit) const {
        for (std::size_t i = 0; count_ != 0 && i <= mask_; ++i) {
            if (slots_[i].frame != nullptr) visit(slots_[i]);
        }
    }

  private:
    // Frames that lie side by side, as those of tasks that were made one after another and run in that order,
    // have their slots side by side: a slot for every 128 bytes of a stretch of memory, the stretches mixed.
    std::size_t home(const void* frame) const noexcept {
        const auto at = reinterpret_cast<std::uintptr_t>(frame);
        return (((at >> 13) * 0x9e3779b97f4a7c15u >> 32 << 6) + (at >> 7 & 63)) & mask_;
    }
    bool grow() noexcept;

    std::unique_ptr<LiveCall[]> slots_;
    std::size_t mask_ = 0;
    std::size_t count_ = 0;
};

/// The process's; never destroyed. Guarded by the GIL.
[[gnu::visibility("hidden")]] extern LiveCalls& live_calls;

/// A part whose range was opened at `start` begins. `is_start`: so does its call; else it goes on, or began
/// unseen. Gives the number of a call that is new here, 0 of others and without memory.
std::uint64_t begin_part(const void* frame, bool is_start, std::uint64_t start) noexcept;

/// A part ends, right before its range does. `is_last`: the call has returned or raised.
void end_part(const void* frame, std::uint64_t start, bool is_last) noexcept;

/// A session is about to end or to be looked at: says of which calls the open ranges are parts.
void note_open_parts() noexcept;

}  // namespace marey::python
