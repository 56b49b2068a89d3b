// range_filter.h: a trace without some of its ranges.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// The ranges to leave out. The ranges inside them stay, as children of the range around them, whose self
/// time then includes the self time of the range that was left out.
struct RangeFilter {
    /// Shell patterns (*, ? and [...]). Ranges whose name, function or file matches one are left out.
    std::vector<std::string> exclude{};
    /// Show each import of a Python module as one range "import NAME", instead of the frames of importlib and
    /// of the module's own code. The range has the file and line of the module.
    bool fold_imports = false;
    /// Leave out the Python calls that were running when the session started.
    bool exclude_running = false;
    /// Leave out everything inside folded imports, so that the outermost have the whole time.
    bool flatten_imports = false;
    /// Shell patterns, too. These ranges are left out with everything inside them, up to functions of a
    /// notebook's cells. Calls that were running when the session started stay.
    std::vector<std::string> hide{};
};

/// Returns the trace without the ranges that the filter leaves out; the other rows get new numbers.
/// Values of ranges that are left out are lost, and arrows from and to them begin and end at the range around
/// them. Does not copy the tables if `trace` is the only reference to them. Estimates of the recording
/// overhead need the unfiltered trace.
MAREY_API Trace filter_ranges(Trace trace, const RangeFilter& filter);

/// Whether one of these shell patterns matches the name, function or file of each site.
MAREY_API std::vector<bool> matching_sites(const Trace& trace, const std::vector<std::string>& patterns);

/// Returns the time in which a process imported, on any of its threads, added up over the processes; for a
/// trace whose imports are folded.
MAREY_API std::int64_t import_time_ns(const Trace& trace);

}  // namespace marey
