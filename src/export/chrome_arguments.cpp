// chrome_arguments.cpp: keyword values, inputs, outputs and numbers of a range as JSON.
#include "export/chrome_arguments.h"

#include <algorithm>
#include <cmath>

#include "base/json_writer.h"

namespace kymo {
namespace {

constexpr int kDeepest = 16;  // of lists in lists; a trace made by hand could hold a cycle

/// The keys that are not the user's.
bool is_reserved(std::string_view key) {
    static constexpr std::string_view kReserved[] = {"at",
                                                     "began_before",
                                                     "unfinished",
                                                     "end_inferred",
                                                     "Input Dims",
                                                     "Input type",
                                                     "Input Strides",
                                                     "Concrete Inputs",
                                                     "Output Dims",
                                                     "Output type",
                                                     "Output Strides",
                                                     "Concrete Outputs",
                                                     "Sequence number",
                                                     "Fwd thread id",
                                                     "Record function id"};
    return std::find(std::begin(kReserved), std::end(kReserved), key) != std::end(kReserved);
}

/// As PyTorch prints element types: the names of its C++ types.
std::string_view type_text(DType dtype) {
    switch (dtype) {
        case DType::Bool:
            return "bool";
        case DType::Int8:
            return "signed char";
        case DType::Int16:
            return "short int";
        case DType::Int32:
            return "int";
        case DType::Int64:
            return "long int";
        case DType::UInt8:
            return "unsigned char";
        case DType::Float16:
            return "c10::Half";
        case DType::BFloat16:
            return "c10::BFloat16";
        case DType::Float32:
            return "float";
        case DType::Float64:
            return "double";
        case DType::Complex64:
            return "c10::complex<float>";
        case DType::Complex128:
            return "c10::complex<double>";
        default:
            return dtype_name(dtype);
    }
}

bool is_scalar(ValueKind kind) {
    return kind == ValueKind::Bool || kind == ValueKind::Int || kind == ValueKind::Double;
}

/// As PyTorch prints scalars: whole numbers keep a point.
void append_real_text(std::string& text, double value) {
    if (std::isnan(value)) {
        text += "nan";
    } else if (std::isinf(value)) {
        text += value > 0 ? "inf" : "-inf";
    } else {
        const std::size_t old = text.size();
        append_json_number(text, value);
        if (text.find_first_of(".e", old) == std::string::npos) text += '.';
    }
}

}  // namespace

const ArrayInfo* ChromeArguments::array_of(const Argument& value) const {
    if (value.kind != ValueKind::Array || value.array >= trace_.arrays().size()) return nullptr;
    return &trace_.arrays()[value.array];
}

std::span<const Argument> ChromeArguments::items_of(const Argument& value) const {
    const std::span<const Argument> items = trace_.list_items();
    if (value.kind != ValueKind::List || value.list.first > items.size()) return {};
    return items.subspan(value.list.first,
                         std::min<std::size_t>(value.list.count, items.size() - value.list.first));
}

/// A list of arrays, all there and all defined. Of any other one PyTorch's tools are told nothing.
bool ChromeArguments::is_array_list(const Argument& value) const {
    const std::span<const Argument> items = items_of(value);
    return !items.empty() && !value.truncated &&
           std::all_of(items.begin(), items.end(), [&](const Argument& item) {
               const ArrayInfo* const array = array_of(item);
               return array != nullptr && array->is_defined;
           });
}

std::string_view ChromeArguments::type_of(const Argument& value) const {
    if (const ArrayInfo* const array = array_of(value); array != nullptr)
        return array->is_defined ? type_text(array->dtype) : std::string_view();
    if (is_scalar(value.kind) || is_scalar(value.left_out)) return "Scalar";
    if (value.kind != ValueKind::List) return "";
    const std::span<const Argument> items = items_of(value);
    if (!items.empty() && array_of(items[0]) != nullptr)
        return value.truncated || is_array_list(value) ? "TensorList" : "";
    const bool are_scalars =
        std::all_of(items.begin(), items.end(), [](const Argument& item) { return is_scalar(item.kind); });
    return are_scalars ? "ScalarList" : "";
}

void ChromeArguments::append_extents(const ArrayInfo& array, bool strides) {
    out_ += '[';
    const std::span<const std::int64_t> extents = trace_.array_extents();
    std::size_t first = array.first_extent;
    if (strides) first += array.dimensions;
    const bool is_known = array.is_defined && (!strides || array.has_strides) && first <= extents.size() &&
                          array.dimensions <= extents.size() - first;
    for (std::size_t i = 0; is_known && i < array.dimensions; ++i) {
        if (i != 0) out_ += ',';
        append_json_number(out_, extents[first + i]);
    }
    out_ += ']';
}

void ChromeArguments::append_extents(const Argument& value, bool strides) {
    if (const ArrayInfo* const array = array_of(value); array != nullptr) {
        append_extents(*array, strides);
        return;
    }
    out_ += '[';
    if (is_array_list(value)) {
        bool is_first = true;
        for (const Argument& item : items_of(value)) {
            if (!is_first) out_ += ',';
            is_first = false;
            append_extents(*array_of(item), strides);
        }
    }
    out_ += ']';
}

void ChromeArguments::append_concrete(std::string& text, const Argument& value, int level) {
    switch (value.kind) {
        case ValueKind::None:
        case ValueKind::Array:
            return;
        case ValueKind::Bool:
            text += value.boolean ? "True" : "False";
            return;
        case ValueKind::Int:
            append_json_number(text, value.integer);
            return;
        case ValueKind::Double:
            append_real_text(text, value.real);
            return;
        case ValueKind::String:
            text += trace_.string(value.string);
            if (value.truncated) text += "...";
            return;
        case ValueKind::List:
            break;
    }
    if (level == kDeepest) return;
    const std::span<const Argument> items = items_of(value);
    if (level == 0 && std::any_of(items.begin(), items.end(),
                                  [](const Argument& item) { return item.kind == ValueKind::Array; }))
        return;  // metadata, which stands elsewhere
    text += '[';
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (i != 0) text += ", ";
        append_concrete(text, items[i], level + 1);
    }
    if (value.truncated) text += items.empty() ? "..." : ", ...";
    text += ']';
}

