// thread_states.h: what /proc says of the threads of this process.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace marey::sampling {

/// The number of threads, and their ids. Empty when /proc cannot be read.
std::uint64_t thread_count() noexcept;
std::vector<pid_t> list_thread_ids();
/// The name that `ps` shows.
std::string name_of_thread(pid_t tid);

/// Where a thread waits in the kernel.
struct WaitPlace {
    bool is_waiting = false;
    std::uintptr_t sp = 0;
    std::uintptr_t pc = 0;
    bool operator==(const WaitPlace&) const = default;
};
WaitPlace wait_place_of(pid_t tid) noexcept;

/// Copies memory of this process that may be unmapped at any time, and returns how many bytes there were.
std::size_t copy_checked(std::uintptr_t from, std::byte* to, std::size_t bytes) noexcept;

}  // namespace marey::sampling
