// site_cache.h: from a Python string to the number of its site, in a few instructions.
#pragma once

#include <Python.h>

#include <cstdint>

#include <kymo/detail/hot_path.h>

namespace kymo::bindings {

/// The site of a name. Keyed by the object, not by its text: what is written in a program is the same object
/// every time. Each entry keeps its string alive, so that no other object has its address; a string that
/// falls on a taken place takes it over. Guarded by the GIL.
class SiteCache {
  public:
    /// `name` is a str. Never fails: what has no UTF-8 form is escaped; 0 when there is no room for a site.
    std::uint32_t site(PyObject* name, Scope scope) noexcept {
        const auto address = reinterpret_cast<std::uintptr_t>(name);
        Entry& entry = entries_[(address >> 4 ^ address >> 14) % kEntries];
        if (entry.name == name && entry.scope == scope) [[likely]]
            return entry.site;
        return find(entry, name, scope);
    }

  private:
    static constexpr std::size_t kEntries = 1024;
    struct Entry {
        PyObject* name = nullptr;  ///< owned
        std::uint32_t site = 0;
        Scope scope = Scope::User;
    };

    static std::uint32_t find(Entry& entry, PyObject* name, Scope scope) noexcept;

    Entry entries_[kEntries];
};

/// The process's; entries live as long as the interpreter.
extern SiteCache site_cache;

/// The text of a str as UTF-8, escaped where it has no such form. Calls `use` with a string_view, valid
/// during the call. No Python error is set afterwards.
template <class Use>
auto with_text(PyObject* text, Use use) noexcept {
    Py_ssize_t length = 0;
    if (const char* const bytes = PyUnicode_AsUTF8AndSize(text, &length))
        return use(std::string_view(bytes, static_cast<std::size_t>(length)));
    PyErr_Clear();
    PyObject* const escaped = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
    if (escaped == nullptr) {
        PyErr_Clear();
        return use(std::string_view("(unprintable)"));
    }
    auto result = use(
        std::string_view(PyBytes_AS_STRING(escaped), static_cast<std::size_t>(PyBytes_GET_SIZE(escaped))));
    Py_DECREF(escaped);
    return result;
}

}  // namespace kymo::bindings
