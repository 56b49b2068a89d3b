// native_stack.h: the return addresses of the calling thread's native frames.
#pragma once

#include <cstddef>
#include <cstdint>

namespace marey {

/// Registers from which a walk starts: those of a signal's context, for example.
struct FrameRegisters {
    std::uintptr_t pc;
    std::uintptr_t sp;
    std::uintptr_t fp;
    std::uintptr_t link = 0;  ///< AArch64: where a function that saved no return address returns to
};

/// Writes the return addresses of the calling thread's frames, innermost first, and returns their number. The
/// caller of this function is the first; `skip` leaves out that many. At most `room` are written;
/// `stack_pointers`, unless null, takes their stack pointers.
///
/// Frames are linked by the rules of rule_table.h; without one, the frame pointer is followed. Every word is
/// read from within the thread's stack, so a damaged stack ends the walk and nothing else. Below a signal
/// handler come the frames that it interrupted. Lock-free; allocates nothing (before glibc 2.35: except for
/// new libraries). The first time on a stack reads /proc/self/maps.
///
/// Each thread keeps the steps of its last walk. Where a new walk comes to a frame of that one, and the words
/// that a step was read from are the same, the step is the same: the frames are always those of a walk
/// without it.
std::size_t capture_native_stack(std::uintptr_t* out, std::size_t room, std::size_t skip = 0,
                                 std::uintptr_t* stack_pointers = nullptr) noexcept;

/// The same from a frame of the calling thread, which is itself the first, as the address after `pc`.
/// Async-signal-safe.
std::size_t capture_native_stack_from(const FrameRegisters& from, std::uintptr_t* out, std::size_t room,
                                      std::uintptr_t* stack_pointers = nullptr) noexcept;

/// The stack of a thread that does not run, from a copy of its memory: of `bytes` bytes at `from.sp`, which
/// are at `copy`. Ends where the copy does.
std::size_t walk_copied_stack(const FrameRegisters& from, const std::byte* copy, std::size_t bytes,
                              std::uintptr_t* out, std::size_t room, std::uintptr_t* stack_pointers) noexcept;

/// For tests: capture_native_stack() without anything that is kept.
std::size_t walk_whole_native_stack(std::uintptr_t* out, std::size_t room) noexcept;

/// How often an address was cached, had to be looked up, and had no usable table; and how often the cache was
/// cleared because a library took the place of another one.
struct NativeStackCounts {
    std::uint64_t known;
    std::uint64_t looked_up;
    std::uint64_t without_table;
    std::uint64_t forgotten;
};
NativeStackCounts native_stack_counts() noexcept;

}  // namespace marey
