// value_encoding.h: values to and from their bytes on the side stack.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <vector>

#include <kymo/detail/log_format.h>
#include <kymo/value.h>

namespace kymo {

class NameTable;

/// Which parts of inputs and outputs are kept.
struct ValueNeeds {
    bool shapes = false;    ///< metadata of arrays
    bool concrete = false;  ///< scalars, texts and lists of them
};

/// Appends values between `place` and `limit`; what does not fit is cut and marked so.
class ValueEncoder {
  public:
    ValueEncoder(std::byte* place, std::byte* limit) noexcept : cursor_(place), limit_(limit) {}
    std::byte* end() const noexcept { return cursor_; }
    /// Values are multiples of eight bytes.
    static constexpr std::size_t padded(std::size_t bytes) noexcept { return (bytes + 7) & ~std::size_t{7}; }

    void add_facts(const detail::RangeFacts& facts) noexcept;
    /// The innermost frames that fit.
    void add_stack(std::span<const std::uint64_t> frames, bool is_cut) noexcept;
    /// `flags` says what it is to its range; what `needs` does not name becomes None with its kind.
    /// One that does not fit marks the one before as truncated.
    void add(std::uint32_t key, std::uint8_t flags, const Value& value, ValueNeeds needs) noexcept;
    /// Marks the last value as truncated: more were given than are kept.
    void mark_cut() noexcept;

  private:
    bool fits(std::size_t bytes) const noexcept {
        return static_cast<std::size_t>(limit_ - cursor_) >= bytes;
    }
    void put(const void* bytes, std::size_t count) noexcept;
    void add_string(std::uint32_t key, std::uint8_t flags, std::string_view text) noexcept;
    void add_list(std::uint32_t key, std::uint8_t flags, std::span<const Value> items, ValueNeeds needs,
                  int nesting) noexcept;
    void add_array(std::uint32_t key, std::uint8_t flags, const ArrayView& array) noexcept;
    void add_nested(std::uint32_t key, std::uint8_t flags, const Value& value, ValueNeeds needs,
                    int nesting) noexcept;

    static constexpr std::size_t kMostDimensions = 64;

    std::byte* cursor_;
    std::byte* limit_;
    std::byte* last_ = nullptr;  ///< head of the last value added
};

// Inlined where ranges are opened: what operators usually have.

inline void ValueEncoder::put(const void* bytes, std::size_t count) noexcept {
    std::memcpy(cursor_, bytes, count);
    cursor_ += count;
}

inline void ValueEncoder::add_facts(const detail::RangeFacts& facts) noexcept {
    if (!fits(sizeof(detail::ValueHeader) + sizeof facts)) return;
    const detail::ValueHeader head{0, detail::kValueFacts, 0, 0};
    put(&head, sizeof head);
    put(&facts, sizeof facts);
}

inline void ValueEncoder::mark_cut() noexcept {
    if (last_ != nullptr) last_[offsetof(detail::ValueHeader, flags)] |= std::byte{detail::kValueTruncated};
}

inline void ValueEncoder::add_array(std::uint32_t key, std::uint8_t flags, const ArrayView& array) noexcept {
    std::size_t dimensions = array.sizes.size();
    if (dimensions > kMostDimensions) [[unlikely]] {
        dimensions = kMostDimensions;
        flags |= detail::kValueTruncated;
    }
    constexpr std::size_t kHeads = sizeof(detail::ValueHeader) + sizeof(detail::ArrayHeader);
    if (!fits(kHeads + 2 * dimensions * sizeof(std::int64_t))) return;  // the most that it can take
    const std::int64_t* const sizes = array.sizes.data();
    const std::int64_t* const strides =
        array.strides.size() == array.sizes.size() ? array.strides.data() : nullptr;
    std::byte* const place = cursor_ + kHeads;
    // Most arrays are dense, and no dimension of theirs needs more than 32 bits: a third of the bytes. They
    // are written so on the way, and again if that turns out to be wrong.
    std::uint64_t all = 0;
    std::uint64_t astray = strides != nullptr ? 0 : 1;
    std::uint64_t dense = 1;
    for (std::size_t i = dimensions; i-- != 0;) {
        const auto size = static_cast<std::uint64_t>(sizes[i]);
        all |= size;
        if (strides != nullptr) astray |= static_cast<std::uint64_t>(strides[i]) ^ dense;
        dense *= size;
        const auto small = static_cast<std::uint32_t>(size);
        std::memcpy(place + i * sizeof small, &small, sizeof small);
    }
    std::uint32_t array_flags = array.is_defined ? 0 : detail::kArrayUndefined;
    array_flags |= static_cast<std::uint32_t>(array.access) * detail::kArrayRead;
    const bool is_object = array.storage_id == 0 && array.object != 0;
    if (is_object) array_flags |= detail::kArrayObject;
    std::size_t extents = padded(dimensions * sizeof(std::uint32_t));
    if (dimensions % 2 != 0)
        std::memset(place + dimensions * sizeof(std::uint32_t), 0, sizeof(std::uint32_t));
    const bool is_dense = astray == 0;
    if (is_dense) array_flags |= detail::kArrayContiguous;
    if (all >> 32 == 0 && (is_dense || strides == nullptr)) [[likely]] {
        array_flags |= detail::kArraySmall;
    } else {
        const std::size_t bytes = dimensions * sizeof(std::int64_t);
        std::memcpy(place, sizes, bytes);
        extents = bytes;
        if (!is_dense && strides != nullptr) {
            array_flags |= detail::kArrayStrides;
            std::memcpy(place + bytes, strides, bytes);
            extents = 2 * bytes;
        }
    }
    // Both headers, in words.
    const std::uint64_t words[] = {key | std::uint64_t{static_cast<std::uint8_t>(ValueKind::Array)} << 32 |
                                       std::uint64_t{flags} << 40 | std::uint64_t{dimensions} << 48,
                                   std::uint64_t{static_cast<std::uint8_t>(array.dtype)} |
                                       std::uint64_t{static_cast<std::uint8_t>(array.layout)} << 8 |
                                       std::uint64_t{static_cast<std::uint8_t>(array.device.type)} << 16 |
                                       std::uint64_t{array_flags} << 24 |
                                       std::uint64_t{static_cast<std::uint32_t>(array.device.index)} << 32,
                                   reinterpret_cast<std::uintptr_t>(array.storage),
                                   is_object ? array.object : array.storage_id};
    static_assert(sizeof words == kHeads && std::endian::native == std::endian::little);
    std::memcpy(cursor_, words, sizeof words);
    cursor_ = place + extents;
}

inline void ValueEncoder::add(std::uint32_t key, std::uint8_t flags, const Value& value,
                              ValueNeeds needs) noexcept {
    std::byte* const before = cursor_;
    if (value.kind() == ValueKind::Array && needs.shapes) {
        add_array(key, flags, value.array());
    } else {
        add_nested(key, flags, value, needs, 0);
    }
    if (cursor_ == before) return mark_cut();
    last_ = before;
}

/// The keyword values of a payload, as views of it. Both the payload and this must outlive their use.
class DecodedKeywords {
  public:
    DecodedKeywords(std::span<const std::byte> payload, const NameTable& names);
    std::span<const KeyedValue> values() const noexcept { return values_; }

  private:
    bool read(std::span<const std::byte>& rest, KeyedValue& value, std::uint8_t& flags, int nesting);

    const NameTable& names_;
    std::vector<KeyedValue> values_;
    std::deque<std::vector<Value>> lists_;
    std::deque<ArrayView> arrays_;
    std::deque<std::vector<std::int64_t>> extents_;
};

}  // namespace kymo
