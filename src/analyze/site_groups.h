// site_groups.h: under which text the ranges of a site are counted: its name, or the function, line, file,
// module or package that it belongs to.
#pragma once

#include <string>

#include <marey/averages.h>
#include <marey/trace.h>

namespace marey {

/// The text for a site. Sites that belong to no file, and those of other languages, keep their names where
/// the question makes no sense for them.
std::string site_group(const Trace& trace, const SiteInfo& site, GroupBy by);

}  // namespace marey
