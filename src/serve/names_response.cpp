// names_response.cpp: /api/names: the names of sites, sent once each.
#include <marey/averages.h>

#include "serve/api.h"
#include "serve/trace_names.h"

namespace marey::serve {
namespace {

constexpr std::size_t kMaxNames = 4096;

bool is_python(Scope scope) noexcept {
    return scope == Scope::PythonFunction || scope == Scope::CFunction;
}

void write_site(JsonWriter& json, const Trace& trace, std::uint32_t number) {
    const SiteInfo& site = trace.sites()[number];
    const std::string_view whole = trace.string(site.name);
    const std::string_view label = label_of(trace, site);
    const std::string_view category = trace.string(site.category);
    const std::string module = is_python(site.scope) ? site_group(trace, site, GroupBy::Module) : "";
    json.member("site", number);
    write_name(json, label);
    if (label != whole) json.member("raw", short_name(whole));
    json.member("scope", scope_name(site.scope)).member("category", short_name(category));
    json.member("module", short_name(module));
    json.member("file", trace.string(site.file)).member("line", site.line);
    // Ranges of one module or category look alike; other names are told apart.
    const std::string_view colour = !module.empty()    ? std::string_view(module)
                                    : category.empty() ? whole
                                                       : category;
    json.member("colour", short_name(colour));
}

}  // namespace

Response names_response(const Request& request) {
    const Trace& trace = request.trace();
    const std::vector<std::uint32_t> sites = request.query.ids("sites", trace.sites().size(), kMaxNames);
    return json_response([&](JsonWriter& json) {
        json.list("names", sites, [&](std::uint32_t site) { write_site(json, trace, site); });
    });
}

}  // namespace marey::serve
