// value_encoding.cpp: values to and from their bytes on the side stack.
#include "record/value_encoding.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "record/name_table.h"

namespace kymo {

using detail::ValueHeader;

namespace {

constexpr int kMostNesting = 4;  // lists in lists
constexpr std::size_t kMostDimensions = 64;

std::size_t round_up_8(std::size_t bytes) noexcept {
    return (bytes + 7) & ~std::size_t{7};
}

// A list of arrays is metadata like an array; any other list is a value.
bool is_metadata(const Value& value) noexcept {
    if (value.kind() == ValueKind::Array) return true;
    return value.kind() == ValueKind::List && !value.list().empty() && is_metadata(value.list().front());
}

}  // namespace

void ValueEncoder::put(const void* bytes, std::size_t count) noexcept {
    std::memcpy(cursor_, bytes, count);
    cursor_ += count;
}

void ValueEncoder::add_facts(const detail::RangeFacts& facts) noexcept {
    if (!fits(sizeof(ValueHeader) + sizeof facts)) return;
    const ValueHeader head{0, detail::kValueFacts, 0, 0};
    put(&head, sizeof head);
    put(&facts, sizeof facts);
}

void ValueEncoder::add_stack(std::span<const std::uint64_t> frames, bool is_cut) noexcept {
    if (frames.empty() || !fits(sizeof(ValueHeader) + sizeof(std::uint64_t))) return;
    const std::size_t room =
        (static_cast<std::size_t>(limit_ - cursor_) - sizeof(ValueHeader)) / sizeof(std::uint64_t);
    const std::size_t count = std::min(frames.size(), room);
    const bool is_short = is_cut || count < frames.size();
    const ValueHeader head{0, detail::kValueStack, is_short ? detail::kValueTruncated : std::uint8_t{0},
                           static_cast<std::uint16_t>(count)};
    put(&head, sizeof head);
    put(frames.data(), count * sizeof(std::uint64_t));
}

void ValueEncoder::add(std::uint32_t key, std::uint8_t flags, const Value& value, ValueNeeds needs) noexcept {
    std::byte* const before = cursor_;
    if (value.kind() == ValueKind::Array && needs.shapes) {
        add_array(key, flags, value.array());
    } else {
        add_nested(key, flags, value, needs, 0);
    }
    if (cursor_ == before) return mark_cut();
    last_ = before;
}

void ValueEncoder::mark_cut() noexcept {
    if (last_ != nullptr) last_[offsetof(ValueHeader, flags)] |= std::byte{detail::kValueTruncated};
}

void ValueEncoder::add_nested(std::uint32_t key, std::uint8_t flags, const Value& value, ValueNeeds needs,
                              int nesting) noexcept {
    const ValueKind kind = value.kind();
    ValueHeader head{key, static_cast<std::uint8_t>(kind), flags, 0};
    if (kind == ValueKind::None || !(is_metadata(value) ? needs.shapes : needs.concrete) ||
        nesting == kMostNesting) {
        if (!fits(sizeof head)) return;
        head.kind = static_cast<std::uint8_t>(ValueKind::None);
        head.count = static_cast<std::uint16_t>(kind);
        return put(&head, sizeof head);
    }
    switch (kind) {
        case ValueKind::String:
            return add_string(key, flags, value.string());
        case ValueKind::List:
            return add_list(key, flags, value.list(), needs, nesting);
        case ValueKind::Array:
            return add_array(key, flags, value.array());
        default:
            break;
    }
    std::uint64_t word = 0;
    if (kind == ValueKind::Bool) word = value.boolean() ? 1 : 0;
    if (kind == ValueKind::Int) word = static_cast<std::uint64_t>(value.integer());
    if (kind == ValueKind::Double) {
        const double real = value.real();
        std::memcpy(&word, &real, sizeof word);
    }
    if (!fits(sizeof head + sizeof word)) return;
    put(&head, sizeof head);
    put(&word, sizeof word);
}

void ValueEncoder::add_string(std::uint32_t key, std::uint8_t flags, std::string_view text) noexcept {
    if (!fits(sizeof(ValueHeader))) return;
    const std::size_t room =
        (static_cast<std::size_t>(limit_ - cursor_) - sizeof(ValueHeader)) & ~std::size_t{7};
    const std::size_t bytes = std::min({text.size(), detail::kMaxStringBytes, room});
    if (bytes < text.size()) flags |= detail::kValueTruncated;
    const ValueHeader head{key, static_cast<std::uint8_t>(ValueKind::String), flags,
                           static_cast<std::uint16_t>(bytes)};
    put(&head, sizeof head);
    if (bytes % 8 != 0) std::memset(cursor_ + bytes - bytes % 8, 0, 8);
    if (bytes != 0) std::memcpy(cursor_, text.data(), bytes);
    cursor_ += round_up_8(bytes);
}

void ValueEncoder::add_list(std::uint32_t key, std::uint8_t flags, std::span<const Value> items,
                            ValueNeeds needs, int nesting) noexcept {
    if (!fits(sizeof(ValueHeader))) return;
    std::byte* const place = cursor_;
    cursor_ += sizeof(ValueHeader);
    std::uint16_t count = 0;
    for (const Value& item : items) {
        std::byte* const before = cursor_;
        if (count < detail::kMaxListItems) add_nested(0, 0, item, needs, nesting + 1);
        if (cursor_ == before) {
            flags |= detail::kValueTruncated;
            break;
        }
        ++count;
    }
    const ValueHeader head{key, static_cast<std::uint8_t>(ValueKind::List), flags, count};
    std::memcpy(place, &head, sizeof head);
}

void ValueEncoder::add_array(std::uint32_t key, std::uint8_t flags, const ArrayView& array) noexcept {
    std::size_t dimensions = array.sizes.size();
    if (dimensions > kMostDimensions) [[unlikely]] {
        dimensions = kMostDimensions;
        flags |= detail::kValueTruncated;
    }
    constexpr std::size_t kHeads = sizeof(ValueHeader) + sizeof(detail::ArrayHeader);
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
    std::size_t extents = round_up_8(dimensions * sizeof(std::uint32_t));
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

DecodedKeywords::DecodedKeywords(std::span<const std::byte> payload, const NameTable& names) : names_(names) {
    while (!payload.empty()) {
        KeyedValue value;
        std::uint8_t flags = 0;
        if (!read(payload, value, flags, 0)) break;
        if ((flags & (detail::kValueInput | detail::kValueOutput)) == 0) values_.push_back(value);
    }
}

bool DecodedKeywords::read(std::span<const std::byte>& rest, KeyedValue& value, std::uint8_t& flags,
                           int nesting) {
    ValueHeader head;
    if (rest.size() < sizeof head) return false;
    std::memcpy(&head, rest.data(), sizeof head);
    rest = rest.subspan(sizeof head);
    flags = head.flags;
    value.key = names_.text(head.key);
    const auto take = [&rest](std::size_t bytes) -> const std::byte* {
        if (rest.size() < bytes) return nullptr;
        const std::byte* const place = rest.data();
        rest = rest.subspan(bytes);
        return place;
    };
    switch (static_cast<ValueKind>(head.kind)) {
        case ValueKind::None:
            return true;
        case ValueKind::Bool:
        case ValueKind::Int:
        case ValueKind::Double: {
            const std::byte* const place = take(8);
            if (place == nullptr) return false;
            std::int64_t word;
            std::memcpy(&word, place, sizeof word);
            double real;
            std::memcpy(&real, place, sizeof real);
            if (head.kind == static_cast<std::uint8_t>(ValueKind::Bool)) {
                value.value = Value(word != 0);
            } else if (head.kind == static_cast<std::uint8_t>(ValueKind::Int)) {
                value.value = Value(word);
            } else {
                value.value = Value(real);
            }
            return true;
        }
        case ValueKind::String: {
            const std::byte* const place = take(round_up_8(head.count));
            if (place == nullptr) return false;
            value.value = Value(std::string_view(reinterpret_cast<const char*>(place), head.count));
            return true;
        }
        case ValueKind::List: {
            if (nesting == kMostNesting) return false;
            std::vector<Value> items;
            for (int i = 0; i < head.count; ++i) {
                KeyedValue item;
                std::uint8_t ignored = 0;
                if (!read(rest, item, ignored, nesting + 1)) return false;
                items.push_back(item.value);
            }
            value.value = Value(std::span<const Value>(lists_.emplace_back(std::move(items))));
            return true;
        }
        case ValueKind::Array: {
            const std::byte* const place = take(sizeof(detail::ArrayHeader));
            if (place == nullptr) return false;
            detail::ArrayHeader facts;
            std::memcpy(&facts, place, sizeof facts);
            const bool has_strides = (facts.flags & detail::kArrayStrides) != 0;
            const bool is_small = (facts.flags & detail::kArraySmall) != 0;
            const bool is_dense = (facts.flags & detail::kArrayContiguous) != 0;
            const std::size_t count = std::size_t{head.count} * (has_strides ? 2 : 1);
            const std::byte* const place_of_extents = take(round_up_8(count * (is_small ? 4 : 8)));
            if (place_of_extents == nullptr) return false;
            std::vector<std::int64_t>& extents = extents_.emplace_back(std::size_t{2} * head.count);
            for (std::size_t i = 0; i < count; ++i) {
                if (is_small) {
                    std::uint32_t small;
                    std::memcpy(&small, place_of_extents + i * 4, sizeof small);
                    extents[i] = small;
                } else {
                    std::memcpy(&extents[i], place_of_extents + i * 8, sizeof extents[i]);
                }
            }
            if (is_dense) {
                std::uint64_t stride = 1;
                for (std::size_t i = head.count; i-- != 0;) {
                    extents[head.count + i] = static_cast<std::int64_t>(stride);
                    stride *= static_cast<std::uint64_t>(extents[i]);
                }
            }
            ArrayView& array = arrays_.emplace_back();
            array.dtype = static_cast<DType>(facts.dtype);
            array.layout = static_cast<Layout>(facts.layout);
            array.device = {static_cast<DeviceType>(facts.device_type), facts.device_index};
            array.is_defined = (facts.flags & detail::kArrayUndefined) == 0;
            array.sizes = std::span(extents).first(head.count);
            if (has_strides || is_dense) array.strides = std::span(extents).last(head.count);
            array.storage = reinterpret_cast<const void*>(facts.storage);
            const bool is_object = (facts.flags & detail::kArrayObject) != 0;
            (is_object ? array.object : array.storage_id) = facts.storage_id;
            array.access = (facts.flags & detail::kArrayWritten) != 0 ? ArrayAccess::Write
                           : (facts.flags & detail::kArrayRead) != 0  ? ArrayAccess::Read
                                                                      : ArrayAccess::Unknown;
            value.value = Value(array);
            return true;
        }
    }
    flags = detail::kValueInput;  // no keyword
    if (head.kind == detail::kValueFacts) return take(sizeof(detail::RangeFacts)) != nullptr;
    return head.kind == detail::kValueStack && take(head.count * sizeof(std::uint64_t)) != nullptr;
}

}  // namespace kymo
