// trace_values.cpp: converts values of a trace to Python objects.
#include "bindings/trace_values.h"

#include <algorithm>

namespace nb = nanobind;

namespace marey::bindings {
namespace {

constexpr int kMaxDepth = 16;  // of nested lists; a damaged trace could contain a cycle

nb::list integers(std::span<const std::int64_t> values) {
    nb::list list;
    for (const std::int64_t value : values) list.append(value);
    return list;
}

/// Returns a complex number, or the text itself if it is another scalar.
nb::object number_object(std::string_view text) {
    nb::object made = text_object(text);
    if (!text.ends_with('j')) return made;
    try {
        return nb::borrow(reinterpret_cast<PyObject*>(&PyComplex_Type))(made);
    } catch (const nb::python_error&) {
        return made;
    }
}

nb::object nested_value(const Trace& trace, const Argument& value, int depth) {
    switch (value.kind) {
        case ValueKind::Bool:
            return nb::bool_(value.boolean);
        case ValueKind::Int:
            return nb::int_(value.integer);
        case ValueKind::Double:
            return nb::float_(value.real);
        case ValueKind::String:
            return value.left_out == ValueKind::Double ? number_object(trace.string(value.string))
                                                       : text_object(trace.string(value.string));
        case ValueKind::List: {
            nb::list list;
            if (depth >= kMaxDepth) return list;
            for (const Argument& item : items_of(trace, value))
                list.append(nested_value(trace, item, depth + 1));
            return list;
        }
        default:
            return nb::none();
    }
}

}  // namespace

nb::object text_object(std::string_view text) {
    PyObject* const made = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
    if (made == nullptr) throw nb::python_error();
    return nb::steal(made);
}

nb::object device_type_object(nb::handle enumeration, DeviceType type) {
    try {
        return enumeration(static_cast<int>(type));
    } catch (nb::python_error&) {  // a number that it lacks
        return enumeration(static_cast<int>(DeviceType::Other));
    }
}

nb::object row_object(Row row) {
    return row == kNoRow ? nb::object(nb::none()) : nb::object(nb::int_(row));
}

std::vector<std::string> texts_of(const std::vector<std::filesystem::path>& files) {
    std::vector<std::string> texts;
    texts.reserve(files.size());
    for (const std::filesystem::path& file : files) texts.push_back(file.string());
    return texts;
}

nb::object value_object(const Trace& trace, const Argument& value) {
    return nested_value(trace, value, 0);
}

nb::object concrete_object(const Trace& trace, const Argument& value) {
    const std::span<const Argument> items = items_of(trace, value);
    const bool has_array = value.left_out == ValueKind::Array ||
                           std::any_of(items.begin(), items.end(),
                                       [](const Argument& item) { return item.kind == ValueKind::Array; });
    return has_array ? nb::object(nb::none()) : value_object(trace, value);
}

nb::dict keyword_values(const Trace& trace, std::span<const Argument> values) {
    nb::dict dict;
    for (const Argument& value : values) {
        if (value.role != ArgumentRole::Keyword) continue;
        const std::string_view key = trace.string(value.key);
        if (key != "Call stack") dict[text_object(key)] = value_object(trace, value);
    }
    return dict;
}

nb::list extents(const Trace& trace, const Argument& value, bool strides, bool nested) {
    if (const ArrayInfo* const array = array_of(trace, value); array != nullptr)
        return integers(extents_of(trace, *array, strides));
    nb::list list;
    if (!nested) return list;
    const std::span<const Argument> items = items_of(trace, value);
    const bool are_arrays = std::all_of(
        items.begin(), items.end(), [&](const Argument& item) { return array_of(trace, item) != nullptr; });
    if (!are_arrays) return list;
    for (const Argument& item : items)
        list.append(integers(extents_of(trace, *array_of(trace, item), strides)));
    return list;
}

nb::object array_object(const Trace& trace, const Argument& value) {
    const ArrayInfo* const array = array_of(trace, value);
    if (array == nullptr || !array->is_defined) return nb::none();
    return nb::make_tuple(value.array, array->object & kObjectAddress, array->storage, array->storage_id,
                          dtype_name(array->dtype), static_cast<int>(array->layout),
                          static_cast<int>(array->device.type), array->device.index,
                          integers(extents_of(trace, *array, false)),
                          integers(extents_of(trace, *array, true)));
}

}  // namespace marey::bindings
