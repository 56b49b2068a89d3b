// native_stack.h: the return addresses of the calling thread's native frames.
#pragma once

#include <cstddef>
#include <cstdint>

namespace marey {

/// Writes the return addresses of the calling thread's frames, innermost first, and gives their number. The
/// caller of this function is the first; `skip` leaves out that many. At most `room` are written.
///
/// What leads from a frame to its caller is read from .eh_frame once for each address and then remembered;
/// where no table tells, the frame pointer is followed. Every word is read from within the thread's stack, so
/// a damaged stack ends the walk and nothing else. Frames beyond a signal handler are not seen. Takes no lock
/// of ours; the first time at an address takes the loader's, and the first time on a thread asks the system
/// for its stack.
std::size_t capture_native_stack(std::uintptr_t* out, std::size_t room, std::size_t skip = 0,
                                 std::uintptr_t* stack_pointers = nullptr) noexcept;

/// How often an address was known, had to be looked up, and had no table that could be used; and how often
/// all that was known was forgotten because a library went away.
struct NativeStackCounts {
    std::uint64_t known;
    std::uint64_t looked_up;
    std::uint64_t without_table;
    std::uint64_t forgotten;
};
NativeStackCounts native_stack_counts() noexcept;

}  // namespace marey
