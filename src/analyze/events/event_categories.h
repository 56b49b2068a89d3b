// event_categories.h: the names of categories and of value types in PyTorch's traces.
#pragma once

#include <marey/scope.h>
#include <marey/trace.h>

namespace marey {

/// The metadata event with the window of a trace that is written for viewers: its start and duration.
inline constexpr const char* kChromeWindow = "marey_window";

/// Whether PyTorch calls it an operator: all of its scopes except the user scope.
inline bool is_operator(Scope scope) noexcept {
    return static_cast<int>(scope) <= static_cast<int>(Scope::RuntimeModel) && scope != Scope::User;
}
/// Whether the trace has PyTorch's operators: then times and ids follow PyTorch's conventions.
bool has_torch_operators(const Trace& trace);
inline bool is_python_frame(Scope scope) noexcept {
    return scope == Scope::PythonFunction || scope == Scope::CFunction;
}

/// "cpu_op", "kernel", ...; for an imported trace the original category, if known.
std::string_view chrome_category(const Trace& trace, const SiteInfo& site, bool on_device);
/// The same for a site whose original category is not known.
std::string_view chrome_category(Scope scope, std::string_view name, bool on_device);
/// The scope that a reader of our files derives from a category, so that only other scopes must be written.
Scope default_scope(std::string_view category);

/// A boolean, an integer, a double, or the text of another scalar; whether or not its value was recorded.
bool is_scalar(const Argument& value) noexcept;
/// A list of arrays, all present and all defined. PyTorch's traces omit any other list.
bool is_array_list(const Trace& trace, const Argument& value) noexcept;
/// "float", "Scalar", "TensorList", ...; empty for values without a type name.
std::string_view input_type_text(const Trace& trace, const Argument& value) noexcept;

}  // namespace marey
