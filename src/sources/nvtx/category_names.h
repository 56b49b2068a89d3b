// category_names.h: the names that programs assign to the categories of NVTX events.
#pragma once

#include <atomic>
#include <cstdint>

namespace marey {

/// Maps a domain and a number to a name (a string id). Any thread, without a lock: entries are only added,
/// and a changed name is replaced in its entry. Must live as long as the process.
class CategoryNames {
  public:
    CategoryNames() noexcept = default;
    CategoryNames(const CategoryNames&) = delete;
    CategoryNames& operator=(const CategoryNames&) = delete;

    /// Does nothing if there is no memory.
    void set(std::uint32_t domain, std::uint32_t category, std::uint32_t name) noexcept;
    /// 0: the category has no name.
    std::uint32_t find(std::uint32_t domain, std::uint32_t category) const noexcept;

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
    Entry* entry(std::uint32_t domain, std::uint32_t category) const noexcept;

    std::atomic<Entry*> buckets_[kBuckets] = {};
};

}  // namespace marey
