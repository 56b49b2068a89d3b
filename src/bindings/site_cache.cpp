// site_cache.cpp: the slow half of the cache.
#include "bindings/site_cache.h"

#include <string_view>

namespace kymo::bindings {

SiteCache site_cache;

std::uint32_t SiteCache::find(Entry& entry, PyObject* name, Scope scope) noexcept {
    const std::uint32_t site =
        with_text(name, [&](std::string_view text) { return detail::dynamic_site(text, scope); });
    if (site == 0) return 0;
    PyObject* const before = entry.name;
    entry.name = Py_NewRef(name);
    entry.site = site;
    entry.scope = scope;
    Py_XDECREF(before);
    return site;
}

}  // namespace kymo::bindings
