// site_cache.h: maps Python strings to site numbers in a few instructions.
#pragma once

#include <Python.h>

#include <cstdint>

#include <marey/detail/hot_path.h>

#include "sources/python/python_text.h"

namespace marey::bindings {

using python::Ref;
using python::with_text;

/// A site that was looked up (detail::dynamic_site), as long as it need not be looked up again.
class CachedSite {
  public:
    /// 0 if it must be looked up.
    std::uint32_t get() const noexcept {
        return names_number_ == detail::current_thread->names_number ? site_ : 0;
    }
    void set(std::uint32_t site) noexcept {
        site_ = site;
        names_number_ = detail::current_thread->names_number;
    }

  private:
    std::uint32_t site_ = 0;
    std::uint32_t names_number_ = 0;
};

/// Maps names to sites. Keyed by the object, not by its text: a literal in a program is the same object each
/// time. Each entry keeps its string alive, so that no other object can have its address; a string that maps
/// to an occupied slot replaces its entry. Objects of derived types, which may hold any reference, are not
/// kept. Guarded by the GIL.
class SiteCache {
  public:
    /// `name` is a str. Never fails: text without a UTF-8 form is escaped; 0 if there is no space for another
    /// site.
    std::uint32_t site(PyObject* name, Scope scope) noexcept {
        const std::uint32_t known = known_site(name, scope);
        return known != 0 ? known : find(name, scope);
    }
    /// 0 if it is not in the cache.
    std::uint32_t known_site(PyObject* name, Scope scope) const noexcept {
        const Entry& entry = entries_[place(name)];
        return entry.key == key(name, scope) ? entry.site.get() : 0;
    }

  private:
    static constexpr std::size_t kEntries = 1024;
    struct Entry {
        std::uintptr_t key = 0;  ///< address of the owned string, with the scope in its low bits
        CachedSite site;
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

/// The cache of the process; entries live as long as the interpreter.
extern SiteCache site_cache;

}  // namespace marey::bindings
