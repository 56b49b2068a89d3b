// waiting_thread.h: a thread of another process while it waits: what for, and its native frames.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <marey/outside.h>

#include "outside/process_files.h"
#include "outside/process_modules.h"

namespace marey {

/// A thread in a system call, as the kernel shows it.
struct WaitingThread {
    std::int64_t call = -1;  ///< number of the system call; -1: it waits for the kernel itself
    std::array<std::uint64_t, 6> arguments{};
    std::uintptr_t sp = 0;
    std::uintptr_t pc = 0;

    bool operator==(const WaitingThread&) const = default;
    OutsideWait wait() const noexcept;
    /// The word in memory that a lock waits at; 0: it does not wait for a lock.
    std::uintptr_t lock_word() const noexcept { return wait() == OutsideWait::Lock ? arguments[0] : 0; }
};
/// Nothing: it runs, or has ended.
std::optional<WaitingThread> waiting_thread(const ProcessFiles& process, std::int64_t os_tid);

struct NativeCall {
    std::uintptr_t pc = 0;  ///< within the instruction that runs
    std::uintptr_t sp = 0;
};
/// Copies the thread's stack into `memory` and follows it with the rules of .eh_frame, innermost first. The
/// walk ends where a rule needs a register that the kernel does not show.
std::vector<NativeCall> native_calls(const WaitingThread& thread, ProcessModules& modules,
                                     CopiedMemory& memory);

}  // namespace marey
