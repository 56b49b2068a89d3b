// chrome_categories.h: the words that tools made for PyTorch's traces have for kinds of events.
#pragma once

#include <string_view>

#include <marey/scope.h>
#include <marey/trace.h>

namespace marey {

/// What PyTorch calls an operator: every scope of its own but that of users.
inline bool is_operator(Scope scope) noexcept {
    return static_cast<int>(scope) <= static_cast<int>(Scope::RuntimeModel) && scope != Scope::User;
}
inline bool is_python_frame(Scope scope) noexcept {
    return scope == Scope::PythonFunction || scope == Scope::CFunction;
}

/// "cpu_op", "kernel", ...; what the maker of an imported trace called it, where that is known.
std::string_view chrome_category(const Trace& trace, const SiteInfo& site, bool on_device);
/// The same for a site whose maker's word is not known.
std::string_view chrome_category(Scope scope, std::string_view name, bool on_device);
/// The scope that a reader of our files takes a category for, so that only others must be told.
Scope default_scope(std::string_view category);

}  // namespace marey
