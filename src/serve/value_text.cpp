// value_text.cpp: recorded values as text for people.
#include "serve/value_text.h"

#include <algorithm>
#include <charconv>

#include "serve/trace_names.h"

namespace marey::serve {
namespace {

constexpr std::size_t kMaxTextBytes = std::size_t{4} << 10;
constexpr std::uint32_t kMaxListItems = 100;
constexpr int kMaxListDepth = 8;
constexpr std::string_view kMore = "...";

std::string double_text(double number) {
    char text[32];
    const auto [end, error] = std::to_chars(text, text + sizeof text, number);
    return error == std::errc() ? std::string(text, end) : std::string();
}

std::string array_text(const Trace& trace, const ArrayInfo& array) {
    if (!array.is_defined) return "undefined";
    const auto extents = trace.array_extents();
    std::string text = dtype_name(array.dtype) + std::string("[");
    for (std::uint32_t i = 0; i < array.dimensions && array.first_extent + i < extents.size(); ++i) {
        if (i > 0) text += ", ";
        text += std::to_string(extents[array.first_extent + i]);
    }
    text += "]";
    const std::string device = device_label(array.device);
    return device.empty() ? text : text + " " + device;
}

std::string text_of(const Trace& trace, const Argument& value, int depth);

std::string list_text(const Trace& trace, const ListItems& list, int depth) {
    const auto items = trace.list_items();
    if (depth >= kMaxListDepth || list.first > items.size() || list.count > items.size() - list.first)
        return std::string("[").append(kMore).append("]");
    std::string text = "[";
    for (std::uint32_t i = 0; i < list.count; ++i) {
        if (i > 0) text += ", ";
        if (i == kMaxListItems || text.size() > kMaxTextBytes) {
            text += kMore;
            break;
        }
        text += text_of(trace, items[list.first + i], depth + 1);
    }
    return text + "]";
}

std::string text_of(const Trace& trace, const Argument& value, int depth) {
    switch (value.kind) {
        case ValueKind::None:
            return value.left_out == ValueKind::None ? "None" : "(not recorded)";
        case ValueKind::Bool:
            return value.boolean ? "True" : "False";
        case ValueKind::Int:
            return std::to_string(value.integer);
        case ValueKind::Double:
            return double_text(value.real);
        case ValueKind::String: {
            const std::string_view text = trace.string(value.string);
            const std::string kept(text.substr(0, kMaxTextBytes));
            return value.truncated || text.size() > kMaxTextBytes ? kept + std::string(kMore) : kept;
        }
        case ValueKind::List:
            return list_text(trace, value.list, depth);
        case ValueKind::Array:
            return value.array < trace.arrays().size() ? array_text(trace, trace.arrays()[value.array]) : "";
    }
    return {};
}

}  // namespace

std::string value_text(const Trace& trace, const Argument& value) {
    return text_of(trace, value, 0);
}

const char* value_kind_name(ValueKind kind) noexcept {
    switch (kind) {
        case ValueKind::None:
            return "none";
        case ValueKind::Bool:
            return "bool";
        case ValueKind::Int:
            return "int";
        case ValueKind::Double:
            return "double";
        case ValueKind::String:
            return "string";
        case ValueKind::List:
            return "list";
        case ValueKind::Array:
            return "array";
    }
    return "none";
}

const char* role_name(ArgumentRole role) noexcept {
    switch (role) {
        case ArgumentRole::Keyword:
            return "keyword";
        case ArgumentRole::Input:
            return "input";
        case ArgumentRole::Output:
            return "output";
        case ArgumentRole::Site:
            return "site";
    }
    return "keyword";
}

}  // namespace marey::serve
