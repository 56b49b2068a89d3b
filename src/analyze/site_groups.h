// site_groups.h: the text under which the ranges of a site are counted: its name, or its function, line,
// file, module or package.
#pragma once

#include <string>

#include <marey/averages.h>
#include <marey/trace.h>

namespace marey {

/// The text for a site. Sites without a file, and sites of other languages for which `by` does not apply,
/// keep their names.
std::string site_group(const Trace& trace, const SiteInfo& site, GroupBy by);

}  // namespace marey