template <typename Entry>
void ChromeArguments::append_list(std::string_view key, std::span<const Argument> values, ArgumentRole role,
                                  Entry entry) {
    separate();
    append_json_string(out_, key);
    out_ += ":[";
    bool is_first = true;
    for (const Argument& value : values) {
        if (value.role != role) continue;
        if (!is_first) out_ += ',';
        is_first = false;
        entry(value);
    }
    out_ += ']';
}

void ChromeArguments::append_positional(std::span<const Argument> values, ArgumentRole role) {
    const bool is_input = role == ArgumentRole::Input;
    append_list(is_input ? "Input Dims" : "Output Dims", values, role,
                [&](const Argument& value) { append_extents(value, false); });
    append_list(is_input ? "Input type" : "Output type", values, role,
                [&](const Argument& value) { append_json_string(out_, type_of(value)); });
    append_list(is_input ? "Input Strides" : "Output Strides", values, role,
                [&](const Argument& value) { append_extents(value, true); });
    append_list(is_input ? "Concrete Inputs" : "Concrete Outputs", values, role, [&](const Argument& value) {
        concrete_.clear();
        append_concrete(concrete_, value, 0);
        append_json_string(out_, concrete_);
    });
}

void ChromeArguments::append_values(std::span<const Argument> values) {
    bool has_inputs = false;
    bool has_outputs = false;
    keys_.clear();
    for (std::size_t i = 0; i < values.size(); ++i) {
        has_inputs |= values[i].role == ArgumentRole::Input;
        has_outputs |= values[i].role == ArgumentRole::Output;
        if (values[i].role != ArgumentRole::Keyword) continue;
        separate();
        append_key(values[i], i);
        out_ += ':';
        append_value(values[i], 0);
    }
    if (has_inputs) append_positional(values, ArgumentRole::Input);
    if (has_outputs) append_positional(values, ArgumentRole::Output);
}

void ChromeArguments::append_detail(const RangeDetail& detail) {
    if (detail.sequence >= 0) {
        separate();
        out_ += "\"Sequence number\":";
        append_json_number(out_, detail.sequence);
        out_ += ",\"Fwd thread id\":";
        append_json_number(out_, std::uint64_t{detail.forward_thread});
    }
    if (detail.id != 0) {
        separate();
        out_ += "\"Record function id\":";
        append_json_number(out_, detail.id);
    }
}

/// Keys of one object differ: strict readers refuse equal ones, lenient ones lose all but the last.
void ChromeArguments::append_key(const Argument& value, std::size_t index) {
    const std::string_view name = trace_.string(value.key);
    const std::string wanted(name.empty() ? "value" : name);
    std::string key = wanted;
    while (is_reserved(key) || !keys_.insert(key).second) {
        key = wanted + " (" + std::to_string(++index) + ")";
    }
    append_json_string(out_, key);
}

void ChromeArguments::append_value(const Argument& value, int level) {
    switch (value.kind) {
        case ValueKind::Array:
            if (const ArrayInfo* const array = array_of(value); array != nullptr && array->is_defined) {
                out_ += "{\"dims\":";
                append_extents(*array, false);
                out_ += ",\"type\":";
                append_json_string(out_, type_text(array->dtype));
                out_ += '}';
                return;
            }
            out_ += "null";
            return;
        case ValueKind::None:
            out_ += "null";
            return;
        case ValueKind::Bool:
            out_ += value.boolean ? "true" : "false";
            return;
        case ValueKind::Int:
            append_json_number(out_, value.integer);
            return;
        case ValueKind::Double:
            append_json_number(out_, value.real);
            return;
        case ValueKind::String: {
            std::string text(trace_.string(value.string));
            if (value.truncated) text += "...";
            append_json_string(out_, text);
            return;
        }
        case ValueKind::List:
            break;
    }
    out_ += '[';
    bool is_first = true;
    if (level < kDeepest) {
        for (const Argument& item : items_of(value)) {
            if (!is_first) out_ += ',';
            is_first = false;
            append_value(item, level + 1);
        }
    }
    if (value.truncated) out_ += is_first ? "\"...\"" : ",\"...\"";
    out_ += ']';
}

}  // namespace kymo
