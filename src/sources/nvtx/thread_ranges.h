// thread_ranges.h: what a thread has pushed, and not popped yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <kymo/detail/hot_path.h>

namespace kymo {

/// One thread's, used by it alone. NVTX has a stack for each domain: ranges of different ones need not nest.
/// Also what is not recorded stands here, so that depths are right and each pop ends its own push.
class ThreadRanges {
  public:
    /// The calling thread's; null: they are being made, or there is no memory for them.
    static ThreadRanges* own() noexcept { return own_ != nullptr ? own_ : make(); }

    using Stack = std::vector<detail::Opened>;
    /// The stack of a domain. Valid until the next call. Throws std::bad_alloc.
    Stack& stack(std::uintptr_t domain) {
        if (stacks_[last_].domain != domain) find(domain);
        return stacks_[last_].open;
    }

    /// A number for a range that the calling thread begins: even, not 0, and no other's.
    std::uint64_t next_number() noexcept { return next_number_ += 2; }

    /// Set while the thread is in the listener: what is called meanwhile on it, by a signal handler, an
    /// allocator or an observer, finds the stacks in the middle of a change.
    bool is_inside = false;

  private:
    struct DomainStack {
        std::uintptr_t domain;
        Stack open;
    };
    static constexpr std::size_t kKept = 16;  ///< stacks, also when they are empty

    explicit ThreadRanges(std::uint64_t first_number);
    static ThreadRanges* make() noexcept;
    void find(std::uintptr_t domain);

    static constinit thread_local ThreadRanges* own_ __attribute__((tls_model("initial-exec")));
    /// An allocator that uses NVTX comes back while its thread's are being made.
    static constinit thread_local bool is_making_ __attribute__((tls_model("initial-exec")));

    std::vector<DomainStack> stacks_;  ///< never empty
    std::size_t last_ = 0;             ///< the one that was used last
    std::uint64_t next_number_;
};

}  // namespace kymo
