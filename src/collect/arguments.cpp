// arguments.cpp: typed values, from and to their bytes in a log.
#include "collect/arguments.h"

#include <algorithm>
#include <cstring>

#include "collect/log_records.h"

namespace kymo {

using namespace detail;

namespace {

constexpr int kMostNesting = 4;  // lists in lists; recorders write one level

}  // namespace

StringPool::StringPool(std::vector<std::string>& strings)
    : strings_(strings), ids_(strings.size() * 2, Hash{&strings}, Equal{&strings}) {
    for (StringId id = 0; id < strings.size(); ++id) ids_.insert(id);
}

StringId StringPool::intern(std::string_view text) {
    if (const auto found = ids_.find(text); found != ids_.end()) return *found;
    const auto id = static_cast<StringId>(strings_.size());
    strings_.emplace_back(text);
    ids_.insert(id);
    return id;
}

bool ArgumentDecoder::read_value(std::span<const std::byte>& rest, Argument& value, int nesting) {
    if (rest.size() < sizeof(ValueHeader)) return false;
    const auto head = read_as<ValueHeader>(rest.data());
    rest = rest.subspan(sizeof head);
    value.key = head.key < data_.strings.size() ? head.key : 0;
    value.kind = static_cast<ValueKind>(head.kind);
    value.truncated = (head.flags & kValueTruncated) != 0;
    switch (value.kind) {
        case ValueKind::None:
            return true;
        case ValueKind::Bool:
        case ValueKind::Int:
        case ValueKind::Double: {
            if (rest.size() < sizeof(std::uint64_t)) return false;
            const auto word = read_as<std::uint64_t>(rest.data());
            rest = rest.subspan(sizeof word);
            if (value.kind == ValueKind::Bool) {
                value.boolean = word != 0;
            } else if (value.kind == ValueKind::Int) {
                value.integer = static_cast<std::int64_t>(word);
            } else {
                std::memcpy(&value.real, &word, sizeof word);
            }
            return true;
        }
        case ValueKind::String: {
            if (rest.size() < head.count) return false;
            value.string = strings_.intern({reinterpret_cast<const char*>(rest.data()), head.count});
            rest = rest.subspan(std::min(rest.size(), round_up_8(head.count)));
            return true;
        }
        case ValueKind::List: {
            if (nesting == kMostNesting) return false;
            std::vector<Argument> items;
            bool whole = true;
            for (std::uint32_t i = 0; i < head.count && whole; ++i) {
                Argument item;
                whole = read_value(rest, item, nesting + 1);
                if (whole) items.push_back(item);
            }
            value.list.first = static_cast<std::uint32_t>(data_.list_items.size());
            value.list.count = static_cast<std::uint32_t>(items.size());
            data_.list_items.insert(data_.list_items.end(), items.begin(), items.end());
            return whole;
        }
        case ValueKind::Array:
            break;
    }
    return false;
}

void ArgumentDecoder::decode(std::span<const std::byte> payload, Row row, std::vector<ArgumentSlice>& index) {
    const auto first = static_cast<std::uint32_t>(data_.arguments.size());
    while (!payload.empty()) {
        Argument value;
        if (!read_value(payload, value, 0)) {
            ++damaged_;
            break;
        }
        data_.arguments.push_back(value);
    }
    const auto count = static_cast<std::uint32_t>(data_.arguments.size()) - first;
    if (count != 0) index.push_back({row, first, count});
}

void encode_argument(const TraceData& data, const Argument& argument, std::vector<std::byte>& payload) {
    const auto append = [&](const void* bytes, std::size_t count) {
        const auto* const first = static_cast<const std::byte*>(bytes);
        payload.insert(payload.end(), first, first + count);
    };
    ValueHeader head{argument.key, static_cast<std::uint8_t>(argument.kind),
                     argument.truncated ? kValueTruncated : std::uint8_t{0}, 0};
    std::uint64_t word = 0;
    switch (argument.kind) {
        case ValueKind::Bool:
            word = argument.boolean ? 1 : 0;
            break;
        case ValueKind::Int:
            word = static_cast<std::uint64_t>(argument.integer);
            break;
        case ValueKind::Double:
            std::memcpy(&word, &argument.real, sizeof word);
            break;
        case ValueKind::String: {
            const std::string& text = data.strings[argument.string];
            head.count = static_cast<std::uint16_t>(std::min<std::size_t>(text.size(), 0xffff));
            append(&head, sizeof head);
            append(text.data(), head.count);
            payload.resize(round_up_8(payload.size()));
            return;
        }
        case ValueKind::List: {
            head.count = static_cast<std::uint16_t>(std::min<std::uint32_t>(argument.list.count, 0xffff));
            append(&head, sizeof head);
            for (std::uint32_t i = 0; i < head.count; ++i) {
                encode_argument(data, data.list_items[argument.list.first + i], payload);
            }
            return;
        }
        case ValueKind::Array:
        case ValueKind::None:
            append(&head, sizeof head);
            return;
    }
    append(&head, sizeof head);
    append(&word, sizeof word);
}

}  // namespace kymo
