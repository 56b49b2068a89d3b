// site_cache.h: from a Python string to the number of its site, in a few instructions.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string_view>

#include <marey/detail/hot_path.h>

namespace marey::bindings {

/// The site of a name. Keyed by the object, not by its text: what is written in a program is the same object
/// every time. Each entry keeps its string alive, so that no other object has its address; a string that
/// falls on a taken place takes it over. Objects of derived types, which may hold anything, are not kept.
/// Guarded by the GIL.
class SiteCache {
  public:
    /// `name` is a str. Never fails: what has no UTF-8 form is escaped; 0 when there is no room for a site.
    std::uint32_t site(PyObject* name, Scope scope) noexcept {
        const std::uint32_t known = known_site(name, scope);
        return known != 0 ? known : find(name, scope);
    }
    /// 0 when it is not in the cache.
    std::uint32_t known_site(PyObject* name, Scope scope) const noexcept {
        const Entry& entry = entries_[place(name)];
        return entry.key == key(name, scope) ? entry.site : 0;
    }

  private:
    static constexpr std::size_t kEntries = 1024;
    struct Entry {
        std::uintptr_t key = 0;  ///< address of the string, which is owned, with the scope in its low bits
        std::uint32_t site = 0;
    };

    // Objects are aligned to 16 bytes, and there are 16 scopes.
    static constexpr std::uintptr_t kScopeMask = 15;
    static_assert(kScopeCount <= kScopeMask + 1);
    static std::uintptr_t key(PyObject* name, Scope scope) noexcept {
        return reinterpret_cast<std::uintptr_t>(name) | static_cast<std::uintptr_t>(scope);
    }
    static std::size_t place(PyObject* name) noexcept {
        const auto address = reinterpret_cast<std::uintptr_t>(name);
        return (address >> 4 ^ address >> 14) % kEntries;
    }
    std::uint32_t find(PyObject* name, Scope scope) noexcept;

    Entry entries_[kEntries];
};

/// The process's; entries live as long as the interpreter.
extern SiteCache site_cache;

/// A new reference that is given back at the end of its scope. Null: there was an error, which is cleared.
class PyRef {
  public:
    explicit PyRef(PyObject* object) noexcept : object_(object) {
        if (object_ == nullptr) PyErr_Clear();
    }
    ~PyRef() { Py_XDECREF(object_); }
    PyRef(const PyRef&) = delete;
    PyRef& operator=(const PyRef&) = delete;
    PyObject* get() const noexcept { return object_; }
    explicit operator bool() const noexcept { return object_ != nullptr; }

  private:
    PyObject* object_;
};

/// The text of a str as UTF-8, escaped where it has no such form. Calls `use` with a string_view, valid
/// during the call; what that throws passes through. No Python error is set afterwards.
template <class Use>
auto with_text(PyObject* text, Use use) {
    Py_ssize_t length = 0;
    if (const char* const bytes = PyUnicode_AsUTF8AndSize(text, &length))
        return use(std::string_view(bytes, static_cast<std::size_t>(length)));
    PyErr_Clear();
    const PyRef escaped(PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace"));
    if (!escaped) return use(std::string_view("(unprintable)"));
    return use(std::string_view(PyBytes_AS_STRING(escaped.get()),
                                static_cast<std::size_t>(PyBytes_GET_SIZE(escaped.get()))));
}

}  // namespace marey::bindings
