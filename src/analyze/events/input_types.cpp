// input_types.cpp: the type names of values in PyTorch's traces.
#include "analyze/events/input_types.h"

#include <algorithm>

namespace marey {
namespace {

const ArrayInfo* array_of(const Trace& trace, const Argument& value) noexcept {
    if (value.kind != ValueKind::Array || value.array >= trace.arrays().size()) return nullptr;
    return &trace.arrays()[value.array];
}

std::span<const Argument> items_of(const Trace& trace, const Argument& value) noexcept {
    const std::span<const Argument> items = trace.list_items();
    if (value.kind != ValueKind::List || value.list.first > items.size()) return {};
    return items.subspan(value.list.first,
                         std::min<std::size_t>(value.list.count, items.size() - value.list.first));
}

}  // namespace

bool is_scalar(const Argument& value) noexcept {
    const bool is_shown = value.kind != ValueKind::None && value.kind != ValueKind::String;
    const ValueKind kind = is_shown ? value.kind : value.left_out;
    return kind == ValueKind::Bool || kind == ValueKind::Int || kind == ValueKind::Double;
}

bool is_array_list(const Trace& trace, const Argument& value) noexcept {
    const std::span<const Argument> items = items_of(trace, value);
    return !items.empty() && !value.truncated && std::ranges::all_of(items, [&](const Argument& item) {
        const ArrayInfo* const array = array_of(trace, item);
        return array != nullptr && array->is_defined;
    });
}

std::string_view input_type_text(const Trace& trace, const Argument& value) noexcept {
    if (const ArrayInfo* const array = array_of(trace, value); array != nullptr)
        return array->is_defined ? std::string_view(dtype_cpp_name(array->dtype)) : std::string_view();
    if (is_scalar(value)) return "Scalar";
    if (value.kind != ValueKind::List) return "";
    const std::span<const Argument> items = items_of(trace, value);
    if (!items.empty() && array_of(trace, items[0]) != nullptr)
        return value.truncated || is_array_list(trace, value) ? "TensorList" : "";
    if (items.empty() && value.left_out == ValueKind::Array) return "TensorList";
    const bool are_scalars = std::ranges::all_of(
        items, [](const Argument& item) { return item.kind != ValueKind::None && is_scalar(item); });
    return are_scalars ? "ScalarList" : "";
}

}  // namespace marey
