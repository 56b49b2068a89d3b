// range_filter.cpp: removes ranges from a trace and gives the ranges inside them to the range around them.
#include <marey/range_filter.h>

#include <fnmatch.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "analyze/averages/site_groups.h"
#include "analyze/tree/import_folds.h"
#include "trace/row_selection.h"

namespace marey {
namespace {

bool matches_any(const TraceData& data, const SiteInfo& site, const std::vector<std::string>& patterns) {
    const std::string& name = data.strings[site.name];
    const std::string& file = data.strings[site.file];
    const std::string function(parse_python_name(name).function);
    return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
        const auto matches = [&](const std::string& text) {
            return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
        };
        return matches(name) || matches(function) || (!file.empty() && matches(file));
    });
}

/// Whether each site is excluded.
std::vector<bool> excluded_sites(const TraceData& data, const std::vector<std::string>& patterns) {
    std::vector<bool> excluded(data.sites.size());
    if (patterns.empty()) return excluded;
    for (std::size_t site = 0; site < excluded.size(); ++site)
        excluded[site] = matches_any(data, data.sites[site], patterns);
    return excluded;
}

bool has_any(const std::vector<bool>& flags) {
    return std::find(flags.begin(), flags.end(), true) != flags.end();
}

bool was_running(const TraceData& data, Row row) {
    return (data.range_flags[row] & kBeganBefore) != 0 &&
           data.sites[data.range_site[row]].scope == Scope::PythonFunction;
}

bool has_running(const TraceData& data) {
    for (Row row = 0; row < data.range_site.size(); ++row) {
        if (was_running(data, row)) return true;
    }
    return false;
}

/// Adds the ranges that the filter excludes to the sorted rows `removed`.
void add_excluded(const TraceData& data, const RangeFilter& filter, std::vector<Row>& removed) {
    const std::vector<bool> excluded = excluded_sites(data, filter.exclude);
    std::vector<Row> others;
    for (Row row = 0; row < data.range_site.size(); ++row) {
        if (excluded[data.range_site[row]] || (filter.exclude_running && was_running(data, row)))
            others.push_back(row);
    }
    std::vector<Row> all;
    std::set_union(removed.begin(), removed.end(), others.begin(), others.end(), std::back_inserter(all));
    removed = std::move(all);
}

}  // namespace

Trace filter_ranges(Trace trace, const RangeFilter& filter) {
    const bool has_imports = filter.fold_imports && has_import_frames(trace);
    const bool removes_running = filter.exclude_running && has_running(trace.data());
    if (!has_imports && !removes_running && !has_any(excluded_sites(trace.data(), filter.exclude)))
        return trace;
    const std::shared_ptr<TraceData> data = changeable_data(std::move(trace));
    std::vector<Row> removed;
    if (has_imports) removed = fold_imports(*data);
    if (!filter.exclude.empty() || removes_running) add_excluded(*data, filter, removed);
    remove_ranges(*data, removed);
    return Trace(data);
}

}  // namespace marey
