// run_ledger.h: one size limit for all processes of a tree: a page that they share.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace marey {

/// The bytes that the processes of a tree have claimed for their logs. `marey run` creates it, every process
/// of the tree maps it; forked processes inherit the mapping. The bytes of a process that has ended stay
/// counted, as its records do. Any thread.
class RunLedger {
  public:
    /// Maps the ledger of a tree. `problem` is set if there is one that cannot be used. False: there is none.
    bool open(const std::string& tree, std::string& problem) noexcept;
    /// For tests; recorders never unmap it, because threads record until the very end.
    void close() noexcept;

    void add(std::uint64_t bytes) noexcept { page_->used.fetch_add(bytes, std::memory_order_relaxed); }
    void subtract(std::uint64_t bytes) noexcept { page_->used.fetch_sub(bytes, std::memory_order_relaxed); }
    /// Whether so many more bytes exceed the limit.
    bool would_exceed(std::uint64_t bytes) const noexcept {
        return page_->used.load(std::memory_order_relaxed) + bytes > page_->max_bytes;
    }

    struct Page {
        std::uint32_t magic;
        std::uint32_t version;
        char tree[40];
        std::uint64_t max_bytes;
        std::atomic<std::uint64_t> used;
    };

  private:
    Page* page_ = nullptr;
};

}  // namespace marey
