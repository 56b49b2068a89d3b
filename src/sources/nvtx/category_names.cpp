// category_names.cpp: an append-only table.
#include "sources/nvtx/category_names.h"

#include <new>

namespace marey {

CategoryNames::Entry* CategoryNames::entry(std::uint32_t domain, std::uint32_t category) const noexcept {
    Entry* each = buckets_[bucket(domain, category)].load(std::memory_order_acquire);
    while (each != nullptr && (each->domain != domain || each->category != category)) each = each->next;
    return each;
}

void CategoryNames::set(std::uint32_t domain, std::uint32_t category, std::uint32_t name) noexcept {
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

std::uint32_t CategoryNames::find(std::uint32_t domain, std::uint32_t category) const noexcept {
    const Entry* const found = entry(domain, category);
    return found != nullptr ? found->name.load(std::memory_order_relaxed) : 0;
}

}  // namespace marey
