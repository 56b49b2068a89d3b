// stacks.h: folded stacks: what was spent under each path of entries; the input of flame graphs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// What the entries of a stack are.
enum class StackFrames : std::uint8_t {
    Ranges,  ///< all ranges around it, and itself
    Python,  ///< as torch: the Python and C functions around it, or its value "Call stack" (the innermost
             ///< entry first, separated by ';'); under a backward range, those of its forward one. Ranges
             ///< with neither do not count. The time of functions themselves counts only in a trace without
             ///< operators: one of functions, ranges marked by hand (User, Step) and what devices did
};

struct StackOptions {
    /// One of stack_metrics().
    std::string metric = "self_cpu_time_total";
    StackFrames frames = StackFrames::Ranges;
    bool append_name = false;   ///< of Python: the range's own name is the last entry
    bool by_thread = false;     ///< the first entry is the thread
    bool microseconds = false;  ///< times in microseconds, rounded down, instead of nanoseconds
    /// What is deeper counts for the last entry: all stacks together are the square of their length.
    std::uint32_t max_entries = 1024;
};

struct FoldedStack {
    std::string stack;  ///< entries, the outermost first, joined by ';'; white space and ';' in them are '_'
    std::int64_t value = 0;  ///< over 0
};

/// self_cpu_time_total: time of threads. self_device_time_total, or of one kind of device (self_cuda_...):
/// time of devices, on the innermost range around the call that launched it which is no call of a device's
/// runtime; of StackFrames::Ranges the device's own range is the last entry, and what nobody launched stands
/// alone; the user's annotations on a device are entries, but have no time of their own. count: ranges.
/// allocated_bytes: allocation reports, on the innermost range of their thread.
MAREY_API std::vector<std::string> stack_metrics();

/// Equal stacks are one. In order of first appearance; what is 0 or less is left out, and so are async
/// ranges. Linear in the number of ranges. Throws marey::Error, which lists the known ones, for an unknown
/// metric.
MAREY_API std::vector<FoldedStack> fold_stacks(const Trace& trace, const StackOptions& options = {});

}  // namespace marey
