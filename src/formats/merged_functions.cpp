// merged_functions.cpp: gives sites their functions, and merges the ranges by them.
#include "formats/merged_functions.h"

#include <map>
#include <tuple>

#include "analyze/averages/site_groups.h"
#include "analyze/name_slots.h"
#include "base/utf8.h"

namespace marey {
namespace {

ProfileFunction function_of(const Trace& trace, const SiteInfo& site) {
    std::string_view name = trace.string(site.name), file = trace.string(site.file);
    if (site.scope == Scope::PythonFunction) {
        const PythonName parsed = parse_python_name(name);
        if (!parsed.function.empty()) name = parsed.function;
        if (file.empty()) file = parsed.path;
    }
    ProfileFunction function;
    function.line = site.line;
    append_utf8(function.name, name);
    append_utf8(function.file, file);
    return function;
}

}  // namespace

ProfileFunctions profile_functions(const Trace& trace) {
    ProfileFunctions result;
    std::map<std::tuple<std::string, std::string, std::uint32_t>, std::uint32_t> known;
    for (const SiteInfo& site : trace.sites()) {
        const ProfileFunction function = function_of(trace, site);
        const auto [place, is_new] = known.try_emplace({function.name, function.file, function.line},
                                                       static_cast<std::uint32_t>(result.functions.size()));
        if (is_new) result.functions.push_back(function);
        result.of_site.push_back(place->second);
    }
    return result;
}

MergedFunctions merge_functions(const Trace& trace, bool by_thread) {
    MergedFunctions merged;
    static_cast<ProfileFunctions&>(merged) = profile_functions(trace);
    NameSlots slots(trace);
    slots.of_site = merged.of_site;
    RangeMergeOptions options;
    options.by_thread = by_thread;
    merged.ranges = merge_ranges(trace, slots, options);
    return merged;
}

}  // namespace marey
