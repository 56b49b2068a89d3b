// event_categories.cpp: the names of categories and of value types in PyTorch's traces.
#include "analyze/events/event_categories.h"

#include <algorithm>
#include <cctype>

#include "trace/torch_names.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

std::string_view category_of_device_work(std::string_view name) {
    if (name.starts_with("Memcpy")) return "gpu_memcpy";
    if (name.starts_with("Memset")) return "gpu_memset";
    for (const std::string_view sync : {"Stream Sync", "Event Sync", "Context Sync", "Stream Wait"}) {
        if (name.starts_with(sync)) return "cuda_sync";
    }
    return "kernel";
}

/// The driver's calls are named like cuLaunchKernel; the runtime's begin with cuda, hip, ...
bool is_driver_call(std::string_view name) {
    return name.size() > 2 && name.starts_with("cu") && std::isupper(static_cast<unsigned char>(name[2]));
}

}  // namespace

bool has_torch_operators(const Trace& trace) {
    return std::ranges::any_of(
        trace.sites(), [&](const SiteInfo& site) { return is_torch_operator(trace.string(site.name)); });
}

std::string_view chrome_category(const Trace& trace, const SiteInfo& site, bool on_device) {
    if (site.category != 0) return trace.string(site.category);
    return chrome_category(site.scope, trace.string(site.name), on_device);
}

std::string_view chrome_category(Scope scope, std::string_view name, bool on_device) {
    switch (scope) {
        case Scope::User:
        case Scope::Step:
            return on_device ? "gpu_user_annotation" : "user_annotation";
        case Scope::PythonFunction:
        case Scope::CFunction:
        case Scope::GarbageCollection:
            return "python_function";
        case Scope::Device:
            return category_of_device_work(name);
        case Scope::DeviceRuntime:
            return is_driver_call(name) ? "cuda_driver" : "cuda_runtime";
        default:
            return is_operator(scope) ? "cpu_op" : scope_name(scope);
    }
}

Scope default_scope(std::string_view category) {
    if (category == "cpu_op") return Scope::Function;
    if (category == "python_function") return Scope::PythonFunction;
    if (category == "cuda_runtime" || category == "cuda_driver") return Scope::DeviceRuntime;
    if (category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset" ||
        category == "cuda_sync")
        return Scope::Device;
    return Scope::User;
}

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
