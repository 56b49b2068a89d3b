// backoff.h: how often to repeat an expensive check that has failed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace marey {

/// For each of a few subjects, identified by address: after a failed check the next one comes after twice as
/// many calls, up to a limit. If a subject is evicted, or another one has its address, the check only comes
/// earlier or later.
class Backoff {
  public:
    static constexpr std::uint32_t kMaxSkips = 1024;

    /// Whether to check now.
    bool is_due(const void* subject) noexcept {
        Entry& entry = entry_of(subject);
        if (entry.subject != subject || entry.left == 0) return true;
        --entry.left;
        return false;
    }
    void failed(const void* subject) noexcept {
        Entry& entry = entry_of(subject);
        const std::uint32_t before = entry.subject == subject ? entry.between : 0;
        const std::uint32_t next = std::clamp(before * 2, 1u, kMaxSkips);
        entry = {subject, next, next};
    }
    void succeeded(const void* subject) noexcept {
        if (Entry& entry = entry_of(subject); entry.subject == subject) entry = {};
    }

  private:
    struct Entry {
        const void* subject = nullptr;
        std::uint32_t left = 0;     ///< calls until the next check
        std::uint32_t between = 0;  ///< calls skipped after the last check
    };
    Entry& entry_of(const void* subject) noexcept {
        return entries_[(reinterpret_cast<std::uintptr_t>(subject) >> 4) % kEntries];
    }
    static constexpr std::size_t kEntries = 64;
    std::array<Entry, kEntries> entries_{};
};

}  // namespace marey
