// value_encoder.h: encodes values as bytes on the side stack.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <marey/detail/export.h>
#include <marey/detail/log_format.h>
#include <marey/value.h>

namespace marey::detail {
inline namespace layout1 {

/// The kind of scalar that a String is the text of; None: not a scalar.
constexpr ValueKind scalar_kind(const ValueHeader& head) noexcept {
    return static_cast<ValueKind>((head.flags & kValueScalar) >> kValueScalarShift);
}

/// The parts of inputs and outputs to record.
struct ValueNeeds {
    bool shapes = false;    ///< metadata of arrays
    bool concrete = false;  ///< scalars, texts and lists of them
};

/// Appends values between `place` and `limit`. Values that do not fit are truncated and marked.
class ValueEncoder {
  public:
    ValueEncoder(std::byte* place, std::byte* limit) noexcept : cursor_(place), limit_(limit) {}
    std::byte* end() const noexcept { return cursor_; }
    /// The padded size of a value, a multiple of eight bytes.
    static constexpr std::size_t padded(std::size_t bytes) noexcept { return (bytes + 7) & ~std::size_t{7}; }

    void add_facts(const RangeProperties& facts) noexcept;
    /// Adds a value. `flags` is its role; a value that `needs` excludes becomes None with its kind. If it
    /// does not fit, the previous value is marked as truncated.
    void add(std::uint32_t key, std::uint8_t flags, const Value& value, ValueNeeds needs) noexcept;
    /// Adds an array, or a boolean, an integer or a double as bits, without checking needs.
    void add_array(std::uint32_t key, std::uint8_t flags, const ArrayView& array) noexcept;
    void add_scalar(std::uint32_t key, std::uint8_t flags, ValueKind kind, std::uint64_t bits) noexcept;
    void add_none(std::uint32_t key, std::uint8_t flags) noexcept;
    /// Adds a list of integers, each `integer_of(item)`.
    template <class Items, class IntegerOf>
    void add_integers(std::uint32_t key, std::uint8_t flags, const Items& items,
                      const IntegerOf& integer_of) noexcept;
    /// Marks the last value as truncated because there were more values than are kept.
    void mark_cut() noexcept;

  private:
    bool fits(std::size_t bytes) const noexcept {
        return static_cast<std::size_t>(limit_ - cursor_) >= bytes;
    }
    void put(const void* bytes, std::size_t count) noexcept;
    void add_string(std::uint32_t key, std::uint8_t flags, std::string_view text) noexcept;
    void add_list(std::uint32_t key, std::uint8_t flags, std::span<const Value> items, ValueNeeds needs,
                  int nesting) noexcept;
    void put_array(std::uint32_t key, std::uint8_t flags, const ArrayView& array) noexcept;
    void put_scalar(std::uint32_t key, std::uint8_t flags, ValueKind kind, std::uint64_t bits) noexcept;
    void added(std::byte* before) noexcept;
    MAREY_API void add_nested(std::uint32_t key, std::uint8_t flags, const Value& value, ValueNeeds needs,
                              int nesting) noexcept;

    static constexpr std::size_t kMaxDimensions = 64;

    std::byte* cursor_;
    std::byte* limit_;
    std::byte* last_ = nullptr;  ///< head of the last value added
};

// Inlined where ranges are opened: the kinds of value that operators usually have.

inline void ValueEncoder::put(const void* bytes, std::size_t count) noexcept {
    std::memcpy(cursor_, bytes, count);
    cursor_ += count;
}

inline void ValueEncoder::add_facts(const RangeProperties& facts) noexcept {
    if (!fits(sizeof(ValueHeader) + sizeof facts)) return;
    const ValueHeader head{0, kValueFacts, 0, 0};
    put(&head, sizeof head);
    put(&facts, sizeof facts);
}

inline void ValueEncoder::mark_cut() noexcept {
    if (last_ != nullptr) last_[offsetof(ValueHeader, flags)] |= std::byte{kValueTruncated};
}

[[gnu::always_inline]] inline void ValueEncoder::put_array(std::uint32_t key, std::uint8_t flags,
                                                           const ArrayView& array) noexcept {
    std::size_t dimensions = array.sizes.size();
    if (dimensions > kMaxDimensions) [[unlikely]] {
        dimensions = kMaxDimensions;
        flags |= kValueTruncated;
    }
    constexpr std::size_t kHeads = sizeof(ValueHeader) + sizeof(ArrayHeader);
    if (!fits(kHeads + 2 * dimensions * sizeof(std::int64_t))) return;  // the largest size
    const std::int64_t* const sizes = array.sizes.data();
    const std::int64_t* const strides =
        array.strides.size() == array.sizes.size() ? array.strides.data() : nullptr;
    std::byte* const place = cursor_ + kHeads;
    // Most arrays are dense and no dimension needs more than 32 bits, which takes a third of the bytes. Write
    // this form while checking, and write the array again if the check fails.
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
    std::uint32_t array_flags = array.is_defined ? 0 : kArrayUndefined;
    array_flags |= static_cast<std::uint32_t>(array.access) * kArrayRead;
    const bool is_object = array.storage_id == 0 && array.object != 0;
    if (is_object) array_flags |= kArrayObject;
    std::size_t extents = padded(dimensions * sizeof(std::uint32_t));
    if (dimensions % 2 != 0)
        std::memset(place + dimensions * sizeof(std::uint32_t), 0, sizeof(std::uint32_t));
    const bool is_dense = astray == 0;
    if (is_dense) array_flags |= kArrayContiguous;
    if (all >> 32 == 0 && (is_dense || strides == nullptr)) [[likely]] {
        array_flags |= kArraySmall;
    } else {
        const std::size_t bytes = dimensions * sizeof(std::int64_t);
        std::memcpy(place, sizes, bytes);
        extents = bytes;
        if (!is_dense && strides != nullptr) {
            array_flags |= kArrayStrides;
            std::memcpy(place + bytes, strides, bytes);
            extents = 2 * bytes;
        }
    }
    // Both headers, as words.
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

inline void ValueEncoder::put_scalar(std::uint32_t key, std::uint8_t flags, ValueKind kind,
                                     std::uint64_t bits) noexcept {
    const ValueHeader head{key, static_cast<std::uint8_t>(kind), flags, 0};
    if (!fits(sizeof head + sizeof bits)) return;
    put(&head, sizeof head);
    put(&bits, sizeof bits);
}

inline void ValueEncoder::added(std::byte* before) noexcept {
    if (cursor_ == before) return mark_cut();
    last_ = before;
}

[[gnu::always_inline]] inline void ValueEncoder::add_array(std::uint32_t key, std::uint8_t flags,
                                                           const ArrayView& array) noexcept {
    std::byte* const before = cursor_;
    put_array(key, flags, array);
    added(before);
}

inline void ValueEncoder::add_scalar(std::uint32_t key, std::uint8_t flags, ValueKind kind,
                                     std::uint64_t bits) noexcept {
    std::byte* const before = cursor_;
    put_scalar(key, flags, kind, bits);
    added(before);
}

inline void ValueEncoder::add_none(std::uint32_t key, std::uint8_t flags) noexcept {
    const ValueHeader head{key, static_cast<std::uint8_t>(ValueKind::None), flags, 0};
    if (!fits(sizeof head)) return mark_cut();
    last_ = cursor_;
    put(&head, sizeof head);
}

template <class Items, class IntegerOf>
void ValueEncoder::add_integers(std::uint32_t key, std::uint8_t flags, const Items& items,
                                const IntegerOf& integer_of) noexcept {
    constexpr std::size_t kItem = sizeof(ValueHeader) + sizeof(std::uint64_t);
    if (!fits(sizeof(ValueHeader))) return mark_cut();
    const std::size_t room = (static_cast<std::size_t>(limit_ - cursor_) - sizeof(ValueHeader)) / kItem;
    const std::size_t most = room < kMaxListItems ? room : kMaxListItems;
    const std::size_t count = items.size() < most ? items.size() : most;
    if (count < items.size()) flags |= kValueTruncated;
    last_ = cursor_;
    const ValueHeader head{key, static_cast<std::uint8_t>(ValueKind::List), flags,
                           static_cast<std::uint16_t>(count)};
    put(&head, sizeof head);
    for (std::size_t i = 0; i < count; ++i)
        put_scalar(0, 0, ValueKind::Int, static_cast<std::uint64_t>(integer_of(items[i])));
}

inline void ValueEncoder::add(std::uint32_t key, std::uint8_t flags, const Value& value,
                              ValueNeeds needs) noexcept {
    if (value.kind() == ValueKind::Array && needs.shapes) return add_array(key, flags, value.array());
    std::byte* const before = cursor_;
    add_nested(key, flags, value, needs, 0);
    added(before);
}

}  // namespace layout1
}  // namespace marey::detail
