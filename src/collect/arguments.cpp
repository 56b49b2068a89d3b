// arguments.cpp: decodes and encodes typed values of a log.
#include "collect/arguments.h"

#include <algorithm>
#include <cstring>

#include "collect/log_records.h"
#include "record/value_encoding.h"

namespace marey {

using namespace detail;

namespace {

constexpr int kMaxNesting = 4;  // lists in lists; recorders write one level
constexpr std::size_t kMaxExtents = 0xffffffff;

/// Skips one value. False when it is incomplete. `has_array` becomes true when it is or contains an array.
bool skip_value(std::span<const std::byte>& rest, bool& has_array, int nesting) {
    if (rest.size() < sizeof(ValueHeader)) return false;
    const auto head = read_as<ValueHeader>(rest.data());
    rest = rest.subspan(sizeof head);
    const auto skip = [&](std::size_t bytes) {
        if (rest.size() < bytes) return false;
        rest = rest.subspan(bytes);
        return true;
    };
    switch (static_cast<ValueKind>(head.kind)) {
        case ValueKind::None:
            return true;
        case ValueKind::Bool:
        case ValueKind::Int:
        case ValueKind::Double:
            return skip(sizeof(std::uint64_t));
        case ValueKind::String:
            return rest.size() >= head.count && skip(std::min(rest.size(), round_up_8(head.count)));
        case ValueKind::List:
            if (nesting == kMaxNesting) return false;
            for (std::uint32_t i = 0; i < head.count; ++i) {
                if (!skip_value(rest, has_array, nesting + 1)) return false;
            }
            return true;
        case ValueKind::Array: {
            has_array = true;
            if (rest.size() < sizeof(ArrayHeader)) return false;
            const auto array = read_as<ArrayHeader>(rest.data());
            return skip(sizeof array + extent_bytes(array, head.count));
        }
    }
    return false;
}

bool holds_array(std::span<const std::byte> rest, int nesting) {
    bool has_array = false;
    skip_value(rest, has_array, nesting);
    return has_array;
}

ArgumentRole role_of(const ValueHeader& head) {
    if ((head.flags & kValueInput) != 0) return ArgumentRole::Input;
    return (head.flags & kValueOutput) != 0 ? ArgumentRole::Output : ArgumentRole::Keyword;
}

}  // namespace

bool ArgumentDecoder::read_value(std::span<const std::byte>& rest, Argument& value, const ValueFilter& kept,
                                 int nesting) {
    if (rest.size() < sizeof(ValueHeader)) return false;
    const auto head = read_as<ValueHeader>(rest.data());
    const auto kind = static_cast<ValueKind>(head.kind);
    value.key = head.key < data_.strings.size() ? head.key : 0;
    value.role = kept.role;
    const bool has_no_arrays =
        kind == ValueKind::List && head.count == 0 && (head.flags & kValueScalar) == kValueScalar;
    const bool is_kept = kind == ValueKind::Array || has_no_arrays ? kept.arrays
                         : kind == ValueKind::List ? kept.scalars || holds_array(rest, nesting)
                                                   : kept.scalars || kind == ValueKind::None;
    if (!is_kept) {
        const ValueKind scalar = kind == ValueKind::String ? scalar_kind(head) : ValueKind::None;
        value.left_out = scalar != ValueKind::None ? scalar : kind;
        bool has_array = false;
        return skip_value(rest, has_array, nesting);
    }
    rest = rest.subspan(sizeof head);
    value.kind = kind;
    value.truncated = (head.flags & kValueTruncated) != 0;
    switch (kind) {
        case ValueKind::None:
            if (head.count <= static_cast<std::uint16_t>(ValueKind::Array))
                value.left_out = static_cast<ValueKind>(head.count);
            return true;
        case ValueKind::Bool:
        case ValueKind::Int:
        case ValueKind::Double: {
            if (rest.size() < sizeof(std::uint64_t)) return false;
            const auto word = read_as<std::uint64_t>(rest.data());
            rest = rest.subspan(sizeof word);
            if (kind == ValueKind::Bool) {
                value.boolean = word != 0;
            } else if (kind == ValueKind::Int) {
                value.integer = static_cast<std::int64_t>(word);
            } else {
                std::memcpy(&value.real, &word, sizeof word);
            }
            return true;
        }
        case ValueKind::String: {
            if (rest.size() < head.count) return false;
            value.left_out = scalar_kind(head);
            value.string = strings_.intern({reinterpret_cast<const char*>(rest.data()), head.count});
            rest = rest.subspan(std::min(rest.size(), round_up_8(head.count)));
            return true;
        }
        case ValueKind::List: {
            if (nesting == kMaxNesting) return false;
            std::vector<Argument> items;
            for (std::uint32_t i = 0; i < head.count; ++i) {
                Argument item;
                if (!read_value(rest, item, kept, nesting + 1)) return false;
                items.push_back(item);
            }
            if (has_no_arrays) value.left_out = ValueKind::Array;
            value.list.first = static_cast<std::uint32_t>(data_.list_items.size());
            value.list.count = static_cast<std::uint32_t>(items.size());
            data_.list_items.insert(data_.list_items.end(), items.begin(), items.end());
            return true;
        }
        case ValueKind::Array:
            return read_array(rest, head.count, value);
    }
    return false;
}

bool ArgumentDecoder::read_array(std::span<const std::byte>& rest, std::uint32_t dimensions,
                                 Argument& value) {
    if (data_.array_extents.size() + 2 * std::size_t{dimensions} > kMaxExtents) return false;
    ArrayHeader head;
    ArrayInfo array;
    array.first_extent = static_cast<std::uint32_t>(data_.array_extents.size());
    if (!take_array(rest, dimensions, head, data_.array_extents)) return false;
    array.dtype = static_cast<DType>(head.dtype);
    array.layout = static_cast<Layout>(head.layout);
    array.is_defined = (head.flags & kArrayUndefined) == 0;
    array.has_strides = has_strides(head);
    array.device = {static_cast<DeviceType>(head.device_type), head.device_index};
    array.dimensions = dimensions;
    array.storage = head.storage;
    ((head.flags & kArrayObject) != 0 ? array.object : array.storage_id) = head.storage_id;
    array.access = access_of(head);
    value.array = static_cast<Row>(data_.arrays.size());
    data_.arrays.push_back(array);
    return true;
}

bool ArgumentDecoder::read_facts(std::span<const std::byte>& rest, RangeDetail& detail) {
    rest = rest.subspan(sizeof(ValueHeader));
    if (rest.size() < sizeof(RangeProperties)) return false;
    const auto facts = read_as<RangeProperties>(rest.data());
    rest = rest.subspan(sizeof facts);
    // No thread has such an id: cut to 32 bits it would be another thread's.
    if (facts.forward_thread > 0xffffffff) {
        ++damaged_;
        return true;
    }
    detail.sequence = std::max<std::int64_t>(facts.sequence, -1);
    detail.forward_thread = static_cast<std::uint32_t>(facts.forward_thread);
    detail.id = facts.id;
    return true;
}

bool ArgumentDecoder::read_stack(std::span<const std::byte>& rest) {
    const auto head = read_as<ValueHeader>(rest.data());
    rest = rest.subspan(sizeof head);
    const bool is_number = head.kind == kValueStackNumber;
    const std::size_t bytes = is_number ? 0 : head.count * sizeof(std::uint64_t);
    if (rest.size() < bytes) return false;
    if (wanted_.keywords) {
        if (stack_key_ == 0) stack_key_ = strings_.intern("Call stack");
        Argument stack;
        stack.key = stack_key_;
        stack.kind = ValueKind::List;
        stack.truncated = (head.flags & kValueTruncated) != 0;
        stack.list.first = static_cast<std::uint32_t>(data_.list_items.size());
        // Stacks with the same number share their frames.
        const auto known = is_number ? numbered_stacks_.find(head.key) : numbered_stacks_.end();
        if (known != numbered_stacks_.end()) {
            stack.list = known->second;
        } else {
            if (is_number) frames_.for_each_frame(head.key, [this](std::uint64_t word) { add_frame(word); });
            for (std::size_t at = 0; at < bytes; at += sizeof(std::uint64_t))
                add_frame(read_as<std::uint64_t>(rest.data() + at));
            stack.list.count = static_cast<std::uint32_t>(data_.list_items.size()) - stack.list.first;
            if (is_number) numbered_stacks_.emplace(head.key, stack.list);
        }
        if (stack.list.count != 0) data_.arguments.push_back(stack);  // else its frames are lost
    }
    rest = rest.subspan(bytes);
    return true;
}

void ArgumentDecoder::add_frame(std::uint64_t word) {
    Argument frame;
    frame.kind = ValueKind::String;
    frame.string = frames_.text_of(word);
    data_.list_items.push_back(frame);
}

bool ArgumentDecoder::read_top(std::span<const std::byte>& rest, RangeDetail& detail) {
    if (rest.size() < sizeof(ValueHeader)) return false;
    const auto head = read_as<ValueHeader>(rest.data());
    if (head.kind == kValueFacts) return read_facts(rest, detail);
    if (head.kind == kValueStack || head.kind == kValueStackNumber) return read_stack(rest);
    const ArgumentRole role = role_of(head);
    const bool is_keyword = role == ArgumentRole::Keyword;
    const bool is_array = head.kind == static_cast<std::uint8_t>(ValueKind::Array);
    if (is_keyword ? !wanted_.keywords || (is_array && !wanted_.shapes) : !wanted_.shapes) {
        bool has_array = false;
        return skip_value(rest, has_array, 0);
    }
    Argument value;
    if (!read_value(rest, value, {is_keyword || wanted_.concrete, wanted_.shapes, role}, 0)) return false;
    data_.arguments.push_back(value);
    return true;
}

bool ArgumentDecoder::read_of_site(std::span<const std::byte>& rest) {
    Argument value;
    if (!read_value(rest, value, {true, true, ArgumentRole::Site}, 0)) return false;
    data_.arguments.push_back(value);
    return true;
}

void ArgumentDecoder::decode(std::span<const std::byte> payload, RangeDetail& detail, bool is_of_site) {
    while (!payload.empty()) {
        const std::size_t items = data_.list_items.size();
        const std::size_t arrays = data_.arrays.size();
        const std::size_t extents = data_.array_extents.size();
        if (is_of_site ? read_of_site(payload) : read_top(payload, detail)) continue;
        data_.list_items.resize(items);
        data_.arrays.resize(arrays);
        data_.array_extents.resize(extents);
        ++damaged_;
        break;
    }
}

void ArgumentDecoder::add_slice(std::vector<ArgumentSlice>& index, Row row, std::size_t first) {
    const std::size_t count = data_.arguments.size() - first;
    if (count != 0)
        index.push_back({row, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count)});
}

void ArgumentDecoder::decode_range(std::span<const std::byte> payload, Row row) {
    decode_range(payload, {}, row);
}

void ArgumentDecoder::decode_range(std::span<const std::byte> payload,
                                   std::span<const std::span<const std::byte>> of_site, Row row) {
    RangeDetail detail;
    const std::size_t first = data_.arguments.size();
    decode(payload, detail, false);
    for (const std::span<const std::byte> part : of_site) decode(part, detail, true);
    add_slice(data_.range_arguments, row, first);
    if (detail.sequence < 0 && detail.forward_thread == 0 && detail.id == 0) return;
    detail.range = row;
    data_.range_details.push_back(detail);
}

void ArgumentDecoder::decode_instant(std::span<const std::byte> payload, Row row) {
    RangeDetail unused;
    const std::size_t first = data_.arguments.size();
    decode(payload, unused, false);
    add_slice(data_.instant_arguments, row, first);
}

}  // namespace marey
