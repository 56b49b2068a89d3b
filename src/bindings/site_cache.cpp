// site_cache.cpp: the slow half of the cache.
#include "bindings/site_cache.h"

#include <string_view>

namespace marey::bindings {

SiteCache site_cache;

[[gnu::noinline]] std::uint32_t SiteCache::find(PyObject* name, Scope scope) noexcept {
    const std::uint32_t site =
        with_text(name, [&](std::string_view text) { return detail::dynamic_site(text, scope); });
    // All CPython allocators align to 16 bytes; with another alignment, strings are looked up each time.
    if (site == 0 || !PyUnicode_CheckExact(name) ||
        (reinterpret_cast<std::uintptr_t>(name) & kScopeMask) != 0)
        return site;
    Entry& entry = entries_[place(name)];
    auto* const before = reinterpret_cast<PyObject*>(entry.key & ~kScopeMask);
    entry.key = key(Py_NewRef(name), scope);
    entry.site.set(site);
    Py_XDECREF(before);
    return site;
}

}  // namespace marey::bindings
