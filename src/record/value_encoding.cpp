// value_encoding.cpp: values to and from their bytes on the side stack.
#include "record/value_encoding.h"

#include <algorithm>
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

void ValueEncoder::add(std::uint32_t key, std::uint8_t flags, const Value& value, ValueNeeds needs) noexcept {
    add_nested(key, flags, value, needs, 0);
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
    const std::size_t dimensions = std::min(array.sizes.size(), kMostDimensions);
    const bool has_strides = array.strides.size() == array.sizes.size() && dimensions != 0;
    const std::size_t extents = dimensions * sizeof(std::int64_t);
    if (!fits(sizeof(ValueHeader) + sizeof(detail::ArrayHeader) + (has_strides ? 2 : 1) * extents)) return;
    if (dimensions < array.sizes.size()) flags |= detail::kValueTruncated;
    const ValueHeader head{key, static_cast<std::uint8_t>(ValueKind::Array), flags,
                           static_cast<std::uint16_t>(dimensions)};
    detail::ArrayHeader facts{};
    facts.dtype = static_cast<std::uint8_t>(array.dtype);
    facts.layout = static_cast<std::uint8_t>(array.layout);
    facts.device_type = static_cast<std::uint8_t>(array.device.type);
    if (has_strides) facts.flags |= detail::kArrayStrides;
    if (!array.is_defined) facts.flags |= detail::kArrayUndefined;
    facts.device_index = array.device.index;
    facts.storage = reinterpret_cast<std::uintptr_t>(array.storage);
    facts.storage_id = array.storage_id;
    put(&head, sizeof head);
    put(&facts, sizeof facts);
    if (dimensions == 0) return;
    put(array.sizes.data(), extents);
    if (has_strides) put(array.strides.data(), extents);
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
            const std::byte* const extents = take(head.count * sizeof(std::int64_t) * (has_strides ? 2 : 1));
            if (extents == nullptr) return false;
            const auto* const first = reinterpret_cast<const std::int64_t*>(extents);
            ArrayView& array = arrays_.emplace_back();
            array.dtype = static_cast<DType>(facts.dtype);
            array.layout = static_cast<Layout>(facts.layout);
            array.device = {static_cast<DeviceType>(facts.device_type), facts.device_index};
            array.is_defined = (facts.flags & detail::kArrayUndefined) == 0;
            array.sizes = {first, head.count};
            if (has_strides) array.strides = {first + head.count, head.count};
            array.storage = reinterpret_cast<const void*>(facts.storage);
            array.storage_id = facts.storage_id;
            value.value = Value(array);
            return true;
        }
    }
    if (head.kind != detail::kValueFacts) return false;
    flags = detail::kValueInput;  // no keyword
    return take(sizeof(detail::RangeFacts)) != nullptr;
}

}  // namespace kymo
