// child_words.h: words that the kernel sets to 0 in every child process, so that a child notices that no fork
// handlers have run in it (_Fork, clone).
#pragma once

#include <cstdint>
#include <vector>

#include <marey/detail/counter.h>

namespace marey {

/// Whether this process has left the recorder of its parent. Not 1: it is a child that was made without fork
/// handlers and has not (0), or one of its threads is about to (2). A child of vfork() has its parent's
/// memory, and so the parent's mark.
extern constinit std::uint32_t* process_mark;
inline constexpr std::uint32_t kLeavesParent = 2;
inline constexpr std::uint32_t kOwnProcess = 1;

/// Set while the calling thread is between fork handlers, or leaves its parent's recorder.
extern constinit thread_local bool is_forking;
/// How many processes left their parents without fork handlers between the first process and this one; and
/// as the calling thread last saw it: if that differs, its state is one of the parent's.
extern constinit std::uint32_t left_parents;
extern constinit thread_local std::uint32_t seen_left_parents;

/// Makes the recorder this process's own, as the fork handlers do (lifecycle.cpp).
void leave_parent() noexcept;

/// Before anything of the recorder is used out of line.
inline void check_process() noexcept {
    if (detail::load_relaxed(*detail::load_acquire(process_mark)) != kOwnProcess) [[unlikely]]
        leave_parent();
}

/// Where the words come from. Where the kernel does not support it (before Linux 4.14), they are ordinary
/// memory. recorder_mutex is held for all calls.
class ChildWords {
  public:
    /// A word that is 0. Null: there is no memory.
    std::uint32_t* take() noexcept;
    void give_back(std::uint32_t* word) noexcept;

  private:
    std::vector<std::uint32_t*> free_;
};

}  // namespace marey
