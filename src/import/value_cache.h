// value_cache.h: caches values by the text that they were read from.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <marey/trace.h>

#include "base/text_hash.h"

namespace marey {

/// Caches the values of texts, so that each distinct text is parsed, and its lists and arrays are stored,
/// only once. Stops adding entries at a size limit.
class ValueCache {
  public:
    ValueCache() : slots_(1 << 10, kFree) {}

    std::optional<std::span<const Argument>> find(std::string_view text) const {
        const std::uint64_t hash = hash_text(text);
        const std::size_t mask = slots_.size() - 1;
        for (std::size_t i = hash & mask; slots_[i] != kFree; i = (i + 1) & mask) {
            const Entry& entry = entries_[slots_[i]];
            if (entry.hash == hash && text == std::string_view(texts_).substr(entry.text, entry.length))
                return std::span<const Argument>(values_).subspan(entry.first, entry.count);
        }
        return std::nullopt;
    }
    void add(std::string_view text, std::span<const Argument> values) {
        if (texts_.size() + text.size() > kMaxTextBytes) return;
        if (2 * (entries_.size() + 1) > slots_.size()) grow();
        const std::uint64_t hash = hash_text(text);
        insert(hash, static_cast<std::uint32_t>(entries_.size()));
        entries_.push_back(
            {hash, static_cast<std::uint32_t>(texts_.size()), static_cast<std::uint32_t>(text.size()),
             static_cast<std::uint32_t>(values_.size()), static_cast<std::uint32_t>(values.size())});
        texts_.append(text);
        values_.insert(values_.end(), values.begin(), values.end());
    }

  private:
    static constexpr std::uint32_t kFree = ~std::uint32_t{0};
    static constexpr std::size_t kMaxTextBytes = 64 << 20;
    struct Entry {
        std::uint64_t hash;
        std::uint32_t text, length;  ///< in texts_
        std::uint32_t first, count;  ///< in values_
    };
    void insert(std::uint64_t hash, std::uint32_t entry) {
        const std::size_t mask = slots_.size() - 1;
        std::size_t i = hash & mask;
        while (slots_[i] != kFree) i = (i + 1) & mask;
        slots_[i] = entry;
    }
    void grow() {
        slots_.assign(2 * slots_.size(), kFree);
        for (std::uint32_t i = 0; i < entries_.size(); ++i) insert(entries_[i].hash, i);
    }

    std::vector<std::uint32_t> slots_;  ///< size is a power of two, at most half used
    std::vector<Entry> entries_;
    std::string texts_;
    std::vector<Argument> values_;
};

}  // namespace marey
