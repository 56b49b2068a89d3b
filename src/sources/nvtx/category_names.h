// category_names.h: the names that programs assign to the categories of NVTX events.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>

namespace marey {

/// Maps a domain and a number to a name (a string id). Any thread, without a lock: entries are only added,
/// and a changed name is replaced in its entry. Must live as long as the process.
class CategoryNames {
  public:
    CategoryNames() noexcept = default;

    /// Does nothing if there is no memory.
    void set(std::uint32_t domain, std::uint32_t category, std::uint32_t name) noexcept {
        if (Entry* const known = entry(domain, category)) {
            known->name.store(name, std::memory_order_relaxed);
            return;
        }
        std::atomic<Entry*>& first = buckets_[bucket(domain, category)];
        Entry* const added = new (std::nothrow) Entry{domain, category, name, nullptr};
        if (added == nullptr) return;
        // If two threads name it at once, both entries are added; the later one comes first and is found.
        added->next = first.load(std::memory_order_relaxed);
        while (!first.compare_exchange_weak(added->next, added, std::memory_order_release,
                                            std::memory_order_relaxed)) {
        }
    }
    /// 0: the category has no name.
    std::uint32_t find(std::uint32_t domain, std::uint32_t category) const noexcept {
        const Entry* const found = entry(domain, category);
        return found != nullptr ? found->name.load(std::memory_order_relaxed) : 0;
    }

  private:
    struct Entry {
        std::uint32_t domain;
        std::uint32_t category;
        std::atomic<std::uint32_t> name;
        Entry* next;
    };
    static constexpr std::size_t kBuckets = 256;
    static std::size_t bucket(std::uint32_t domain, std::uint32_t category) noexcept {
        return (domain * 31 + category) % kBuckets;
    }
    Entry* entry(std::uint32_t domain, std::uint32_t category) const noexcept {
        Entry* each = buckets_[bucket(domain, category)].load(std::memory_order_acquire);
        while (each != nullptr && (each->domain != domain || each->category != category)) each = each->next;
        return each;
    }

    std::atomic<Entry*> buckets_[kBuckets] = {};
};

}  // namespace marey
