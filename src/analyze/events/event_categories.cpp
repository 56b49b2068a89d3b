// event_categories.cpp: the category names of PyTorch's traces.
#include "analyze/events/event_categories.h"

#include <algorithm>
#include <cctype>

#include "trace/torch_names.h"

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

}  // namespace marey
