// native_stack.h: the return addresses of the calling thread's native frames, and the rules that lead from
// one to the next, by program counter, for many readers at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "native/frame_rule.h"

namespace marey {

/// The rule at `pc`, cached. Lock-free except for reading the loader's list.
FrameRule frame_rule_at(std::uintptr_t pc) noexcept;

/// A rule in 64 bits, never 0; a rule that does not fit becomes unknown.
std::uint64_t packed(const FrameRule& rule) noexcept;
FrameRule unpacked(std::uint64_t bits) noexcept;

/// Writes the return addresses of the calling thread's frames, innermost first, and returns their number. The
/// caller of this function is the first; `skip` leaves out that many. At most `room` are written.
///
/// The rule that leads from a frame to its caller is read from .eh_frame once for each address and then
/// cached; without a table the frame pointer is followed. Every word is read from within the thread's stack,
/// so a damaged stack ends the walk and nothing else. Frames beyond a signal handler are not seen. Takes none
/// of Marey's locks; the first time at an address takes the loader's lock, and the first time on a thread
/// queries its stack from the system.
std::size_t capture_native_stack(std::uintptr_t* out, std::size_t room, std::size_t skip = 0,
                                 std::uintptr_t* stack_pointers = nullptr) noexcept;

/// How often an address was cached, had to be looked up, and had no usable table; and how often the cache was
/// cleared because a library was unloaded.
struct NativeStackCounts {
    std::uint64_t known;
    std::uint64_t looked_up;
    std::uint64_t without_table;
    std::uint64_t forgotten;
};
NativeStackCounts native_stack_counts() noexcept;

}  // namespace marey
