// averages_text.h: averages in Marey's own layout: self, share, total, calls, per call, name.
#pragma once

#include <cstddef>

#include <marey/averages.h>

#include "cli/table.h"

namespace marey::cli {

struct AveragesLayout {
    std::string name_title = "name";   ///< heading of the name column
    std::vector<std::string> columns;  ///< keys of table_columns(); empty: those that have values
    std::string sort_by = "self";      ///< a key of table_columns()
    bool ascending = false;
    std::size_t limit = 0;           ///< rows to show; 0: all
    std::string time_unit = "auto";  ///< "s", "ms", "us", or chosen for each time
    bool is_sampled = false;         ///< times are estimates: shown with "~"; counts are not calls
    bool is_summed = false;          ///< with is_sampled: self times are exact, and counts are calls
};

/// One line per row. Times are wall times; a total counts recursive calls once, and per call is total /
/// calls. Rows must be printable. Throws marey::Error for an unknown key.
Table averages_in_columns(const Averages& averages, const AveragesLayout& layout);

}  // namespace marey::cli
