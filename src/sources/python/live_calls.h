// live_calls.h: calls in parts that have begun and not ended: those of generators, coroutines and
// asynchronous generators, calls that a greenlet has left, and decorated functions that can suspend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <marey/detail/hot_path.h>

namespace marey::python {

/// One such call. Identified by an address: of the generator's frame, which does not move, or of what else
/// stands for the call.
struct LiveCall {
    const void* frame = nullptr;
    std::uint64_t number = 0;        ///< unique in a process
    std::uint64_t start = 0;         ///< of the running part, in ticks; 0: it is suspended
    std::uint32_t thread = 0;        ///< the recorder's number of the thread of that part
    std::uint32_t place : 31 = 0;    ///< of close_part()
    std::uint32_t is_first : 1 = 0;  ///< its first part has not ended yet
};

/// All live calls, hashed by frame. Guarded by the GIL.
class LiveCalls {
  public:
    LiveCall* find(const void* frame) noexcept;
    /// Adds a new call at this frame and replaces any earlier one. Null: out of memory.
    LiveCall* begin(const void* frame) noexcept;
    void remove(LiveCall* call) noexcept;
    void clear() noexcept;
    std::size_t size() const noexcept { return count_; }
    /// Calls visit(call) for each.
    void visit(auto visit) const {
        for (std::size_t i = 0; count_ != 0 && i <= mask_; ++i) {
            if (slots_[i].frame != nullptr) visit(slots_[i]);
        }
    }

  private:
    // Frames that are adjacent in memory, such as those of tasks created and run in sequence, have adjacent
    // slots: one slot for every 128 bytes of a block of memory, with the blocks hashed.
    std::size_t home(const void* frame) const noexcept {
        const auto at = reinterpret_cast<std::uintptr_t>(frame);
        return (((at >> 13) * 0x9e3779b97f4a7c15u >> 32 << 6) + (at >> 7 & 63)) & mask_;
    }
    bool grow() noexcept;

    std::unique_ptr<LiveCall[]> slots_;
    std::size_t mask_ = 0;
    std::size_t count_ = 0;
};

/// The only instance in the process; never destroyed. Guarded by the GIL.
[[gnu::visibility("hidden")]] extern LiveCalls& live_calls;

/// Begins a part whose range was opened at `start`. `is_start`: its call begins too; otherwise the call
/// resumes, or began unseen. Returns the number of a call that is new here; 0 for others or if out of memory.
std::uint64_t begin_part(const void* frame, bool is_start, std::uint64_t start) noexcept;

/// Ends a part, right before its range ends. `is_last`: the call has returned or raised an exception.
void end_part(const void* frame, std::uint64_t start, bool is_last) noexcept;

/// A part that ends.
struct EndingPart {
    const void* frame;
    bool is_last;
};

/// The same as end_part(), and ends the range.
void close_call_part(const void* frame, detail::Opened opened, bool is_last) noexcept;

/// For calls that have no address: stands for a new call, until forget_call().
const void* new_call() noexcept;
void forget_call(const void* call) noexcept;
/// The frame of the running part of the calling thread that began at `start`; null: there is none.
const void* frame_of_part(std::uint64_t start) noexcept;

/// Reports the calls of open ranges. Called when a session is about to end or to be read.
void note_open_parts() noexcept;

}  // namespace marey::python
