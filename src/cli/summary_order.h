// summary_order.h: the columns that a summary can be sorted by.
#pragma once

#include <string>
#include <vector>

#include <kymo/analyze.h>

namespace kymo::cli {

/// What sort_summary() takes.
std::vector<std::string> summary_keys();
/// Sorts the rows by one column, the largest first or the smallest first; equal rows stand in order of their
/// names. Names always stand in the order of the alphabet.
void sort_summary(Summary& summary, const std::string& key, bool ascending);

}  // namespace kymo::cli
