// value_cache.h: caches the JSON text of values.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>

#include <marey/trace.h>

#include "base/text_hash.h"
#include "formats/chrome/text.h"

namespace marey {

/// Caches the JSON text of value lists, because most ranges repeat the values of an earlier range. Arrays are
/// compared by type and extents. A number that is unique to each range is excluded: the text has a gap for
/// it. Disables itself if values rarely repeat.
class ChromeValueCache {
  public:
    static constexpr std::size_t kLongestText = 1024;

    struct CachedText {
        Stamp text;               ///< up to the gap, if there is one
        Stamp rest;               ///< after the gap
        std::uint64_t given = 0;  ///< a bit for each ChromeKey that the values provide
    };

    explicit ChromeValueCache(const Trace& trace)
        : arrays_(trace.arrays()), extents_(trace.array_extents()) {}

    /// Integers under this key are unique to each range.
    void set_own_key(StringId key) noexcept { own_key_ = key; }

    /// Returns null if the values are not cached; then learn() may be called before the next find().
    const CachedText* find(std::span<const Argument> values) {
        size_ = 0;
        own_ = nullptr;
        if (misses_ > hits_ + kMaxExcessMisses || !gather(values)) return nullptr;
        slot_ = hash_ % kSlots;
        if (slots_.empty()) slots_.resize(kSlots);
        const Slot* const slot = slots_[slot_].get();
        const bool is_same =
            slot != nullptr && slot->content.size() == size_ &&
            std::memcmp(slot->content.data(), content_.data(), size_ * sizeof content_[0]) == 0;
        ++(is_same ? hits_ : misses_);
        return is_same ? &slot->known : nullptr;
    }
    /// The value that belongs into the gap, from the last find(); or null.
    const Argument* own() const noexcept { return own_; }
    /// `rest`: the part of `text` after the gap, which is `gap` bytes wide.
    void learn(std::string_view text, std::string_view rest, std::size_t gap, std::uint64_t given) {
        if (size_ == 0 || text.empty() || text.size() > kLongestText) return;
        text.remove_suffix(rest.size() + gap);
        if (slots_[slot_] == nullptr) slots_[slot_] = std::make_unique<Slot>();
        Slot& slot = *slots_[slot_];
        slot.content.assign(content_.begin(), content_.begin() + static_cast<std::ptrdiff_t>(size_));
        slot.known = {Stamp(std::string(text)), Stamp(std::string(rest)), given};
    }

  private:
    static constexpr std::size_t kSlots = 4096;
    static constexpr std::size_t kMaxExcessMisses = 4 * kSlots;
    static constexpr std::size_t kMaxWords = 64;
    struct Slot {
        std::vector<std::uint64_t> content;
        CachedText known;
    };

    /// Collects everything that the text depends on in content_, and hashes most of it into hash_. Returns
    /// false if there is nothing or too much.
    bool gather(std::span<const Argument> values) {
        static_assert(sizeof(Argument) == 2 * sizeof(std::uint64_t));
        std::uint64_t* word = content_.data();
        std::uint64_t* const limit = word + kMaxWords;
        std::uint64_t factor = 0x9E3779B97F4A7C15, sum = 0;  // sums of products can be computed in parallel
        for (const Argument& value : values) {
            if (limit - word < 2) return false;
            std::memcpy(word, &value, sizeof value);
            if (value.kind == ValueKind::Array && value.array < arrays_.size()) {
                const ArrayInfo& array = arrays_[value.array];
                const std::size_t count = extent_count(array);
                if (static_cast<std::size_t>(limit - word) < 2 + count) return false;
                word[1] = std::uint64_t{array.dimensions} << 32 | std::uint64_t{array.is_defined} << 17 |
                          std::uint64_t{array.has_strides} << 16 | static_cast<std::uint64_t>(array.dtype);
                const std::int64_t* const from = extents_.data() + array.first_extent;
                for (std::size_t i = 0; i < count; ++i) {
                    word[2 + i] = static_cast<std::uint64_t>(from[i]);
                    sum += word[2 + i] * (factor += 2);
                }
                word += count;
            } else if (value.key == own_key_ && value.kind == ValueKind::Int &&
                       value.role == ArgumentRole::Keyword && own_ == nullptr) {
                own_ = &value;
                word[1] = 0;
            } else {
                sum += word[1] * (factor += 2);
            }
            word += 2;
        }
        size_ = static_cast<std::size_t>(word - content_.data());
        hash_ = mix_hash(sum, size_);
        return size_ != 0;
    }
    /// More than kMaxWords if the trace does not contain all of them.
    std::size_t extent_count(const ArrayInfo& array) const {
        const std::size_t count = std::size_t{array.dimensions} * (array.has_strides ? 2 : 1);
        const bool is_whole =
            array.first_extent <= extents_.size() && count <= extents_.size() - array.first_extent;
        return is_whole ? count : kMaxWords;
    }

    const std::span<const ArrayInfo> arrays_;
    const std::span<const std::int64_t> extents_;
    StringId own_key_ = ~StringId{0};
    const Argument* own_ = nullptr;
    std::array<std::uint64_t, kMaxWords> content_{};
    std::size_t size_ = 0;  ///< size of content_
    std::uint64_t hash_ = 0;
    std::size_t slot_ = 0;
    std::vector<std::unique_ptr<Slot>> slots_;  ///< null: a free slot
    std::size_t hits_ = 0;
    std::size_t misses_ = 0;
};

}  // namespace marey
