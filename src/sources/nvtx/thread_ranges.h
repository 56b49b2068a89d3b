// thread_ranges.h: what a thread has pushed, and not popped yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <marey/detail/hot_path.h>

namespace marey {

/// Ranges of one domain, the innermost last.
class OpenStack {
  public:
    /// Makes sure that one more fits. False: there is no memory.
    bool has_room() noexcept { return size_ != capacity_ || grow(); }
    /// Where there is room. Gives its depth.
    int push(detail::Opened range) noexcept {
        ranges_[size_] = range;
        return static_cast<int>(size_++);
    }
    bool empty() const noexcept { return size_ == 0; }
    detail::Opened pop() noexcept { return ranges_[--size_]; }
    int size() const noexcept { return static_cast<int>(size_); }

  private:
    bool grow() noexcept;

    std::unique_ptr<detail::Opened[]> ranges_;
    std::uint32_t size_ = 0;
    std::uint32_t capacity_ = 0;
};

/// One thread's, used by it alone. NVTX has a stack for each domain: ranges of different ones need not nest.
/// Also what is not recorded stands here, so that depths are right and each pop ends its own push.
class ThreadRanges {
  public:
    /// The calling thread's; null: they are being made, or there is no memory for them.
    static ThreadRanges* own() noexcept { return own_ != nullptr ? own_ : make(); }

    /// The stack of a domain, until the next call. Null: there is no memory.
    OpenStack* stack(std::uintptr_t domain) noexcept {
        return last_->domain == domain ? &last_->open : find(domain);
    }

    /// A number for a range that the calling thread begins: even, not 0, and no other's.
    std::uint64_t next_number() noexcept { return next_number_ += 2; }

    /// Set while the thread is in the listener: what is called meanwhile on it, by a signal handler, an
    /// allocator or an observer, finds the stacks in the middle of a change.
    bool is_inside = false;

  private:
    struct DomainStack {
        std::uintptr_t domain;
        OpenStack open;
    };
    static constexpr std::size_t kKept = 16;  ///< stacks, also when they are empty

    explicit ThreadRanges(std::uint64_t first_number);
    static ThreadRanges* make() noexcept;
    OpenStack* find(std::uintptr_t domain) noexcept;

    static constinit thread_local ThreadRanges* own_ __attribute__((tls_model("initial-exec")));
    /// An allocator that uses NVTX comes back while its thread's are being made.
    static constinit thread_local bool is_making_ __attribute__((tls_model("initial-exec")));

    std::vector<DomainStack> stacks_;  ///< never empty
    DomainStack* last_;                ///< the one that was used last
    std::uint64_t next_number_;
};

}  // namespace marey
