// value_encoding.cpp: encodes and decodes values on the side stack.
#include "record/value_encoding.h"

#include <algorithm>
#include <cstring>

#include "record/journal_writer.h"
#include "record/name_table.h"
#include "record/recorder.h"
#include "record/thread_log.h"

namespace marey {

using detail::ValueHeader;

namespace {

constexpr int kMaxNesting = 4;  // lists in lists

// A list of arrays is metadata like an array; any other list is a value.
bool is_metadata(const Value& value) noexcept {
    if (value.kind() == ValueKind::Array || value.counts_as() == ValueKind::Array) return true;
    return value.kind() == ValueKind::List && !value.list().empty() && is_metadata(value.list().front());
}

}  // namespace

namespace detail {
inline namespace layout1 {

void ValueEncoder::add_nested(std::uint32_t key, std::uint8_t flags, const Value& value, ValueNeeds needs,
                              int nesting) noexcept {
    const ValueKind kind = value.kind();
    ValueHeader head{key, static_cast<std::uint8_t>(kind), flags, 0};
    if (kind == ValueKind::None || !(is_metadata(value) ? needs.shapes : needs.concrete) ||
        nesting == kMaxNesting) {
        if (!fits(sizeof head)) return;
        head.kind = static_cast<std::uint8_t>(ValueKind::None);
        const bool is_scalar = kind == ValueKind::String && value.counts_as() != ValueKind::None;
        head.count = static_cast<std::uint16_t>(is_scalar ? value.counts_as() : kind);
        return put(&head, sizeof head);
    }
    switch (kind) {
        case ValueKind::String:
            flags |= static_cast<std::uint8_t>(static_cast<unsigned>(value.counts_as()) << kValueScalarShift);
            return add_string(key, flags, value.string());
        case ValueKind::List:
            if (value.counts_as() == ValueKind::Array) flags |= kValueScalar;
            return add_list(key, flags, value.list(), needs, nesting);
        case ValueKind::Array:
            return put_array(key, flags, value.array());
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
    put_scalar(key, flags, kind, word);
}

void ValueEncoder::add_string(std::uint32_t key, std::uint8_t flags, std::string_view text) noexcept {
    if (!fits(sizeof(ValueHeader))) return;
    const std::size_t room =
        (static_cast<std::size_t>(limit_ - cursor_) - sizeof(ValueHeader)) & ~std::size_t{7};
    const std::size_t bytes = std::min({text.size(), kMaxStringBytes, room});
    if (bytes < text.size()) flags |= kValueTruncated;
    const ValueHeader head{key, static_cast<std::uint8_t>(ValueKind::String), flags,
                           static_cast<std::uint16_t>(bytes)};
    put(&head, sizeof head);
    if (bytes % 8 != 0) std::memset(cursor_ + bytes - bytes % 8, 0, 8);
    if (bytes != 0) std::memcpy(cursor_, text.data(), bytes);
    cursor_ += padded(bytes);
}

void ValueEncoder::add_list(std::uint32_t key, std::uint8_t flags, std::span<const Value> items,
                            ValueNeeds needs, int nesting) noexcept {
    if (!fits(sizeof(ValueHeader))) return;
    std::byte* const place = cursor_;
    cursor_ += sizeof(ValueHeader);
    std::uint16_t count = 0;
    for (const Value& item : items) {
        std::byte* const before = cursor_;
        if (count < kMaxListItems) add_nested(0, 0, item, needs, nesting + 1);
        if (cursor_ == before) {
            flags |= kValueTruncated;
            break;
        }
        ++count;
    }
    const ValueHeader head{key, static_cast<std::uint8_t>(ValueKind::List), flags, count};
    std::memcpy(place, &head, sizeof head);
}

}  // namespace layout1
}  // namespace detail

std::size_t extent_bytes(const detail::ArrayHeader& head, std::uint32_t dimensions) noexcept {
    const std::size_t count = std::size_t{dimensions} * ((head.flags & detail::kArrayStrides) != 0 ? 2 : 1);
    return ValueEncoder::padded(count * ((head.flags & detail::kArraySmall) != 0 ? 4 : 8));
}

bool take_array(std::span<const std::byte>& rest, std::uint32_t dimensions, detail::ArrayHeader& head,
                std::vector<std::int64_t>& extents) {
    if (rest.size() < sizeof head) return false;
    std::memcpy(&head, rest.data(), sizeof head);
    const std::size_t bytes = extent_bytes(head, dimensions);
    rest = rest.subspan(sizeof head);
    if (rest.size() < bytes) return false;
    const bool is_written = (head.flags & detail::kArrayStrides) != 0;
    const std::size_t first = extents.size();
    extents.resize(first + std::size_t{dimensions} * (has_strides(head) ? 2 : 1));
    for (std::size_t i = 0; i < std::size_t{dimensions} * (is_written ? 2 : 1); ++i) {
        if ((head.flags & detail::kArraySmall) != 0) {
            std::uint32_t small;
            std::memcpy(&small, rest.data() + i * sizeof small, sizeof small);
            extents[first + i] = small;
        } else {
            std::memcpy(&extents[first + i], rest.data() + i * sizeof extents[0], sizeof extents[0]);
        }
    }
    rest = rest.subspan(bytes);
    if (is_written || !has_strides(head)) return true;
    std::uint64_t stride = 1;  // contiguous
    for (std::size_t i = dimensions; i-- != 0;) {
        extents[first + dimensions + i] = static_cast<std::int64_t>(stride);
        stride *= static_cast<std::uint64_t>(extents[first + i]);
    }
    return true;
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
            const std::byte* const place = take(ValueEncoder::padded(head.count));
            if (place == nullptr) return false;
            const std::string_view text(reinterpret_cast<const char*>(place), head.count);
            value.value = Value::scalar_text(detail::scalar_kind(head), text);
            return true;
        }
        case ValueKind::List: {
            if (nesting == kMaxNesting) return false;
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
            detail::ArrayHeader facts;
            std::vector<std::int64_t>& extents = extents_.emplace_back();
            if (!take_array(rest, head.count, facts, extents)) return false;
            ArrayView& array = arrays_.emplace_back();
            array.dtype = static_cast<DType>(facts.dtype);
            array.layout = static_cast<Layout>(facts.layout);
            array.device = {static_cast<DeviceType>(facts.device_type), facts.device_index};
            array.is_defined = (facts.flags & detail::kArrayUndefined) == 0;
            array.sizes = std::span(extents).first(head.count);
            if (has_strides(facts)) array.strides = std::span(extents).last(head.count);
            array.storage = reinterpret_cast<const void*>(facts.storage);
            const bool is_object = (facts.flags & detail::kArrayObject) != 0;
            (is_object ? array.object : array.storage_id) = facts.storage_id;
            array.access = access_of(facts);
            value.value = Value(array);
            return true;
        }
    }
    flags = detail::kValueInput;  // not a keyword
    if (head.kind == detail::kValueFacts) return take(sizeof(detail::RangeProperties)) != nullptr;
    if (head.kind == detail::kValueStackNumber) return true;
    return head.kind == detail::kValueStack && take(head.count * sizeof(std::uint64_t)) != nullptr;
}

std::uint32_t key_string(std::string_view key) noexcept {
    if (const std::uint32_t known = Recorder::get().names().find_key(key)) return known;
    const SlowPath path(kNoRecord);
    return path ? Recorder::get().journal().intern_key(key) : 0;
}

}  // namespace marey
