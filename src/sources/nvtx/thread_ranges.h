// thread_ranges.h: the ranges that a thread has pushed and not popped yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <marey/detail/hot_path.h>

namespace marey {

/// The open ranges of one domain, the innermost last.
class NvtxStack {
  public:
    /// Makes sure that one more range fits. False: out of memory.
    bool has_room() noexcept { return size_ != capacity_ || grow(); }
    /// Needs has_room(). Returns the depth of the range.
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

/// The stacks of one thread; only that thread uses them. NVTX has a stack for each domain: ranges of
/// different domains need not nest. The stacks also contain ranges that are not recorded, so that depths are
/// right and each pop ends the matching push.
class ThreadRanges {
  public:
    /// The calling thread's stacks; null while they are being created, or if there is no memory for them.
    static ThreadRanges* own() noexcept { return own_ != nullptr ? own_ : make(); }

    /// The stack of a domain, valid until the next call. Null: out of memory.
    NvtxStack* stack(std::uintptr_t domain) noexcept {
        return last_->domain == domain ? &last_->open : find(domain);
    }

    /// A number for a range that the calling thread begins: even, not 0, and unique.
    std::uint64_t next_number() noexcept { return next_number_ += 2; }

    /// Set while the thread is in the listener. Calls made on it during that time, by a signal handler, an
    /// allocator or an observer, would find the stacks in the middle of a change.
    bool is_inside = false;

  private:
    struct DomainStack {
        std::uintptr_t domain;
        NvtxStack open;
    };
    static constexpr std::size_t kKept = 16;  ///< stacks that are kept even if they are empty

    explicit ThreadRanges(std::uint64_t first_number);
    static ThreadRanges* make() noexcept;
    NvtxStack* find(std::uintptr_t domain) noexcept;

    static constinit thread_local ThreadRanges* own_ __attribute__((tls_model("initial-exec")));
    /// Set while the thread's stacks are being created: an allocator that uses NVTX calls back then.
    static constinit thread_local bool is_making_ __attribute__((tls_model("initial-exec")));

    std::vector<DomainStack> stacks_;  ///< never empty
    DomainStack* last_;                ///< the most recently used one
    std::uint64_t next_number_;
};

}  // namespace marey
